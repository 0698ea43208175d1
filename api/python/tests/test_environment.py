# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import unittest.mock
import weakref

import numpy
import pytest

import backplane
import models


def test_versions() -> None:
    assert backplane.__version__ == backplane.loader_version()
    assert len(backplane.abi_version().split(".")) == 2


def test_devices_have_names_and_facts(env: backplane.Environment) -> None:
    cpu = env.device("cpu")
    assert cpu.name == str(cpu) == "cpu"
    assert cpu.kind == "cpu"
    assert cpu.memory_bytes > 0
    assert {"float32", "bfloat16", "int4", "string"} <= set(cpu.dtypes)
    assert "cpu" in repr(cpu)
    assert "cpu" in [device.name for device in backplane.devices()]
    assert env.device("cpu:0").name == "cpu"


def test_an_unknown_device_names_those_that_there_are(env: backplane.Environment) -> None:
    with pytest.raises(backplane.NotFound, match="cpu"):
        env.device("tpu")


def test_candidates_have_reasons(env: backplane.Environment) -> None:
    found = {candidate.id: candidate for candidate in env.candidates}
    assert found["cpu"].accepted
    assert found["cpu"].refusal == ""
    assert os.path.exists(found["cpu"].library)


def test_a_refused_file_says_why(tmp_path) -> None:
    file = tmp_path / "no.json"
    file.write_text("{}")
    env = backplane.Environment(backend_files=file, only_given=True)
    (candidate,) = env.candidates
    assert not candidate.accepted
    assert candidate.refusal == "manifest"
    assert str(file) in candidate.text
    assert env.devices == []
    assert "refused" in repr(candidate)


def test_settings_are_checked() -> None:
    with pytest.raises(backplane.NotFound, match="loader.nonsense"):
        backplane.Environment(settings={"loader.nonsense": 1})
    with pytest.raises(ValueError, match="log_level"):
        backplane.Environment(log_level="loud")
    with pytest.raises(TypeError, match="log is 3: a function"):
        backplane.Environment(log=3)
    with pytest.raises(TypeError, match="backend_files: .* b'x' is not one"):
        backplane.Environment(backend_files=b"x")


def test_settings_reach_backends() -> None:
    env = backplane.Environment(settings={"loader.select": "cpu", "cpu.threads": 1, "loader.cache": ""})
    assert [device.name for device in env.devices] == ["cpu"]


def test_log_lines_reach_a_function(tmp_path) -> None:
    lines = []
    backplane.Environment(backend_files=[tmp_path / "missing.json"], only_given=True, log_level="debug", log=lambda *line: lines.append(line))
    assert lines
    assert all(level in ("error", "warning", "info", "debug") for level, _ in lines)


def test_a_log_function_that_raises_breaks_nothing(tmp_path, monkeypatch) -> None:
    raised = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)

    def log(level: str, line: str) -> None:
        raise KeyError(line)

    backplane.Environment(backend_files=[tmp_path / "missing.json"], only_given=True, log_level="debug", log=log)
    assert raised


def test_a_log_function_that_refers_to_its_environment_is_collected() -> None:
    class Log:
        def __call__(self, level: str, line: str) -> None: ...

    log = Log()
    log.environment = backplane.Environment(log=log, settings={"loader.select": "cpu"})
    ended = weakref.ref(log)
    del log
    gc.collect()
    assert ended() is None


def test_a_forked_process_has_an_environment_of_its_own(env: backplane.Environment) -> None:
    model = env.load(models.relu())
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for use in (lambda: model.inputs, lambda: model.outputs, lambda: repr(model), model.report):
                with pytest.raises(backplane.Forked):
                    use()
            session = backplane.load(models.relu()).compile(devices="cpu")
            status = 0 if session(numpy.ones((2, 3), numpy.float32)).all() and backplane.devices() else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert backplane.environment() is env


def test_a_stream_may_be_the_first_use_of_a_backend(env: backplane.Environment) -> None:
    if not any(device.name == "opencl" for device in env.devices):
        pytest.skip("there is no device 'opencl'")
    code = "import backplane; backplane.environment().stream('opencl').wait()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_devices_are_equal_if_they_are_the_same(env: backplane.Environment) -> None:
    first, again = env.device("cpu"), env.device("cpu:0")
    assert first == again
    assert len({first, again}) == 1
    assert first != env.device("null")
    assert first != backplane.Environment().device("cpu")
    assert first != "cpu"
    assert first == unittest.mock.ANY
    assert first != None  # noqa: E711


def test_objects_can_be_referred_to_weakly(env: backplane.Environment) -> None:
    model = env.load(models.relu())
    session = model.compile(devices="cpu")
    options = backplane.SessionOptions(devices=["cpu"])
    for each in (env, env.device("cpu"), env.candidates[0], model, model.inputs[0], session, session.bind(), backplane.Cancel(), options):
        assert weakref.ref(each)() is each


def released_view() -> memoryview:
    view = memoryview(b"model")
    view.release()
    return view


def test_arguments_that_cannot_be(env: backplane.Environment) -> None:
    run = env.load(models.relu()).compile(devices="cpu").bind()
    for call, kind, text in (
        (lambda: env.load(None), TypeError, "a model is a path, bytes or an onnx.ModelProto, not 'NoneType'"),
        (lambda: env.load(models.relu().graph), TypeError, "an onnx.ModelProto, not '.*GraphProto'"),
        (lambda: env.load(memoryview(models.relu().SerializeToString())[::2]), ValueError, r"not C-contiguous: pass bytes\(source\)"),
        (lambda: env.load(released_view()), ValueError, "released"),
        (lambda: env.load("model.onnx\0.png"), ValueError, r"source is 'model.onnx\\x00.png': a path cannot have a null character"),
        (lambda: env.load(b"", directory="/tmp\0x"), ValueError, "directory is .* a path cannot have a null character"),
        (lambda: env.trace("a\0b"), ValueError, "a path cannot have a null character"),
        (lambda: backplane.Environment(settings={"loader.cache": "/tmp\0x"}), backplane.InvalidArgument, "loader.cache has a null character"),
        (lambda: backplane.Environment(backend_files="x\0y"), backplane.InvalidArgument, "backend_files has a null character"),
        (lambda: env.from_dlpack(None), TypeError, "'NoneType' is not an array"),
        (lambda: env.put(None, device="cpu"), TypeError, "is None, not an array"),
        (lambda: backplane.Environment(threads=-1), ValueError, "threads is -1: a number of threads"),
        (lambda: env.allocate([2**63], "float32", device="cpu"), ValueError, "shape: an extent is 9223372036854775808"),
        (lambda: env.allocate("ab", "float32", device="cpu"), TypeError, "shape is 'ab': a sequence of numbers"),
        (lambda: run.set_dim("n", 2**63), ValueError, "the extent of 'n' is 9223372036854775808: a number of elements"),
        (lambda: run.unbind("nope"), backplane.NotFound, "no input or output 'nope'; it has: x -> y"),
    ):
        with pytest.raises(kind, match=text):
            call()


def test_warnings_are_shown_unless_the_log_is_chosen() -> None:
    code = "import backplane, models; backplane.load(models.relu()).compile(devices='cpu', pins={'op=Rleu': 'cpu'})"
    for variable, shown in ((None, True), ("discover=debug", True), ("error", False)):
        environment = {name: value for name, value in os.environ.items() if name not in ("BACKPLANE_LOG", "BACKPLANE_LOG_FILE")}
        if variable:
            environment["BACKPLANE_LOG"] = variable
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=os.path.dirname(__file__), env=environment, check=True
        )
        assert ("pin 'op=Rleu' places no node" in done.stderr) is shown


def test_settings_of_backends_that_do_not_exist(env: backplane.Environment) -> None:
    with pytest.warns(UserWarning, match="the setting cpuu.threads is ignored: there is no backend 'cpuu'; settings begin with .*cpu.*loader"):
        backplane.Environment(settings={"cpuu.threads": 2})
    with pytest.warns(UserWarning, match="the setting \udc80.\0x is ignored"):
        backplane.Environment(settings={"\udc80.\0x": 2})
    for name in ("nowhere.x", "cpu.nope", "loader.nope"):
        with pytest.raises(backplane.NotFound, match="nowhere.x|nope"):
            env.load(models.relu()).compile(devices="cpu", settings={name: 1})


def test_report_is_that_of_the_program(env: backplane.Environment) -> None:
    report = env.report()
    assert report["loader"]["abi"] == backplane.abi_version()
    assert [device["name"] for device in report["devices"]] == [device.name for device in env.devices]


def test_trace(env: backplane.Environment, tmp_path) -> None:
    session = env.load(models.relu()).compile(devices="cpu")
    path = tmp_path / "trace.json"
    with env.trace(path) as trace:
        with pytest.raises(RuntimeError, match="after the with block"):
            _ = trace.events
        session.run({"x": numpy.ones((2, 3), numpy.float32)})
    assert trace.events
    assert json.loads(path.read_text()) == json.loads(trace.text)


def test_one_trace_at_a_time(env: backplane.Environment, tmp_path) -> None:
    outer, inner = env.trace(tmp_path / "outer.json"), env.trace()
    with outer:
        for other in (inner, outer):
            with pytest.raises(backplane.BadState, match=r"the trace '.*outer\.json' has not ended") as error, other:
                pass
            assert (error.value.status, error.value.code) == ("BP_BAD_STATE", 0x0106)
        with backplane.Environment().trace():  # of another environment
            pass
    assert json.loads((tmp_path / "outer.json").read_text()) == json.loads(outer.text)
    with inner:
        pass
    assert inner.text


def test_importing_is_cheap() -> None:
    """Importing the package loads neither the loader nor rarely used modules."""
    code = (
        "import sys, backplane; bad = {'numpy', 'asyncio', 'json', 'onnx', 'torch', 'ml_dtypes'} & set(sys.modules); "
        "maps = open('/proc/self/maps').read(); assert 'libbackplane.so' not in maps; assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def ends_silently(code: str) -> None:
    """Runs code in a new process, which must succeed and print nothing on standard error, such as a report of leaks."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=os.path.dirname(__file__), check=False)
    assert (done.returncode, done.stderr) == (0, "")


def ends_cleanly(code: str) -> None:
    """Runs code in a new process, which must succeed. Objects of its daemon threads are leaked, which a build without NDEBUG prints."""
    subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL, cwd=os.path.dirname(__file__), check=True, timeout=60)


def test_sub_interpreters_are_refused() -> None:
    module = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    code = (
        f"import {module} as interpreters\n"
        "each = interpreters.create()\n"
        "try:\n"
        "    failure = interpreters.run_string(each, 'import backplane')\n"
        "except Exception as error:\n"
        "    failure = error\n"
        "assert 'not support sub-interpreters' in str(failure) or 'not support loading in subinterpreters' in str(failure), failure\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_nothing_is_leaked_at_the_end_of_a_script() -> None:
    code = (
        "import backplane, models, numpy\n"
        "def log(level, line): print(line)\n"
        "env = backplane.Environment(log=log)\n"
        "class Memory:\n"
        "    array = numpy.ones((2, 3), numpy.float32)\n"
        "    def __dlpack__(self, **kwargs): return self.array.__dlpack__(**kwargs)\n"
        "    def __dlpack_device__(self): return self.array.__dlpack_device__()\n"
        "run = env.load(models.relu()).compile(devices='cpu').bind({'x': Memory()})\n"
        "run()\n"
    )
    ends_silently(code)


def test_a_process_ends_cleanly_with_everything_alive() -> None:
    code = (
        "import backplane, models, numpy\n"
        "env = backplane.Environment(log=print)\n"
        "session = env.load(models.relu().SerializeToString()).compile()\n"
        "run = session.bind({'x': numpy.ones((2, 3), numpy.float32)})\n"
        "run()\n"
        "array = run.output('y')\n"
    )
    ends_silently(code)


@pytest.mark.parametrize("call", ["session.run({'x': x})", "env.load(models.relu()).compile(devices='cpu')"])
def test_daemon_threads_do_not_abort_the_process(call: str) -> None:
    """Threads that are within a call when the interpreter shuts down."""
    code = (
        "import threading, time, backplane, models, numpy\n"
        "env = backplane.Environment()\n"
        "x = numpy.ones((2, 3), numpy.float32)\n"
        "session = env.load(models.relu()).compile(devices='cpu')\n"
        "started = threading.Semaphore(0)\n"
        "def forever():\n"
        "    while True:\n"
        f"        {call}\n"
        "        started.release()\n"
        "for _ in range(4): threading.Thread(target=forever, daemon=True).start()\n"
        "for _ in range(8): started.acquire()\n"
    )
    for _ in range(5):  # where the threads are differs
        ends_cleanly(code)


def test_a_daemon_thread_may_execute_python_code_below_a_call_when_the_process_ends() -> None:
    """Python ends such a thread by unwinding its stack, unless the process waits until the call has returned."""
    code = (
        "import sys, threading, time, backplane\n"
        "env = backplane.Environment()\n"
        "started = threading.Event()\n"
        "class Path:\n"
        "    def __fspath__(self):\n"
        "        started.set()\n"
        "        end = time.monotonic() + 0.5\n"
        "        while time.monotonic() < end: pass\n"
        "        return 'missing.onnx'\n"
        "class Out:\n"
        "    closed = False\n"
        "    def flush(self): time.sleep(0.2)  # during the shutdown too, where it releases the lock\n"
        "sys.stdout = Out()\n"
        "threading.Thread(target=lambda: env.load(Path()), daemon=True).start()\n"
        "started.wait()\n"
    )
    ends_cleanly(code)


def test_the_process_ends_although_a_daemon_thread_waits_below_a_call() -> None:
    code = (
        "import threading, backplane\n"
        "env = backplane.Environment()\n"
        "started = threading.Event()\n"
        "class Path:\n"
        "    def __fspath__(self):\n"
        "        started.set()\n"
        "        threading.Event().wait()\n"
        "threading.Thread(target=lambda: env.load(Path()), daemon=True).start()\n"
        "started.wait()\n"
    )
    ends_cleanly(code)


def test_an_earlier_exit_function_may_wait_for_a_daemon_thread() -> None:
    code = (
        "import atexit, threading\n"
        "stop = threading.Event()\n"
        "def end():\n"
        "    stop.set()\n"
        "    worker.join()\n"
        "atexit.register(end)\n"
        "import backplane, models\n"
        "env = backplane.Environment()\n"
        "started = threading.Event()\n"
        "def work():\n"
        "    while not stop.is_set():\n"
        "        env.load(models.relu())\n"
        "        started.set()\n"
        "worker = threading.Thread(target=work, daemon=True)\n"
        "worker.start()\n"
        "started.wait()\n"
    )
    ends_cleanly(code)


def test_daemon_threads_whose_calls_fail_do_not_abort_the_process() -> None:
    """Errors become exceptions in Python code."""
    code = (
        "import sys, threading, time, backplane, backplane.errors\n"
        "env = backplane.Environment()\n"
        "started = threading.Event()\n"
        "make_error = backplane.errors.make_error\n"
        "def slow(*arguments):\n"
        "    started.set()\n"
        "    end = time.monotonic() + 0.5\n"
        "    while time.monotonic() < end: pass\n"
        "    return make_error(*arguments)\n"
        "backplane.errors.make_error = slow\n"
        "class Out:\n"
        "    closed = False\n"
        "    def flush(self): time.sleep(0.2)  # during the shutdown too, where it releases the lock\n"
        "sys.stdout = Out()\n"
        "def load():\n"
        "    try: env.load('missing.onnx')\n"
        "    except backplane.NotFound: pass  # Python itself may abort where a daemon thread prints\n"
        "threading.Thread(target=load, daemon=True).start()\n"
        "started.wait()\n"
    )
    ends_cleanly(code)
