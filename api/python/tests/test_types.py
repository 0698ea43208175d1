# SPDX-License-Identifier: Apache-2.0
"""The types of the package, as a checker sees them."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

import backplane

pytest.importorskip("mypy", reason="mypy is missing: pip install mypy")

PACKAGE = pathlib.Path(backplane.__file__).parent
USE = """
import backplane
import numpy
from backplane.typing import SupportsDLPack, Value

x: Value = numpy.zeros((2, 3), numpy.float32)
session = backplane.load("model.onnx").compile(devices="cpu", dims={"n": (1, 8)})
results: dict[str, numpy.ndarray] = session.run({"x": x, "scale": 0.5, "parts": [x, x]})
run = session.bind({"x": numpy.zeros(3)}, outputs={"y": numpy.empty(3)})
array: backplane.Array = backplane.from_dlpack(numpy.zeros(3))
again: backplane.Array = backplane.from_dlpack(array)
seen = numpy.from_dlpack(array)
as_dlpack: SupportsDLPack = array
as_array = numpy.asarray(array)
session.refit({"w": array})
run.set_dim("n", 3)
output = run.output("y").numpy()
device = backplane.environment().device("cpu")
why: str = session.explain().why(backplane.load("m").explain(devices=[device, "cpu"], fallback="forbid").nodes[0])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    """The working folder of the checker, with its cache: the types of NumPy and Torch are read once."""
    return tmp_path_factory.mktemp("types")


def check(*arguments: str, folder: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "--no-error-summary", *arguments],
        capture_output=True, text=True, cwd=folder, env={**os.environ, "MYPYPATH": str(PACKAGE.parent)}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_the_package_is_typed(folder) -> None:
    names = [file.stem for file in PACKAGE.glob("*.py") if file.stem != "__init__"]  # which all of them import
    if importlib.util.find_spec("torch") is None:
        names.remove("torch_backend")
    check(*(f"-mbackplane.{name}" for name in names), folder=folder)


def test_a_program_that_uses_it_is_typed(folder) -> None:
    (folder / "use.py").write_text(USE)
    check("use.py", folder=folder)
