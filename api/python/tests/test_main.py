# SPDX-License-Identifier: Apache-2.0
"""`python -m backplane`: the program, whose own tests are in loader/tools."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import numpy
import onnx
import pytest

import backplane
import models
from backplane.__main__ import program

PROGRAM = program(pathlib.Path(backplane.__file__).parent)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    """A working directory with a model, an input and what the model computes from it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BACKPLANE_DISABLE", "opencl")  # PoCL takes half a second to start
    onnx.save(models.relu(["n", 3]), "relu.onnx")
    numpy.save("x.npy", numpy.array([[-1, 0, 2]], numpy.float32))
    numpy.save("x64.npy", numpy.array([[-1, 0, 2]], numpy.float64))
    numpy.save("y.npy", numpy.array([[0, 0, 2]], numpy.float32))


def run(*words: str, program: tuple[str, ...] = (sys.executable, "-m", "backplane")) -> tuple[int, str, str]:
    done = subprocess.run([*program, *words], capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("list", 0),
        ("list --summary", 0),
        ("why cpu", 0),
        ("why nothing", 1),
        ("info relu.onnx --json", 0),
        ("info nowhere.onnx --json", 1),
        ("explain relu.onnx --device cpu --dim n=4 --pin op=Relu=cpu", 0),
        ("explain relu.onnx --device null", 1),  # the null backend supports no symbolic dimension
        ("explain relu.onnx --pin x", 2),
        ("run relu.onnx --device tpu", 2),
        ("run relu.onnx --dim m=2", 2),
        ("run relu.onnx --input x=1x3xf32=1,2", 2),
        ("run relu.onnx --input x=x64.npy", 2),
        ("nonsense", 2),
        ("", 2),
        ("--version", 0),
    ],
)
def test_it_prints_and_returns_what_the_program_does(words: str, status: int) -> None:
    printed = run(*words.split())
    assert printed == run(*words.split(), program=(PROGRAM,))
    assert printed[0] == status


@pytest.mark.parametrize(
    "words",
    [
        "run relu.onnx x.npy --expect y.npy --rtol 1e-6",
        "run relu.onnx --input x=x64.npy --cast --expect y=y.npy",
        "run relu.onnx --input x=1x3xf32=-1,0,2 --expect y.npy",
        "run relu.onnx --dim n=4 --seed 2 --output y.npz",
        "diff relu.onnx --device cpu,cpu",
        "bench relu.onnx --runs 5 --streams 2 --json",
        "trace relu.onnx --out trace.json",
        "profile relu.onnx --device cpu",
    ],
)
def test_commands_of_the_program(words: str, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    status, out, err = run(*words.split())
    assert status == 0, out + err


def test_outputs() -> None:
    assert run("run", "relu.onnx", "x.npy", "--output", "y.npz")[0] == 0
    assert numpy.load("y.npz")["y"].tolist() == [[0, 0, 2]]
    numpy.save("y.npy", numpy.array([[0, 0, 3]], numpy.float32))
    status, out, _ = run("run", "relu.onnx", "x.npy", "--expect", "y.npy", "--json")
    assert (status, json.loads(out)["expected"][0]["matches"]) == (1, False)


def test_a_closed_pipe_ends_it() -> None:
    """Python ignores SIGPIPE, and the program must not inherit that."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as closed:
        both = [sys.executable, "-m", "backplane", "list"], [PROGRAM, "list"]
        status = [subprocess.run(words, stdout=closed, stderr=subprocess.DEVNULL, check=False).returncode for words in both]
    assert status[0] == status[1]


def test_conform_without_the_harness(tmp_path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").symlink_to(pathlib.Path(PROGRAM).parent.parent / "lib")
    (tmp_path / "bin/backplane").write_bytes(pathlib.Path(PROGRAM).read_bytes())
    (tmp_path / "bin/backplane").chmod(0o755)
    status, _, err = run("conform", "cpu", program=(str(tmp_path / "bin/backplane"),))
    assert status == 1
    assert "apt install backplane-conform" in err


def test_where_the_program_is(tmp_path) -> None:
    for package, file in (
        ("venv/lib/python3.12/site-packages/backplane", "venv/lib/python3.12/site-packages/backplane/bin/backplane"),
        ("build/dev/python/backplane", "build/dev/bin/backplane"),
        ("usr/lib/python3/dist-packages/backplane", "usr/bin/backplane"),
    ):
        with pytest.raises(FileNotFoundError, match="apt install backplane-tools"):
            program(tmp_path / package)
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch()
        assert program(tmp_path / package) == str(tmp_path / file)
    with pytest.raises(FileNotFoundError, match="is in none of"):
        program(pathlib.Path("/backplane"))
