# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gc
import os
import signal
import threading
import time

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

import backplane
import models


def test_sources(env: backplane.Environment, tmp_path) -> None:
    proto = models.relu()
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    x = numpy.array([[-1, 0, 1], [2, -3, 4]], numpy.float32)
    for source in (path, str(path), proto, proto.SerializeToString(), bytearray(proto.SerializeToString())):
        model = backplane.load(source)
        assert numpy.array_equal(model.compile(devices="cpu")(x), numpy.maximum(x, 0))


def test_bytes_are_kept_until_the_sessions_are_gone(env: backplane.Environment) -> None:
    weight = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    model = env.load(models.affine(weight, numpy.zeros(4, numpy.float32)).SerializeToString())
    session = model.compile(devices="cpu")
    del model
    gc.collect()
    x = numpy.ones((2, 3), numpy.float32)
    assert numpy.allclose(session(x), x @ weight)


def test_inputs_and_outputs(env: backplane.Environment) -> None:
    model = env.load(models.affine(numpy.ones((3, 4), numpy.float32), numpy.ones(4, numpy.float32)))
    (x,) = model.inputs
    assert (x.name, x.kind, x.dtype, x.shape, x.type) == ("x", "tensor", "float32", ("batch", 3), "float32[batch,3]")
    assert repr(x) == "x: float32[batch,3]"
    assert repr(model) == "Model(x: float32[batch,3] -> y: float32[batch,4]; nodes: 2)"
    assert model.report()["operators"] == {"Add": 1, "MatMul": 1}


def test_errors_have_classes_and_codes(env: backplane.Environment, tmp_path) -> None:
    with pytest.raises(ValueError, match="source is ''"):
        env.load("")
    with pytest.raises(backplane.NotFound, match="nowhere.onnx") as error:
        env.load(tmp_path / "nowhere.onnx")
    assert isinstance(error.value, LookupError)
    assert isinstance(error.value, backplane.CallError)
    assert (error.value.code, error.value.status) == (0x0104, "BP_NOT_FOUND")
    with pytest.raises(backplane.InvalidModel) as error:
        env.load(b"not a model")
    assert isinstance(error.value, ValueError)
    with pytest.raises(TypeError, match="path, bytes or an onnx.ModelProto"):
        env.load(3)


def test_every_code_has_its_class() -> None:
    from backplane.errors import make_error

    assert type(make_error(0x0202, "BP_TIMED_OUT", "too slow")) is backplane.TimedOut
    assert isinstance(make_error(0x0202, "BP_TIMED_OUT", "too slow"), TimeoutError)
    assert type(make_error(0x03FF, "BP_NEW", "a code of a later version")) is backplane.LostError
    assert str(make_error(0x0404, "BP_IO_ERROR", "text")) == "text"


def test_weights_passed_with_the_model(env: backplane.Environment) -> None:
    proto = models.model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [models.value("x", shape=[2, 3]), models.value("w", shape=[3, 4])],
        [models.value("y", shape=[2, 4])],
    )
    weight = numpy.random.default_rng(1).standard_normal((3, 4), numpy.float32)
    model = env.load(proto, weights={"w": weight})
    assert [value.name for value in model.inputs] == ["x"]
    x = numpy.ones((2, 3), numpy.float32)
    assert numpy.allclose(model.compile(devices="cpu")(x), x @ weight)
    with pytest.raises(backplane.TypeMismatch):
        env.load(proto, weights={"w": weight.astype(numpy.float64)})


def test_external_data(env: backplane.Environment, tmp_path) -> None:
    weight = numpy.random.default_rng(1).standard_normal((64, 64), numpy.float32)
    proto = models.affine(weight, numpy.zeros(64, numpy.float32))
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=16)
    model = env.load((tmp_path / "m.onnx").read_bytes(), directory=tmp_path)
    x = numpy.ones((2, 64), numpy.float32)
    assert numpy.allclose(model.compile(devices="cpu")(x), x @ weight, atol=1e-4)


def test_explain_without_compiling(env: backplane.Environment) -> None:
    model = env.load(models.relu())
    explanation = model.explain(devices=["null", "cpu"])
    assert explanation.devices == ["null", "cpu"]
    (node,) = explanation.nodes
    assert node["op_type"] == "Relu"
    assert not explanation.uncovered
    assert "Relu" in str(explanation)
    assert str(explanation).startswith("1 node (cpu: 1) in 1 island, 0 copies")
    assert "Relu" in explanation._repr_html_()


def test_explanations_say_why_not_elsewhere(env: backplane.Environment) -> None:
    proto = models.identity(TensorProto.STRING, [2])
    explanation = env.load(proto).explain(devices=["null", "cpu"])
    (node,) = explanation.nodes
    assert node["device"] == "cpu"
    assert explanation.why(node).startswith("null: ")
    session = env.load(proto).compile(devices=["null", "cpu"], settings={"loader.costs": "reported"})
    assert session.explain().nodes[0]["device"] == "cpu"


def test_explanations_say_that_a_model_cannot_run(env: backplane.Environment) -> None:
    explanation = env.load(models.identity(TensorProto.STRING, [2])).explain(devices=["null"])
    assert len(explanation.uncovered) == 1
    assert "\nCannot run: no device supports 1 of 1 node\n" in str(explanation)
    assert ">Cannot run: no device supports 1 of 1 node<" in explanation._repr_html_()
    assert "■</span> no device" in explanation._repr_html_()


def test_explanations_name_pins_and_assumed_extents(env: backplane.Environment) -> None:
    explanation = env.load(models.relu(["batch", 4])).explain(devices=["null", "cpu"], pins={"op=Relu": "cpu"})
    assert explanation.why(explanation.nodes[0]).startswith("pinned by op=Relu")
    assert "\nAssumed: batch = " in str(explanation)
    assert "Assumed: batch = " in explanation._repr_html_()


def test_what_no_device_takes_names_the_reasons(env: backplane.Environment) -> None:
    with pytest.raises(backplane.Unsupported, match="null"):
        env.load(models.identity(TensorProto.STRING, [2])).compile(devices="null")


def test_html_is_escaped(env: backplane.Environment) -> None:
    proto = models.relu()
    proto.graph.node[0].name = "<script>alert(1)</script>"
    page = env.load(proto).explain(devices="cpu")._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_names_cannot_control_a_terminal(env: backplane.Environment, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    proto = models.relu(["n\x1b[2J", 3])
    proto.graph.node[0].name = "a\x1b[31m\nb\u202ec\x9d"
    model = env.load(proto)
    explanation, profile = model.explain(devices="cpu"), model.profile(devices="cpu")
    for text in (str(explanation), repr(explanation), explanation._repr_html_(), str(profile), profile._repr_html_()):
        assert text.replace("\n", "").isprintable()
        assert "Explanation(" in text or "a [31m b\ufffdc" in text
    assert len(str(explanation).splitlines()) == 4  # the summary, the assumed extent, the heads, the node


def test_profile(env: backplane.Environment, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    profile = env.load(models.relu([64, 64])).profile(devices="cpu")
    assert profile.devices == ["cpu"]
    assert profile.seconds("cpu") > 0
    assert "Relu" in str(profile)
    assert "Relu" in profile._repr_html_()


def test_profile_keeps_settings(env: backplane.Environment, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model = env.load(models.relu())
    for wrong in ({"settings": {"loader.nonsense": 1}}, {"options": backplane.SessionOptions(settings={"loader.nonsense": 1})}):
        with pytest.raises(backplane.NotFound, match="nonsense"):
            model.profile(devices="cpu", **wrong)
    options = backplane.SessionOptions(devices="null", settings={"loader.max_island_nodes": 1})
    assert model.profile(options=options, devices="cpu").devices == ["cpu"]
    assert options.settings == {"loader.max_island_nodes": 1}


def test_options(env: backplane.Environment) -> None:
    model = env.load(models.affine(numpy.ones((3, 4), numpy.float32), numpy.ones(4, numpy.float32)))
    options = backplane.SessionOptions(devices="cpu", dims={"batch": (1, 8)})
    session = model.compile(options)
    assert session(numpy.ones((8, 3), numpy.float32)).shape == (8, 4)
    with pytest.raises(backplane.Error):
        session(numpy.ones((9, 3), numpy.float32))
    assert repr(options.replace(refit=True)) == "SessionOptions(devices='cpu', dims={'batch': (1, 8)}, refit=True)"
    with pytest.raises(TypeError, match="no session option 'device'"):
        model.compile(device="cpu")
    with pytest.raises(ValueError, match="fallback"):
        model.compile(fallback="maybe")
    with pytest.raises(ValueError, match="compute_types"):
        model.compile(compute_types=["fp7"])
    with pytest.raises(backplane.NotFound):
        model.compile(settings={"cpu.nonsense": 1})


@pytest.mark.parametrize(
    ("option", "kind", "text"),
    [
        ({"fallback": None}, ValueError, "fallback is None: it must be 'allow', 'prefer' or 'forbid'"),
        ({"cancel": 3}, TypeError, "cancel is 3: a backplane.Cancel or None"),
        ({"refit": "no"}, TypeError, "refit is 'no': True or False"),
        ({"place_only": 2}, TypeError, "place_only is 2: True or False"),
        ({"max_islands": -1}, ValueError, "max_islands is -1"),
        ({"max_islands": "a"}, TypeError, "max_islands is 'a'"),
        ({"devices": [3]}, TypeError, "devices: .* 3 is not one"),
        ({"devices": b"cpu"}, TypeError, "devices: .* b'cpu' is not one"),
        ({"devices": "\ud800"}, ValueError, r"'\\ud800' has a surrogate"),
        ({"dims": {"n": "a"}}, TypeError, "dims: the extent of 'n' is 'a'"),
    ],
)
def test_an_option_that_cannot_be_converted_is_named(env: backplane.Environment, option: dict, kind: type, text: str) -> None:
    with pytest.raises(kind, match=text):
        env.load(models.relu()).compile(**option)


def test_compiling_is_cancelled(env: backplane.Environment) -> None:
    cancel = backplane.Cancel()
    cancel.set()
    with pytest.raises(backplane.Cancelled):
        env.load(models.relu()).compile(cancel=cancel)


def test_pins(env: backplane.Environment) -> None:
    model = env.load(models.relu())
    for device in ("cpu", "null"):
        (node,) = model.compile(devices=["cpu", "null"], pins={"op=Relu": device}).explain().nodes
        assert node["device"] == device
    with pytest.raises(backplane.Unsupported, match="null"):
        env.load(models.identity(TensorProto.STRING, [2])).compile(pins={"op=Identity": "null"})


def test_refit(env: backplane.Environment) -> None:
    weight, bias = numpy.ones((3, 4), numpy.float32), numpy.zeros(4, numpy.float32)
    session = env.load(models.affine(weight, bias)).compile(devices="cpu", refit=True)
    x = numpy.ones((2, 3), numpy.float32)
    assert numpy.array_equal(session(x), x @ weight)
    session.refit({"w": weight * 2, "b": bias + 1})
    assert numpy.array_equal(session(x), x @ weight * 2 + 1)
    assert numpy.array_equal(session.read_weight("w"), weight * 2)
    with pytest.raises(backplane.NotFound):
        session.refit({"nothing": weight})
    with pytest.raises(backplane.TypeMismatch, match=r"'w': the tensor is float\[4\], but the model's is float\[3,4\]"):
        session.refit({"w": bias})
    with pytest.raises(backplane.NotFound, match="no weight 'nothing'"):
        session.read_weight("nothing")
    with pytest.raises(backplane.BadState, match="without refit=True"):
        env.load(models.affine(weight, bias)).compile(devices="cpu").refit({"w": weight})


def long_to_profile() -> onnx.ModelProto:
    count = 24
    shapes = [[900 + i, 1024] for i in range(count)]  # no two products are alike, so that each is measured
    products = [helper.make_node("MatMul", [f"x{i}", "weight"], [f"y{i}"]) for i in range(count)]
    inputs, outputs = ([models.value(f"{name}{i}", shape=shapes[i]) for i in range(count)] for name in "xy")
    return models.model(products, inputs, outputs, {"weight": numpy.zeros((1024, 1024), numpy.float32)})


def test_a_signal_ends_profiling(env: backplane.Environment) -> None:
    model = env.load(long_to_profile())
    start = time.monotonic()
    model.profile(devices="cpu")
    whole = time.monotonic() - start
    timer = threading.Timer(whole / 10, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        model.profile(devices="cpu")
    assert time.monotonic() - start < whole / 2
    timer.join()


def test_a_handler_may_fork_while_a_model_is_profiled(env: backplane.Environment) -> None:
    model = env.load(long_to_profile())
    parent, children = os.getpid(), []
    old = signal.signal(signal.SIGALRM, lambda *_: children.append(os.fork()))
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        model.profile(devices="cpu")
    except backplane.Forked:
        if os.getpid() != parent:
            os._exit(7)
        raise
    finally:
        if os.getpid() != parent:
            os._exit(1)
        signal.signal(signal.SIGALRM, old)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 7


def test_a_model_may_be_compiled_on_another_thread(env: backplane.Environment) -> None:
    sessions = []
    thread = threading.Thread(target=lambda: sessions.append(env.load(models.relu()).compile()))
    thread.start()
    thread.join()
    assert len(sessions) == 1


def test_errors_have_no_control_characters() -> None:
    from backplane.errors import make_error

    error = make_error(0x0101, "BP_INVALID_MODEL", "node 'a\x1b[31m\u202e\udcff': no\ttext\nof two lines, häßlich")
    assert str(error) == "node 'a\\x1b[31m\\u202e\\udcff': no\ttext\nof two lines, häßlich"
