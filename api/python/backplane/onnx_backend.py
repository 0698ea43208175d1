# SPDX-License-Identifier: Apache-2.0
"""ONNX's backend interface (`onnx.backend.base.Backend`) over any device of Backplane.

    import backplane.onnx_backend as backend
    outputs = backend.prepare(model, device="CPU").run([x])

A device is ONNX's "CPU" or "CUDA", or a name of `backplane.devices()`: "opencl:1". `Backend(name)` is a class for one device, as ONNX's
backend test suite requires it: see api/python/tests/onnx_suite.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
import onnx
from onnx import helper
from onnx.backend.base import Backend as _Backend
from onnx.backend.base import BackendRep as _BackendRep
from onnx.backend.base import namedtupledict

import backplane

_NAMES = {"CPU": "cpu", "CUDA": "cuda"}


def _device_name(device: str) -> str:
    """Converts ONNX's names "CPU" and "CUDA:0". All others are names of Backplane's devices."""
    kind, _, index = device.partition(":")
    if kind not in _NAMES:
        return device
    return _NAMES[kind] if index in ("", "0") else f"{_NAMES[kind]}:{index}"


class BackplaneRep(_BackendRep):
    """A compiled model."""

    def __init__(self, session: backplane.Session) -> None:
        self.session = session
        self._inputs = [value.name for value in session.inputs]
        self._outputs = [value.name for value in session.outputs]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs with inputs in the model's order, by name, or one array for a model of one input. Returns the outputs in the model's
        order; they can also be read by name."""
        if isinstance(inputs, Mapping):
            named = dict(inputs)
        elif isinstance(inputs, Sequence) and not isinstance(inputs, str | bytes):
            if len(inputs) > len(self._inputs):
                raise ValueError(f"there are {len(inputs)} inputs, but the model has {len(self._inputs)}: {', '.join(self._inputs)}")
            named = dict(zip(self._inputs, inputs, strict=False))
        else:
            named = {self._inputs[0]: inputs}
        results = self.session.run(named)
        return namedtupledict("Outputs", self._outputs)(*(results[name] for name in self._outputs))


class BackplaneBackend(_Backend):
    """All nodes run on the device that `prepare` names, or preparing raises `backplane.Unsupported` with the device's reason (unless its
    `options` have another `fallback`)."""

    default_device = "CPU"

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str | None = None, **options: Any) -> BackplaneRep:
        """Compiles a model for a device. `options` are those of `backplane.Model.compile`."""
        name = _device_name(device or cls.default_device)
        loaded = backplane.load(model)
        return BackplaneRep(loaded.compile(**{"devices": name, "fallback": "forbid", **options}))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str | None = None, **options: Any) -> tuple[Any, ...]:
        """`prepare` and one run."""
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str | None = None,
        outputs_info: Sequence[tuple[numpy.dtype, tuple[int, ...]]] | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        """Runs one operator of the newest operator set, or of `opset_version`, on arrays. An optional input that is None is left out."""
        version = options.pop("opset_version", onnx.defs.onnx_opset_version())
        given = inputs if isinstance(inputs, Sequence) else [inputs]
        names = list(node.input)
        if len(given) != len(names):  # without those that the node leaves out
            names = [name for name in names if name]
        if len(given) != len(names):
            raise ValueError(f"there are {len(given)} inputs, but the node has {len(names)}: {', '.join(names)}")
        arrays = {name: numpy.asarray(array) for name, array in zip(names, given, strict=True) if name and array is not None}
        kept = onnx.NodeProto()
        kept.CopyFrom(node)
        kept.input[:] = [name if name in arrays else "" for name in node.input]
        declared = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in arrays.items()
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([kept], "node", declared, results)
        opsets = [helper.make_opsetid("", version)]
        if node.domain:
            opsets.append(helper.make_opsetid(node.domain, options.pop("domain_version", 1)))
        model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets))
        return cls.run_model(model, arrays, device, **options)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether this machine has the device."""
        name = _device_name(device).removesuffix(":0")
        return any(each.name == name for each in backplane.devices())


def Backend(name: str) -> type[BackplaneBackend]:
    """A class whose calls all use the device `name`, whichever they name: ONNX's test suite names only "CPU" and "CUDA"."""

    class OneDevice(BackplaneBackend):
        default_device = name

        @classmethod
        def prepare(cls, model: onnx.ModelProto, device: str | None = None, **options: Any) -> BackplaneRep:
            return super().prepare(model, name, **options)

        @classmethod
        def supports_device(cls, device: str) -> bool:
            return device == "CPU" and super().supports_device(name)

    OneDevice.__name__ = OneDevice.__qualname__ = f"Backend_{name}"
    return OneDevice


prepare = BackplaneBackend.prepare
run_model = BackplaneBackend.run_model
run_node = BackplaneBackend.run_node
supports_device = BackplaneBackend.supports_device
