# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="backplane"). Skipped where torch is missing: scripts/setup.sh --with torch installs it."""

from __future__ import annotations

import logging
import subprocess
import sys

import numpy
import pytest

torch = pytest.importorskip("torch", minversion="2.6", reason="torch 2.6 or later is missing: scripts/setup.sh --with torch")
pytest.importorskip("onnxscript", reason="onnxscript is missing: scripts/setup.sh --with torch")

import backplane
from backplane import torch_backend
from backplane.torch_backend import compile_graph

STRICT = {"devices": "cpu", "fallback_to_eager": False}


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch.manual_seed(1)
    torch._dynamo.reset()


def compiled(module: torch.nn.Module, **options: object) -> torch.nn.Module:
    """Without `fullgraph` Dynamo would run what it cannot capture in eager mode, and call no backend."""
    return torch.compile(module.eval(), backend=compile_graph, fullgraph=True, options={**STRICT, **options})


def same(one: torch.Tensor, other: torch.Tensor, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


class Block(torch.nn.Module):
    """A residual block as in ResNet-18."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.first = torch.nn.Sequential(torch.nn.Conv2d(channels, out, 3, stride, 1, bias=False), torch.nn.BatchNorm2d(out), torch.nn.ReLU())
        self.second = torch.nn.Sequential(torch.nn.Conv2d(out, out, 3, 1, 1, bias=False), torch.nn.BatchNorm2d(out))
        self.short = torch.nn.Sequential()
        if stride != 1 or channels != out:
            self.short = torch.nn.Sequential(torch.nn.Conv2d(channels, out, 1, stride, bias=False), torch.nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(self.first(x)) + self.short(x))


def resnet18() -> torch.nn.Module:
    layers = [torch.nn.Conv2d(3, 64, 7, 2, 3, bias=False), torch.nn.BatchNorm2d(64), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(channels, out, stride), Block(out, out, 1)]
        channels = out
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(512, 1000))


def test_resnet18() -> None:
    model = resnet18().eval()
    x = torch.randn(2, 3, 96, 96)
    with torch.inference_mode():
        same(compiled(model)(x), model(x), 1e-3)


def test_bert_encoder() -> None:
    layer = torch.nn.TransformerEncoderLayer(128, 4, 512, activation="gelu", batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x = torch.randn(2, 16, 128)
    with torch.no_grad():
        same(compiled(model)(x), model(x))


class Recurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(16, 32, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


def test_lstm() -> None:
    model = Recurrent().eval()
    x = torch.randn(3, 10, 16)
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        same(compiled(model)(x), model(x))


def test_dynamic_batch() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()
    built = []

    def count(graph: torch.fx.GraphModule, inputs: list, **settings: object) -> object:
        built.append(graph)
        return compile_graph(graph, inputs, **settings)

    run = torch.compile(model, backend=count, dynamic=True, options=dict(STRICT))
    with torch.no_grad():
        for batch in (2, 3, 7, 5):
            x = torch.randn(batch, 4)
            same(run(x), model(x))
    assert len(built) == 1


def test_reshaping_by_an_open_dimension() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0] * 2, -1).softmax(-1)

    run = torch.compile(function, backend=compile_graph, dynamic=True, options=dict(STRICT))
    for batch in (2, 3, 4):
        x = torch.randn(batch, 6)
        same(run(x), function(x))


def test_changed_weights_are_seen() -> None:
    model = torch.nn.Linear(3, 2).eval()
    run = compiled(model)
    x = torch.randn(2, 3)
    with torch.no_grad():
        same(run(x), model(x))
        model.weight.mul_(2)
        same(run(x), model(x))


class Scaled(torch.nn.Module):
    """x · w, with a weight that may have any strides."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(weight, requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


WEIGHTS = {
    "whole": lambda: torch.rand(40, 50) + 1,
    "transposed": lambda: (torch.rand(50, 40) + 1).T,
    "columns": lambda: (torch.rand(40, 90) + 1)[:, 20:70],
    "every other": lambda: (torch.rand(40, 100) + 1)[:, ::2],
    "one": lambda: torch.rand(1, 1) + 1,
    "float16": lambda: (torch.rand(40, 50) + 1).half(),
    "int8": lambda: torch.randint(1, 9, (40, 50), dtype=torch.int8),
}


@pytest.mark.parametrize("kind", ["whole", "every other"])
def test_uncounted_writes_of_whole_weights_are_seen(kind: str) -> None:
    model = Scaled(WEIGHTS[kind]()).eval()
    run = compiled(model)
    x = torch.rand(40, 50)
    with torch.no_grad():
        same(run(x), model(x))
        model.weight.data.mul_(2)
        same(run(x), model(x))
        numpy.multiply(model.weight.numpy(), 2, out=model.weight.numpy())
        same(run(x), model(x))


@pytest.mark.parametrize("kind", WEIGHTS)
def test_samples_see_writes(kind: str) -> None:
    weight = WEIGHTS[kind]()
    sample = torch_backend._sample(weight)
    before = sample.tobytes()
    weight.data.mul_(2)
    assert sample.tobytes() != before


def test_tensors_of_inference_mode_are_seen() -> None:
    with torch.inference_mode():
        model = Scaled(torch.ones(4, 4)).eval()
        run = compiled(model)
        same(run(torch.ones(4, 4)), torch.ones(4, 4))
        model.weight.mul_(2)
        same(run(torch.ones(4, 4)), 2 * torch.ones(4, 4))


def test_samples() -> None:
    def sample(tensor: torch.Tensor) -> list[int]:
        return torch_backend._sample(tensor).ravel().tolist()

    numbers = torch.arange(46, dtype=torch.int64)
    assert sample(numbers) == list(range(0, 46, 3))
    assert sample(numbers[:6].view(2, 3).T) == [0, 1, 2, 3, 4, 5]
    assert sample(numbers[:45].view(5, 9)[:, :2]) == [0, 9, 18, 27, 36]
    assert sample(numbers[7:8].expand(5)) == [7]
    assert sample(numbers[:0]) == []
    assert torch_backend._sample(torch.ones(2, dtype=torch.complex128)).tobytes() == numpy.ones(2, complex).tobytes()
    assert torch_backend._sample(torch.ones(2, dtype=torch.bfloat16)).tolist() == [0x3F80, 0x3F80]
    before = torch_backend._sample(numbers)
    numbers.add_(1)
    assert before[0] == 1  # it is a view


def test_the_name_of_the_backend(tmp_path) -> None:
    """With the entry point of a wheel, torch registers the backend itself; otherwise importing the module does it."""
    model = torch.nn.Linear(3, 2).eval()
    with torch.no_grad():
        x = torch.randn(2, 3)
        same(torch.compile(model, backend="backplane", fullgraph=True, options=STRICT)(x), model(x))
    wheel = tmp_path / "backplane-0.dist-info"
    wheel.mkdir()
    (wheel / "METADATA").write_text("Name: backplane\nVersion: 0\n")
    (wheel / "entry_points.txt").write_text("[torch_dynamo_backends]\nbackplane = backplane.torch_backend:compile_graph\n")
    code = (
        "import sys, torch; sys.path.append(sys.argv[1])\n"
        "print(torch.compile(lambda x: x + 1, backend='backplane', options={'fallback_to_eager': False})(torch.ones(1)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "tensor([2.])\n", done.stderr
    assert "leaked" not in done.stderr  # the session of a function, which Dynamo keeps


def test_types() -> None:
    def function(x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.where(mask, x, -x), mask.logical_not()

    run = torch.compile(function, backend=compile_graph, options=dict(STRICT))
    for dtype in (torch.float32, torch.float64, torch.int64, torch.float16, torch.bfloat16):
        x, mask = torch.tensor([1, 2, 3]).to(dtype), torch.tensor([True, False, True])
        results = run(x, mask)
        assert torch.equal(results[0], function(x, mask)[0])
        assert torch.equal(results[1], ~mask)


def test_gradients_run_in_eager_mode() -> None:
    model = torch.nn.Linear(3, 2)
    run = torch.compile(model, backend=compile_graph, options={"devices": "cpu"})
    run(torch.randn(2, 3)).sum().backward()
    assert model.weight.grad is not None


def test_writes_to_inputs_run_in_eager_mode(caplog: pytest.LogCaptureFixture) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2

    run = torch.compile(function, backend=compile_graph, options={"devices": "cpu"})
    x = torch.zeros(3)
    with caplog.at_level(logging.WARNING, "backplane.torch"):
        assert torch.equal(run(x), torch.full((3,), 2.0))
    assert torch.equal(x, torch.ones(3))
    assert "eager" in caplog.text


def test_what_cannot_be_compiled_says_why(caplog: pytest.LogCaptureFixture) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) * 2

    x = torch.randn(3, dtype=torch.float64)
    with caplog.at_level(logging.WARNING, "backplane.torch"):
        run = torch.compile(function, backend=compile_graph, options={"devices": "null"})
        same(run(x), function(x))
    assert "null" in caplog.text
    torch._dynamo.reset()
    with pytest.raises(backplane.Unsupported):
        torch.compile(function, backend=compile_graph, options={"devices": "null", "fallback_to_eager": False})(x)


def test_tensors_are_bound_without_a_copy() -> None:
    import models

    x, y = torch.tensor([[-1.0, 0, 1], [2, -3, 4]]), torch.zeros(2, 3)
    run = backplane.load(models.relu()).compile(devices="cpu").bind({"x": x}, {"y": y})
    run()
    assert torch.equal(y, x.relu())
    assert backplane.from_dlpack(x).address == x.data_ptr()
    run = backplane.load(models.relu()).compile(devices="cpu").bind({"x": x})
    run()
    output = run.output("y")
    assert torch.from_dlpack(output).data_ptr() == output.address
