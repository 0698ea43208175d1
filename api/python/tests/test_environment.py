# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
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
