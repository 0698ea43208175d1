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


def _named(node: onnx.NodeProto, inputs: Any) -> dict[str, Any]:
    """The values of a node's inputs by name, without omitted ones."""
    names = list(node.input)
    if isinstance(inputs, Mapping):
        unknown = [name for name in inputs if name not in names]
        if unknown:
            raise ValueError(f"the node has no input {unknown[0]!r}; it has: {', '.join(names)}")
        return {name: value for name, value in inputs.items() if value is not None}
    given = inputs if isinstance(inputs, Sequence) else [inputs]
    if len(given) != len(names):  # without those that the node omits
        names = [name for name in names if name]
    if len(given) != len(names):
        raise ValueError(f"there are {len(given)} inputs, but the node has {len(names)}: {', '.join(names)}")
    return {name: value for name, value in zip(names, given, strict=True) if name and value is not None}


def _sequences(node: onnx.NodeProto, version: int) -> set[str]:
    """The inputs that the operator defines as sequences."""
    try:
        formal = onnx.defs.get_schema(node.op_type, version, node.domain).inputs
    except onnx.defs.SchemaError:  # an operator that this package does not define: the loader explains the error
        return set()
    return {name for name, each in zip(node.input, formal, strict=False) if all(kind.startswith("seq(") for kind in each.types)}


def _declared(name: str, value: numpy.ndarray | list[numpy.ndarray], element: numpy.dtype) -> onnx.ValueInfoProto:
    """The declaration of an input. `element` is the type of an empty sequence's elements."""
    if not isinstance(value, list):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
    dtype = value[0].dtype if value else element
    return helper.make_tensor_sequence_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), None)


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
    def is_compatible(cls, model: onnx.ModelProto, device: str | None = None, **options: Any) -> bool:
        """Whether `prepare` with the same arguments would find every node supported. Compiles nothing."""
        name = _device_name(device or cls.default_device)
        try:
            placed = backplane.load(model).explain(**{"devices": name, "fallback": "forbid", **options})
        except (backplane.InvalidModel, backplane.NotFound, backplane.Unsupported):
            return False
        return not placed.uncovered

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
        """Runs one operator of the newest operator set, or of `opset_version`. Inputs are in the node's order or by name; an optional one
        that is None is left out. A list is a sequence for inputs that must be sequences, otherwise an array."""
        version = options.pop("opset_version", onnx.defs.onnx_opset_version())
        domain_version = options.pop("domain_version", 1)
        named = _named(node, inputs)
        sequences = _sequences(node, domain_version if node.domain else version)
        for name in sequences & named.keys():
            if not isinstance(named[name], Sequence) or not all(hasattr(element, "__len__") or hasattr(element, "dtype") for element in named[name]):
                raise TypeError(f"input {name!r} is a sequence: a list of arrays is expected")
        values = {
            name: [numpy.asarray(element) for element in value] if name in sequences else numpy.asarray(value)
            for name, value in named.items()
        }
        kept = onnx.NodeProto()
        kept.CopyFrom(node)
        kept.input[:] = [name if name in values else "" for name in node.input]
        element = next((value.dtype for value in values.values() if not isinstance(value, list)), numpy.dtype(numpy.float32))
        declared = [_declared(name, value, element) for name, value in values.items()]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([kept], "node", declared, results)
        opsets = [helper.make_opsetid("", version)]
        if node.domain:
            opsets.append(helper.make_opsetid(node.domain, domain_version))
        model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets))
        return cls.run_model(model, values, device, **options)

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
        def is_compatible(cls, model: onnx.ModelProto, device: str | None = None, **options: Any) -> bool:
            return super().is_compatible(model, name, **options)

        @classmethod
        def prepare(cls, model: onnx.ModelProto, device: str | None = None, **options: Any) -> BackplaneRep:
            return super().prepare(model, name, **options)

        @classmethod
        def supports_device(cls, device: str) -> bool:
            return device == "CPU" and super().supports_device(name)

    OneDevice.__name__ = OneDevice.__qualname__ = f"Backend_{name}"
    return OneDevice


is_compatible = BackplaneBackend.is_compatible
prepare = BackplaneBackend.prepare
run_model = BackplaneBackend.run_model
run_node = BackplaneBackend.run_node
supports_device = BackplaneBackend.supports_device
