# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import array
import asyncio
import collections
import threading
import time
import types

import ml_dtypes
import numpy
import pytest
from onnx import TensorProto, helper

import backplane
import foreign
import models

NUMPY_TYPES = {
    TensorProto.FLOAT: numpy.float32,
    TensorProto.DOUBLE: numpy.float64,
    TensorProto.FLOAT16: numpy.float16,
    TensorProto.INT8: numpy.int8,
    TensorProto.UINT8: numpy.uint8,
    TensorProto.INT16: numpy.int16,
    TensorProto.UINT16: numpy.uint16,
    TensorProto.INT32: numpy.int32,
    TensorProto.UINT32: numpy.uint32,
    TensorProto.INT64: numpy.int64,
    TensorProto.UINT64: numpy.uint64,
    TensorProto.BOOL: numpy.bool_,
    TensorProto.COMPLEX64: numpy.complex64,
    TensorProto.COMPLEX128: numpy.complex128,
    TensorProto.BFLOAT16: ml_dtypes.bfloat16,
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.UINT4: ml_dtypes.uint4,
    TensorProto.INT4: ml_dtypes.int4,
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
}


@pytest.fixture(scope="module")
def relu(env: backplane.Environment) -> backplane.Session:
    return env.load(models.relu()).compile(devices="cpu")


X = numpy.array([[-1, 0, 1], [2, -3, 4]], numpy.float32)
Y = numpy.maximum(X, 0)


def test_run(relu: backplane.Session) -> None:
    results = relu.run({"x": X})
    assert list(results) == ["y"]
    assert numpy.array_equal(results["y"], Y)
    assert results["y"].flags.writeable
    assert numpy.array_equal(relu(X), Y)
    assert numpy.array_equal(relu(x=X), Y)
    assert repr(relu) == "Session(x: float32[2,3] -> y: float32[2,3])"


def test_an_input_may_have_any_name(env: backplane.Environment) -> None:
    proto = models.model([helper.make_node("Relu", ["self"], ["y"])], [models.value("self", shape=[2])], [models.value("y", shape=[2])])
    assert env.load(proto).compile(devices="cpu")(**{"self": numpy.ones(2, numpy.float32)}).tolist() == [1, 1]


def test_an_output_that_is_requested_twice(env: backplane.Environment) -> None:
    session = env.load(models.relu([1 << 20])).compile(devices="cpu")
    x = numpy.arange(1 << 20, dtype=numpy.float32)
    results = session.run({"x": x}, ["y", "y"])
    assert list(results) == ["y"]
    assert not results["y"].flags.owndata  # it is the memory that the run wrote
    assert numpy.array_equal(results["y"], x)


def test_results_outlive_the_session(env: backplane.Environment) -> None:
    session = env.load(models.relu()).compile(devices="cpu")
    first, second = session(X), session(-X)
    del session
    assert numpy.array_equal(first, Y)
    assert numpy.array_equal(second, numpy.maximum(-X, 0))


def test_what_inputs_may_be(relu: backplane.Session) -> None:
    transposed = numpy.ascontiguousarray(X.T).T
    read_only = X.copy()
    read_only.flags.writeable = False
    flat = memoryview(array.array("f", X.ravel().tolist())).cast("B").cast("f", [2, 3])
    for x in (X, transposed, read_only, X.tolist(), flat, X[::1]):
        assert numpy.array_equal(relu.run({"x": x})["y"], Y)
    for inputs in (collections.UserDict(x=X), types.MappingProxyType({"x": X})):
        assert numpy.array_equal(relu.run(inputs)["y"], Y)
        relu.bind(inputs).run()


@pytest.mark.parametrize(("onnx_type", "dtype"), NUMPY_TYPES.items(), ids=lambda each: str(each))
def test_types(env: backplane.Environment, onnx_type: int, dtype: type) -> None:
    session = env.load(models.identity(onnx_type, [3, 3])).compile(devices="cpu")
    name = numpy.dtype(dtype).name
    assert session.inputs[0].dtype == name
    x = numpy.array([[0, 1, 1], [1, 0, 1], [0, 0, 1]]).astype(dtype)
    for given in (x, numpy.ascontiguousarray(x.T).T, x.tolist() if name[:3] != "flo" or name[5:7].isdigit() and "_" not in name else x):
        y = session.run({"x": given})["y"]
        assert y.dtype == x.dtype
        assert numpy.array_equal(y.astype(numpy.complex128), x.astype(numpy.complex128))


def test_elements_below_a_byte(env: backplane.Environment) -> None:
    for onnx_type, dtype, values in (
        (TensorProto.INT4, ml_dtypes.int4, [-8, -1, 0, 7, 3]),
        (TensorProto.UINT4, ml_dtypes.uint4, [0, 15, 8, 1, 2]),
    ):
        x = numpy.array(values, numpy.int8).astype(dtype)
        y = env.load(models.identity(onnx_type, [5])).compile(devices="cpu")(x)
        assert y.dtype == dtype
        assert y.astype(numpy.int8).tolist() == values


def test_scalars_and_no_elements(env: backplane.Environment) -> None:
    scalar = env.load(models.relu([])).compile(devices="cpu")
    for x in (3.0, numpy.float32(3), numpy.array(3, numpy.float32)):
        y = scalar.run({"x": x})["y"]
        assert y.shape == ()
        assert y == 3
    assert env.load(models.relu([2, 0])).compile(devices="cpu")(numpy.ones((2, 0), numpy.float32)).shape == (2, 0)


def test_strings(env: backplane.Environment) -> None:
    session = env.load(models.identity(TensorProto.STRING, ["n"])).compile(devices="cpu")
    texts = ["", "a", "Füße", "日本"]
    for x in (texts, numpy.array(texts), numpy.array(texts, object), [text.encode() for text in texts]):
        y = session.run({"x": x})["y"]
        assert y.dtype == object
        assert y.tolist() == texts
    assert session.run({"x": [b"\xff"]})["y"][0].encode("utf-8", "surrogateescape") == b"\xff"
    with pytest.raises(TypeError, match="neither text nor bytes"):
        session.run({"x": numpy.array([None], object)})


def test_open_dimensions(env: backplane.Environment) -> None:
    weight = numpy.random.default_rng(1).standard_normal((3, 4), numpy.float32)
    session = env.load(models.affine(weight, numpy.zeros(4, numpy.float32))).compile(devices="cpu")
    for batch in (1, 7, 2):
        x = numpy.random.default_rng(batch).standard_normal((batch, 3), numpy.float32)
        assert numpy.allclose(session(x), x @ weight, atol=1e-6)


def test_sequences(env: backplane.Environment) -> None:
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    proto = models.model(
        [helper.make_node("SequenceInsert", ["s", "x"], ["t"])],
        [helper.make_value_info("s", kind), models.value("x", shape=["n"])],
        [helper.make_value_info("t", kind)],
    )
    session = env.load(proto).compile(devices="cpu")
    assert session.inputs[0].kind == "sequence"
    assert session.inputs[0].type.startswith("seq(float32")
    given = [numpy.array([1, 2], numpy.float32), numpy.array([[3]], numpy.float32)]
    result = session.run({"s": given, "x": numpy.array([4], numpy.float32)})["t"]
    assert [each.tolist() for each in result] == [[1, 2], [[3]], [4]]
    with pytest.raises(TypeError, match="a list is expected"):
        session.run({"s": 3, "x": given[0]})


def test_optionals(env: backplane.Environment) -> None:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    proto = models.model(
        [helper.make_node("OptionalHasElement", ["o"], ["has"])],
        [helper.make_value_info("o", kind)],
        [models.value("has", TensorProto.BOOL, [])],
    )
    session = env.load(proto).compile(devices="cpu")
    assert not session.run({"o": None})["has"]
    assert session.run({"o": numpy.ones(2, numpy.float32)})["has"]


def test_maps(env: backplane.Environment) -> None:
    zip_map = helper.make_node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml", classlabels_strings=["a", "b"])
    kind = helper.make_sequence_type_proto(
        helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    )
    proto = models.model([zip_map], [models.value("x", shape=["n", 2])], [helper.make_value_info("z", kind)])
    session = env.load(proto).compile(devices="cpu")
    assert session(numpy.array([[0.25, 0.75], [1, 0]], numpy.float32)) == [{"a": 0.25, "b": 0.75}, {"a": 1.0, "b": 0.0}]


def test_keys_of_maps(env: backplane.Environment) -> None:
    node = helper.make_node("DictVectorizer", ["m"], ["y"], domain="ai.onnx.ml", string_vocabulary=["a", b"\xff"])
    kind = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    proto = models.model([node], [helper.make_value_info("m", kind)], [models.value("y", shape=[1, 2])])
    session = env.load(proto).compile(devices="cpu")
    assert session.run({"m": {"a": 2.0, b"\xff".decode(errors="surrogateescape"): 3.0}})["y"].tolist() == [[2, 3]]
    with pytest.raises(TypeError, match="input 'm': the model declares keys of type string, .* 'int'"):
        session.run({"m": {1: 2.0}})


def test_errors_name_the_input(relu: backplane.Session) -> None:
    for inputs, kind, text in (
        ({"x": X.astype(numpy.float64)}, backplane.TypeMismatch, "input 'x'"),
        ({"x": X[:1]}, backplane.TypeMismatch, "input 'x'"),
        ({"z": X}, backplane.NotFound, "no input 'z'; it has: x"),
        ({}, backplane.BadState, "input 'x'"),
        ({"x": object()}, TypeError, "input 'x': an object of type 'object'"),
        ({0: X}, TypeError, "inputs: a name must be a str, not 'int'"),
        ([("x", X)], TypeError, "inputs: a dict of names and values is expected, not 'list'"),
        ({"x": X.astype(">f4")}, TypeError, "has big-endian elements"),
        ({"x": numpy.zeros((2, 3), "V8")}, TypeError, "which ONNX lacks"),
        ({"x": numpy.zeros((2, 3), numpy.longdouble)}, TypeError, "input 'x': .* elements of type '(longdouble|float128|float96)', which ONNX lacks"),
        ({"x": numpy.zeros((2, 3), "M8[s]")}, TypeError, r"input 'x': .* elements of type 'datetime64\[s\]', which ONNX lacks"),
        ({"x": numpy.array([1, None], object)}, TypeError, r"input 'x': .* 'int' is neither text nor bytes.*astype\('float32'\)"),
        ({"\ud800": X}, ValueError, r"'\\ud800' has a surrogate"),
    ):
        with pytest.raises(kind, match=text):
            relu.run(inputs)
    with pytest.raises(backplane.NotFound, match="no output 'z'; it has: y"):
        relu.run({"x": X}, ["z"])
    with pytest.raises(TypeError, match="1 inputs, and 2 arrays"):
        relu(X, X)
    with pytest.raises(TypeError, match="input 'x' was passed both by position and by name"):
        relu(X, x=X)
    assert numpy.array_equal(relu(X), Y)  # the session still works


def test_arrays_with_gaps_are_copied_or_named(relu: backplane.Session, env: backplane.Environment) -> None:
    wide = numpy.arange(-12, 12, dtype=numpy.float32).reshape(4, 6)
    at_odd_address = numpy.zeros(25, numpy.uint8)[1:].view(numpy.float32).reshape(2, 3)
    for given in (wide[::2, ::2], numpy.asfortranarray(wide[:2, :3]), wide[1::-1, 2::-1], at_odd_address):
        for x in (given, foreign.Foreign(given)):
            assert numpy.array_equal(relu(x), numpy.maximum(given, 0))
    with pytest.raises(ValueError, match="input 'x': the array is not C-contiguous"):
        relu.bind({"x": foreign.Foreign(wide[::2, ::2])})
    for given, text in ((wide[::2, ::2], "the array is not C-contiguous"), (at_odd_address, "the array's address is not a multiple of 4")):
        with pytest.raises(ValueError, match=f"^the array: {text}: make a contiguous copy"):
            env.from_dlpack(foreign.Foreign(given))


def test_arrays_with_gaps_of_types_that_numpy_lacks(env: backplane.Environment) -> None:
    torch = pytest.importorskip("torch")
    session = env.load(models.identity(TensorProto.BFLOAT16, ["n", 2])).compile(devices="cpu")
    tensor = torch.arange(12, dtype=torch.bfloat16).reshape(3, 4)
    for given in (tensor[::2, 1:3], torch.frombuffer(bytearray(b"\0" + bytes(range(8))), dtype=torch.bfloat16, offset=1).reshape(2, 2)):
        assert session(foreign.Foreign(given)).astype(numpy.float32).tolist() == given.float().tolist()


def test_an_interrupt_of_dlpack_is_not_lost(relu: backplane.Session) -> None:
    class Interrupted(foreign.Foreign):
        def __dlpack__(self, **kwargs: object) -> object:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        relu(Interrupted(X))


def test_none_is_not_an_array(relu: backplane.Session, env: backplane.Environment) -> None:
    for call in (
        lambda: relu.run({"x": None}),
        lambda: relu(None),
        lambda: relu.bind({"x": None}),
        lambda: relu.bind({"x": X})._bind_copies({"x": None}),
        lambda: asyncio.run(relu.run_async({"x": None})),
    ):
        with pytest.raises(TypeError, match="input 'x' is None, not an array"):
            call()
    with pytest.raises(TypeError, match="output 'y' is None, not an array"):
        relu.bind({"x": X}, {"y": None})
    with pytest.raises(TypeError, match="weight 'w' is None, not an array"):
        env.load(models.relu().SerializeToString(), weights={"w": None})
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    nodes = [helper.make_node("SequenceLength", ["s"], ["n"])]
    proto = models.model(nodes, [helper.make_value_info("s", kind)], [models.value("n", TensorProto.INT64, [])])
    with pytest.raises(TypeError, match="input 's' is None, not an array"):
        env.load(proto).compile(devices="cpu").run({"s": [None]})


I64, F32 = TensorProto.INT64, TensorProto.FLOAT


@pytest.mark.parametrize(
    ("onnx_type", "given", "kind", "text"),
    [
        (I64, [1.0], TypeError, "1.0 is of type 'float', and is not converted to int64"),
        (I64, ["1", "2"], TypeError, "'1' is of type 'str', and is not converted to int64"),
        (I64, [True], TypeError, "True is of type 'bool', and is not converted to int64"),
        (I64, [2**63], ValueError, "a number does not fit int64"),
        (TensorProto.INT8, [300], ValueError, "a number does not fit int8 .*300"),
        (TensorProto.INT4, [100], ValueError, "100 is not a value of type int4"),
        (TensorProto.BOOL, ["False", ""], TypeError, "'False' is of type 'str', and is not converted to bool"),
        (TensorProto.BOOL, [1, 0], TypeError, "1 is of type 'int', and is not converted to bool"),
        (F32, [numpy.zeros(1)], TypeError, "an object of type 'ndarray' has data type float64, and is not converted to float32"),
        (F32, [numpy.float64(1)], TypeError, "has data type float64, and is not converted to float32"),
        (F32, [None], TypeError, "an object of type 'NoneType' has data type object"),
        (F32, [2**24 + 1], ValueError, "16777217 is not a value of type float32"),
        (F32, [1j], TypeError, "1j is of type 'complex', and is not converted to float32"),
        (TensorProto.FLOAT16, [70000.0], ValueError, "70000.0 is not a value of type float16"),
        (TensorProto.BFLOAT16, [257], ValueError, "257 is not a value of type bfloat16"),
        (TensorProto.STRING, ["a", 1], TypeError, "'int' is neither text nor bytes"),
    ],
)
def test_lists_are_not_converted_to_other_values(
    env: backplane.Environment, onnx_type: int, given: list, kind: type, text: str
) -> None:
    with pytest.raises(kind, match=f"input 'x': .*{text}|input 'x': {text}"):
        env.load(models.identity(onnx_type, ["n"])).compile(devices="cpu").run({"x": given})


@pytest.mark.parametrize(
    ("onnx_type", "given", "values"),
    [
        (I64, [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
        (TensorProto.UINT64, [2**64 - 1], [2**64 - 1]),
        (TensorProto.INT4, [-8, 7], [-8, 7]),
        (TensorProto.BOOL, [True, False], [True, False]),
        (F32, [0.1, 2], [numpy.float32(0.1), 2]),
        (F32, [2**24, float("inf")], [2**24, float("inf")]),
        (F32, [numpy.float32(0.1), numpy.ones((), numpy.float32)], [numpy.float32(0.1), 1]),
        (F32, range(3), [0, 1, 2]),
        (F32, [], []),
        (TensorProto.BFLOAT16, [256, 0.5], [256, 0.5]),
        (TensorProto.COMPLEX64, [1j, 2, 0.5], [1j, 2, 0.5]),
    ],
)
def test_lists_become_arrays_of_the_declared_type(env: backplane.Environment, onnx_type: int, given: list, values: list) -> None:
    y = env.load(models.identity(onnx_type, ["n"])).compile(devices="cpu")(given)
    assert y.dtype == NUMPY_TYPES[onnx_type]
    assert y.tolist() == values


def test_an_input_that_is_left_out_is_not_that_of_the_run_before(env: backplane.Environment) -> None:
    proto = models.model(
        [helper.make_node("Add", ["a", "b"], ["y"])],
        [models.value("a", shape=[2]), models.value("b", shape=[2])],
        [models.value("y", shape=[2])],
    )
    session = env.load(proto).compile(devices="cpu")
    ones = numpy.ones(2, numpy.float32)
    session.run({"a": ones, "b": ones})
    with pytest.raises(backplane.BadState, match="'b'"):
        session.run({"a": ones})


def test_timeout_and_cancel(env: backplane.Environment) -> None:
    session = env.load(models.slow()).compile(devices="cpu")
    x = numpy.ones((64, 64), numpy.float32)
    start = time.monotonic()
    with pytest.raises(backplane.TimedOut) as error:
        session.run({"x": x}, timeout=0.05)
    assert isinstance(error.value, TimeoutError)
    cancel = backplane.Cancel()
    timer = threading.Timer(0.05, cancel.set)  # its thread needs the GIL while the run computes
    timer.start()
    with pytest.raises(backplane.Cancelled):
        session.run({"x": x}, cancel=cancel)
    timer.join()
    assert time.monotonic() - start < 20
    with pytest.raises(ValueError, match="timeout is -1"):
        session.run({"x": x}, timeout=-1)
    with pytest.raises(TypeError, match="timeout is '1'"):
        session.run({"x": x}, timeout="1")


def test_threads_share_a_session(env: backplane.Environment) -> None:
    weight = numpy.random.default_rng(1).standard_normal((3, 4), numpy.float32)
    session = env.load(models.affine(weight, numpy.zeros(4, numpy.float32))).compile(devices="cpu")
    wrong = []

    def work(seed: int) -> None:
        random = numpy.random.default_rng(seed)
        for _ in range(50):
            x = random.standard_normal((random.integers(1, 9), 3), numpy.float32)
            if not numpy.allclose(session(x), x @ weight, atol=1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
