# SPDX-License-Identifier: Apache-2.0
"""Bound runs, and memory that is shared through DLPack."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import weakref

import ml_dtypes
import numpy
import pytest
from onnx import TensorProto, helper

import backplane
import foreign
import models

X = numpy.array([[-1, 0, 1], [2, -3, 4]], numpy.float32)
Y = numpy.maximum(X, 0)


def compiled(env: backplane.Environment, *shape: object) -> backplane.Session:
    return env.load(models.relu(list(shape) or [2, 3])).compile(devices="cpu")


def test_bound_memory_is_used_where_it_lies(env: backplane.Environment) -> None:
    x, y = X.copy(), numpy.full_like(X, 9)
    run = compiled(env).bind({"x": x}, {"y": y})
    run()
    assert numpy.array_equal(y, Y)
    x[:] = -X
    run.run()
    assert numpy.array_equal(y, numpy.maximum(-X, 0))
    assert run.output("y") is y
    assert run.output_shape("y") == (2, 3)
    assert repr(run) == "Run(x -> y (bound))"


def test_bound_memory_is_kept_alive(env: backplane.Environment) -> None:
    run = compiled(env).bind({"x": X.copy()})
    gc.collect()
    run()
    assert numpy.array_equal(run.copy_outputs()["y"], Y)


def test_outputs_are_copied_by_name(env: backplane.Environment) -> None:
    run = compiled(env).bind({"x": X})
    run()
    for names in (None, "y", ["y"]):
        assert list(run.copy_outputs(names)) == ["y"]
    for names in ("z", ["y", "z"]):
        with pytest.raises(backplane.NotFound, match="no output 'z'; it has: y"):
            run.copy_outputs(names)


def test_outputs_of_the_loader_are_seen_without_a_copy(env: backplane.Environment) -> None:
    run = compiled(env).bind({"x": X})
    run()
    output = run.output("y")
    view = output.numpy()
    assert view.ctypes.data == output.address == numpy.from_dlpack(output).ctypes.data == numpy.asarray(output).ctypes.data
    assert numpy.array_equal(view, Y)
    assert output.shape == (2, 3)
    assert output.dtype == "float32"
    assert output.device == "host"
    assert output.__array__(numpy.float32, copy=False).ctypes.data == output.address
    with pytest.raises(ValueError, match="without a copy"):
        output.__array__(numpy.float64, copy=False)
    copy = output.numpy(copy=True)
    assert copy.ctypes.data != output.address


def test_no_run_while_its_output_is_in_use(env: backplane.Environment) -> None:
    run = compiled(env).bind({"x": X})
    run()
    view = numpy.asarray(run.output("y"))
    with pytest.raises(backplane.Busy, match="still in use"):
        run()
    with pytest.raises(backplane.Busy, match="still in use"):
        run.bind({"x": -X})
    assert numpy.array_equal(view, Y)
    del view
    run()


def test_an_output_outlives_its_run(env: backplane.Environment) -> None:
    run = compiled(env).bind({"x": X})
    run()
    view = numpy.asarray(run.output("y"))
    del run
    gc.collect()
    assert numpy.array_equal(view, Y)


def test_what_cannot_be_bound(env: backplane.Environment) -> None:
    run = compiled(env).bind()
    with pytest.raises(ValueError, match="not C-contiguous"):
        run.bind({"x": numpy.asfortranarray(X)})
    with pytest.raises(TypeError, match="is not an array"):
        run.bind({"x": X.tolist()})
    read_only = X.copy()
    read_only.flags.writeable = False
    run.bind({"x": read_only})
    with pytest.raises(ValueError, match="read-only"):
        run.bind_outputs({"y": read_only})
    with pytest.raises(backplane.Error):
        run.bind_outputs({"y": numpy.empty(2, numpy.float32)})
    with pytest.raises(backplane.NotFound):
        run.bind({"z": X})
    run.unbind("x")
    with pytest.raises(backplane.BadState, match=r"'x' is not bound: pass it to Session.run\(\) or Run.bind\(\)"):
        run()
    with pytest.raises(backplane.BadState, match=r"there is no result: call run\(\) first"):
        run.output("y")
    with pytest.raises(backplane.BadState, match=r"'x' is not bound to a tensor: pass it to Run.bind\(\) first"):
        run.set_shape("x", [2, 3])
    with pytest.raises(ValueError, match="packed"):
        env.load(models.identity(TensorProto.INT4, [2])).compile(devices="cpu").bind({"x": numpy.ones(2, ml_dtypes.int4)})


def test_shapes_within_what_is_bound(env: backplane.Environment) -> None:
    x, y = numpy.arange(-4, 8, dtype=numpy.float32).reshape(4, 3), numpy.zeros((4, 3), numpy.float32)
    run = compiled(env, "batch", 3).bind({"x": x}, {"y": y})
    run()
    assert numpy.array_equal(y, numpy.maximum(x, 0))
    y[:] = -1
    run.set_dim("batch", 2)
    run()
    assert run.output_shape("y") == (2, 3)
    assert numpy.array_equal(y, [[0, 0, 0], [0, 0, 1], [-1, -1, -1], [-1, -1, -1]])
    run.set_shape("x", [1, 3])
    run()
    assert run.output_shape("y") == (1, 3)
    with pytest.raises(backplane.Error):
        run.set_shape("x", [5, 3])
    with pytest.raises(TypeError, match="the shape of 'x' is 'ab'"):
        run.set_shape("x", "ab")
    with pytest.raises(ValueError, match="the shape of 'x': an extent is 1180591620717411303424"):
        run.set_shape("x", (2**70, 3))
    with pytest.raises(backplane.NotFound, match="no dimension 'width'; it has: batch"):
        run.set_dim("width", 1)
    with pytest.raises(backplane.NotFound, match="no dimension 'width'; it names none"):
        compiled(env).bind().set_dim("width", 1)


def test_bfloat16_is_bound_without_a_copy(env: backplane.Environment) -> None:
    x, y = X.astype(ml_dtypes.bfloat16), numpy.zeros((2, 3), ml_dtypes.bfloat16)
    run = env.load(models.identity(TensorProto.BFLOAT16, [2, 3])).compile(devices="cpu").bind({"x": x}, {"y": y})
    run()
    assert numpy.array_equal(y.astype(numpy.float32), X)


@pytest.mark.parametrize("how", ["session", "run", "run with a timeout", "run with a token"])
def test_a_signal_ends_a_run(env: backplane.Environment, how: str) -> None:
    session = env.load(models.slow()).compile(devices="cpu")
    x = numpy.ones((64, 64), numpy.float32)
    run, cancel = session.bind({"x": x}), backplane.Cancel()
    calls = {
        "session": lambda: session.run({"x": x}, timeout=60),  # the timeouts are for a run that no signal ends
        "run": lambda: run(timeout=60),
        "run with a timeout": lambda: run(timeout=50),
        "run with a token": lambda: run(timeout=60, cancel=cancel),
    }
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        calls[how]()
    assert time.monotonic() - start < 20
    timer.join()
    with pytest.raises(backplane.TimedOut):  # the Run can be used again, and the caller's token is not set
        run(timeout=0.05, cancel=cancel)


def test_a_signal_with_a_handler_that_returns_ends_no_run(env: backplane.Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    run = env.load(models.slow()).compile(devices="cpu").bind({"x": numpy.ones((64, 64), numpy.float32)})
    seen = []
    old = signal.signal(signal.SIGUSR1, lambda *_: seen.append(time.monotonic()))
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    try:
        with pytest.raises(backplane.TimedOut):
            run(timeout=1)
    finally:
        end = time.monotonic()
        timer.join()
        signal.signal(signal.SIGUSR1, old)
    assert end - seen[0] > 0.5


def test_a_token_ends_a_run_on_the_main_thread(env: backplane.Environment) -> None:
    run = env.load(models.slow()).compile(devices="cpu").bind({"x": numpy.ones((64, 64), numpy.float32)})
    cancel = backplane.Cancel()
    timer = threading.Timer(0.1, cancel.set)
    timer.start()
    with pytest.raises(backplane.Cancelled):
        run(timeout=60, cancel=cancel)
    timer.join()


def test_a_token_that_is_set_ends_every_run(env: backplane.Environment) -> None:
    session = compiled(env)
    cancel = backplane.Cancel()
    cancel.set()
    for _ in range(20):
        with pytest.raises(backplane.Cancelled):
            session.run({"x": X}, cancel=cancel)
        with pytest.raises(backplane.Cancelled):
            session.bind({"x": X})(cancel=cancel)


def test_a_cycle_of_a_run_and_what_is_bound_is_collected(env: backplane.Environment) -> None:
    run = compiled(env).bind({"x": X})
    run()
    output, memory = run.output("y"), foreign.Foreign(X.copy())
    memory.run = compiled(env).bind({"x": memory})  # a cycle through an attribute
    memory.run()
    other = compiled(env).bind({"x": output})  # no cycle: an output of one run is the input of another
    other()
    ended = weakref.ref(memory)
    del memory, output, other
    gc.collect()
    assert ended() is None


def test_timeout_and_cancel(env: backplane.Environment) -> None:
    run = env.load(models.slow()).compile(devices="cpu").bind({"x": numpy.ones((64, 64), numpy.float32)})
    start = time.monotonic()
    with pytest.raises(backplane.TimedOut):
        run(timeout=0.02)
    cancel = backplane.Cancel()
    cancel.set()
    with pytest.raises(backplane.Cancelled):
        run(cancel=cancel)
    assert time.monotonic() - start < 20


# --- DLPack ---


def test_dlpack_in_copies_nothing(env: backplane.Environment) -> None:
    array = backplane.from_dlpack(foreign.Foreign(X))
    assert array.address == X.ctypes.data
    assert array.numpy().ctypes.data == X.ctypes.data
    assert repr(array) == "Array(shape=(2, 3), dtype='float32', device='host')"


def test_dlpack_is_bound_without_a_copy(env: backplane.Environment) -> None:
    x, y = X.copy(), numpy.zeros_like(X)
    run = compiled(env).bind({"x": foreign.Foreign(x)}, {"y": foreign.Foreign(y)})
    run()
    assert numpy.array_equal(y, Y)
    x[:] = -X
    run()
    assert numpy.array_equal(y, numpy.maximum(-X, 0))


def test_dlpack_keeps_the_owner_alive(env: backplane.Environment) -> None:
    array = backplane.from_dlpack(foreign.Foreign(X.copy()))
    gc.collect()
    again = numpy.from_dlpack(array)
    del array
    gc.collect()
    assert numpy.array_equal(again, X)


def test_dlpack_of_read_only_memory_is_read_only(env: backplane.Environment) -> None:
    x = X.copy()
    x.flags.writeable = False
    array = backplane.from_dlpack(foreign.Foreign(x))
    assert not array.numpy().flags.writeable
    assert not numpy.from_dlpack(array).flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        compiled(env).bind({"x": X}, {"y": array})


@pytest.mark.parametrize(
    ("extents", "why"), [((-1,), "negative"), ((2, -3, 0), "negative"), ((1 << 40, 1 << 40), "too large"), ((1 << 62,), "too large")]
)
def test_impossible_extents_are_refused(extents: tuple[int, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        backplane.from_dlpack(foreign.capsule(*extents))


def test_arrays_have_at_most_as_many_dimensions_as_tensors(env: backplane.Environment) -> None:
    shape = (1,) * 40
    with pytest.raises(ValueError, match="40 dimensions"):
        env.allocate(shape, "float32", device="cpu")
    floats = numpy.zeros(shape, numpy.float32)
    with pytest.raises(ValueError, match="40 dimensions"):
        backplane.from_dlpack(foreign.Foreign(floats))
    for given in (floats, foreign.Foreign(floats), numpy.full(shape, "a")):
        with pytest.raises(ValueError, match="40 dimensions"):
            compiled(env).run({"x": given})


def test_dlpack_copies(env: backplane.Environment) -> None:
    array = backplane.from_dlpack(X.copy())
    copy = numpy.from_dlpack(array, copy=True)
    copy[:] = 9
    assert numpy.array_equal(array.numpy(), X)
    assert numpy.from_dlpack(array, copy=False).ctypes.data == array.address
    assert backplane.from_dlpack(numpy.zeros((0, 3), numpy.float32)).shape == (0, 3)


def test_dlpack_of_device_memory_on_the_host(env: backplane.Environment, opencl: str) -> None:
    array = env.put(X, device=opencl)
    for copy in (None, True):
        assert numpy.array_equal(numpy.from_dlpack(array, device="cpu", copy=copy), X)
    with pytest.raises(BufferError, match="copies are made on the host only"):
        array.__dlpack__(copy=True)


class Broken(foreign.Foreign):
    def __dlpack__(self, **kwargs: object) -> object:
        raise BufferError("it is on fire")


def test_dlpack_refusals(env: backplane.Environment) -> None:
    with pytest.raises(BufferError, match="'.*Broken' cannot be imported") as error:
        backplane.from_dlpack(Broken(X))
    assert str(error.value.__cause__) == "it is on fire"
    with pytest.raises(ValueError, match="not C-contiguous"):
        backplane.from_dlpack(foreign.Foreign(numpy.asfortranarray(X)))
    with pytest.raises(TypeError, match="is not an array"):
        backplane.from_dlpack(3)


def test_device_memory(env: backplane.Environment, opencl: str) -> None:
    array = env.put(X, device=opencl)
    assert array.device == opencl
    assert array.nbytes == X.nbytes
    assert numpy.array_equal(array.numpy(), X)
    assert numpy.array_equal(numpy.asarray(array), X)
    assert array.__dlpack_device__()[0] == 4
    with pytest.raises(ValueError, match="without a copy"):
        array.__array__(copy=False)
    for dtype in ("float32", numpy.float32, numpy.dtype("f4")):
        new = env.allocate([2, 3], dtype, device=env.device(opencl))
        assert new.shape == (2, 3)
        assert new.dtype == "float32"
    assert env.put(X, device=env.device(opencl)).device == env.stream(env.device(opencl)).device == opencl
    with pytest.raises(TypeError, match="device is 3"):
        env.put(X, device=3)
    assert env.allocate([0, 3], "float32", device=opencl).nbytes == 0


def test_device_memory_through_dlpack(env: backplane.Environment, opencl: str) -> None:
    """Both sides share a cl_mem: data written through one is read through the other."""
    given = env.put(X, device=opencl)
    taken = backplane.from_dlpack(given)
    assert taken.device == opencl
    session = env.load(models.relu()).compile(devices=opencl, fallback="forbid")
    run = session.bind({"x": taken}, {"y": given})
    run()
    assert numpy.array_equal(taken.numpy(), Y)  # written through `given`
    del given
    gc.collect()
    assert numpy.array_equal(taken.numpy(), Y)


def test_a_signal_ends_the_wait_for_a_stream(env: backplane.Environment, opencl: str) -> None:
    shape = [512, 512]
    product = models.model([helper.make_node("MatMul", ["x", "x"], ["y"])], [models.value("x", shape=shape)], [models.value("y", shape=shape)])
    x, y = (env.put(numpy.zeros(shape, numpy.float32), device=opencl) for _ in range(2))
    run = env.load(product).compile(devices=opencl).bind({"x": x}, {"y": y})
    stream = env.stream(opencl)
    for _ in range(200):  # at least 2 ms each
        run(stream=stream)
    try:
        stream.wait(timeout=0.001)
        pytest.skip("the device computes before a call returns")
    except backplane.TimedOut:
        pass
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        stream.wait(timeout=60)
    timer.join()
    stream.wait(timeout=60)


def test_streams(env: backplane.Environment, opencl: str) -> None:
    session = env.load(models.relu()).compile(devices=opencl, fallback="forbid")
    x, y = env.put(X, device=opencl), env.allocate([2, 3], "float32", device=opencl)
    run = session.bind({"x": x}, {"y": y})
    stream = env.stream(opencl)
    assert stream.device == opencl
    assert stream.native != 0
    for _ in range(3):
        run(stream=stream)
    stream.wait(timeout=60)
    assert numpy.array_equal(y.numpy(), Y)
    with pytest.raises(backplane.Unsupported):
        env.stream("cpu")
    with pytest.raises(backplane.InvalidArgument, match="another Environment"):
        run(stream=backplane.Environment().stream(opencl))
