# SPDX-License-Identifier: Apache-2.0
"""When a graph of torch.compile falls back to eager mode. The exporter and torch itself are stand-ins, so these run without torch."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator

import pytest

import backplane


class Tensor:
    requires_grad = False

    def detach(self) -> Tensor:
        return self

    contiguous = detach

    def is_conj(self) -> bool:
        return False

    is_neg = is_conj


@pytest.fixture
def torch_backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """The module backplane.torch_backend with a torch that has only what a call of a captured graph needs."""
    torch = types.ModuleType("torch")
    torch.nn = types.SimpleNamespace(Module=object)
    torch.Tensor = Tensor
    torch.is_grad_enabled = lambda: False
    torch._dynamo = types.SimpleNamespace(list_backends=lambda: ["backplane"])
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.delitem(sys.modules, "backplane.torch_backend", raising=False)
    yield importlib.import_module("backplane.torch_backend")
    sys.modules.pop("backplane.torch_backend", None)


class FixedExtents:
    """A session that was exported for other extents than those of the inputs, so every run is refused."""

    def run(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        raise backplane.TypeMismatch("input 'x': dimension 0 is 3, but must be 2")


def graph_of(module: types.ModuleType, fallback_to_eager: bool) -> object:
    """A graph whose first export succeeds, and whose second one, for other extents, does not."""
    exports = [FixedExtents()]

    class Graph(module._Graph):
        def __init__(self) -> None:
            self.eager = lambda x: ("eager", x)
            self.fallback_to_eager = fallback_to_eager
            self.session, self.failed, self.weights, self.names, self.kept = None, False, {}, ["x"], [0]
            self.versions, self.samples = [], []

        def _export(self, inputs: tuple) -> FixedExtents:
            if not exports:
                raise RuntimeError("the extents cannot be exported")
            return exports.pop()

    return Graph()


def test_a_second_export_that_fails_falls_back(torch_backend: types.ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    graph, x = graph_of(torch_backend, fallback_to_eager=True), Tensor()
    assert graph(x) == ("eager", x)
    assert [record.getMessage() for record in caplog.records] == ["a graph runs in eager mode: RuntimeError: the extents cannot be exported"]
    assert graph(x) == ("eager", x)  # without another export
    assert len(caplog.records) == 1


def test_a_second_export_that_fails_raises_without_fallback(torch_backend: types.ModuleType) -> None:
    with pytest.raises(RuntimeError, match="cannot be exported"):
        graph_of(torch_backend, fallback_to_eager=False)(Tensor())
