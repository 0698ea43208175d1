# SPDX-License-Identifier: Apache-2.0
"""Every Python block of docs/guides/python.md runs unchanged."""

from __future__ import annotations

import ast
import asyncio
import inspect
import pathlib
import re

import numpy
import onnx
import pytest

import backplane
import models

GUIDE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "guides" / "python.md"
BLOCKS = re.findall(r"^## ([^\n]*)$|^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def blocks() -> list[tuple[str, str]]:
    """Each block with the heading above it."""
    heading, found = "Start", []
    for title, code in BLOCKS:
        if code:
            found.append((heading, code))
        else:
            heading = title
    return found


@pytest.mark.parametrize(("heading", "code"), blocks(), ids=[heading for heading, _ in blocks()])
def test_block(heading: str, code: str, tmp_path, monkeypatch, env: backplane.Environment) -> None:
    if "opencl" in code and not any(device.name == "opencl" for device in env.devices):
        pytest.skip("there is no OpenCL device")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    weight = numpy.ones((3, 4), numpy.float32)
    shape = [1, 3, 224, 224]
    proto = models.relu(shape) if heading == "Start" else models.affine(weight, weight[0])
    onnx.save(proto, tmp_path / "model.onnx")
    model = backplane.load("model.onnx")
    x = numpy.ones(shape if heading == "Start" else (8, 3), numpy.float32)
    session = model.compile(devices="cpu")
    names = {
        "backplane": backplane,
        "numpy": numpy,
        "model": model,
        "session": session,
        "run": session.bind({"x": x}),
        "x": x,
        "array": x,
        "batches": [x, x + 1],
    }
    if "torch" in code:
        torch = pytest.importorskip("torch", minversion="2.6")
        names["model"], names["x"] = torch.nn.Linear(3, 4), torch.ones(8, 3)
    compiled = compile(code, str(GUIDE), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    pending = eval(compiled, names)
    if inspect.iscoroutine(pending):
        asyncio.run(pending)
