# SPDX-License-Identifier: Apache-2.0
"""`torch.compile(model, backend="backplane")`: each graph that Dynamo captures is exported by `torch.onnx` and compiled here.

    import torch
    import backplane.torch_backend  # registers the backend; not needed with a wheel, whose backend torch finds by itself
    compiled = torch.compile(model.eval(), backend="backplane", options={"devices": "cpu"})
    with torch.inference_mode():
        y = compiled(x)

`options` are those of `backplane.Model.compile`. A graph that cannot be exported or compiled runs in eager mode, and a warning of the
logger "backplane.torch" says why: for example, it mutates inputs or has operators that ONNX lacks. A call that needs gradients runs in
eager mode too, without a warning. With {"fallback_to_eager": False} both raise instead. Parameters and buffers become weights; when one
has changed, the graph is compiled again. Torch does not count writes through `.data` or a NumPy view, or to tensors that were made in
torch.inference_mode. Such a write to a whole tensor in the CPU's memory is noticed, because 16 of its elements are compared at each
call; after a write to a few elements call `torch._dynamo.reset()`. Dimensions that Dynamo marks as dynamic become symbolic dimensions.
"""

from __future__ import annotations

import atexit
import logging
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch

import backplane

_log = logging.getLogger("backplane.torch")


class NotExportable(Exception):
    """A graph cannot be exported, so it runs in eager mode. The text has the reason."""


def _symbols_of(tensor: Any) -> list[tuple[int, str]]:
    """The symbolic dimensions of a placeholder's example tensor, as pairs of axis and symbol."""
    shape = getattr(tensor, "shape", ())
    return [(axis, str(extent)) for axis, extent in enumerate(shape) if isinstance(extent, torch.SymInt) and extent.node.maybe_as_int() is None]


def _example(node: torch.fx.Node) -> Any:
    return node.meta.get("example_value", node.meta.get("val"))


def _is_static(node: torch.fx.Node, value: Any) -> bool:
    """Whether an input is a parameter or a buffer of the module."""
    if isinstance(value, torch.nn.Parameter):
        return True
    return bool((node.meta.get("tensor_dict") or {}).get("_dynamo_static_input_type"))


def _encoder_layer(
    x: torch.Tensor,
    width: int,
    heads: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    out_weight: torch.Tensor,
    out_bias: torch.Tensor,
    gelu: bool,
    norm_first: bool,
    epsilon: float,
    *parameters: Any,
    mask: torch.Tensor | None = None,
    mask_type: int | None = None,
) -> torch.Tensor:
    """Computes torch.nn.TransformerEncoderLayer by single operators: in inference, torch calls one fused operator, which ONNX lacks."""
    functional = torch.nn.functional
    norm1_weight, norm1_bias, norm2_weight, norm2_bias, up_weight, up_bias, down_weight, down_bias, *masks = parameters
    if mask is not None or any(each is not None for each in masks):
        raise NotExportable("torch fused a TransformerEncoderLayer that has a mask: call torch.backends.mha.set_fastpath_enabled(False)")

    def attention(value: torch.Tensor) -> torch.Tensor:
        batch, length = value.shape[0], value.shape[1]
        pieces = functional.linear(value, qkv_weight, qkv_bias).reshape(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(pieces[0], pieces[1], pieces[2])
        return functional.linear(mixed.transpose(1, 2).reshape(batch, length, width), out_weight, out_bias)

    def feed_forward(value: torch.Tensor) -> torch.Tensor:
        inner = functional.linear(value, up_weight, up_bias)
        return functional.linear(functional.gelu(inner) if gelu else functional.relu(inner), down_weight, down_bias)

    def norm1(value: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(value, (width,), norm1_weight, norm1_bias, epsilon)

    def norm2(value: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(value, (width,), norm2_weight, norm2_bias, epsilon)

    if norm_first:
        x = x + attention(norm1(x))
        return x + feed_forward(norm2(x))
    x = norm1(x + attention(x))
    return norm2(x + feed_forward(x))


class _Frozen(torch.nn.Module):
    """A graph that owns its parameters and buffers."""

    def __init__(self, graph: torch.fx.GraphModule, weights: dict[int, torch.Tensor], count: int) -> None:
        super().__init__()
        self.graph_module = graph
        self.count = count
        self.names = {}
        for index, tensor in weights.items():
            self.names[index] = f"weight_{index}"
            self.register_buffer(self.names[index], tensor.detach())

    def forward(self, *inputs: torch.Tensor) -> Any:
        given = iter(inputs)
        return self.graph_module(*(getattr(self, self.names[i]) if i in self.names else next(given) for i in range(self.count)))


_graphs: weakref.WeakSet[_Graph] = weakref.WeakSet()


@atexit.register
def _release() -> None:
    """Ends the sessions before the interpreter does: Dynamo keeps the graphs of functions until after nanobind looks for leaks."""
    for graph in list(_graphs):
        graph.session = None


class _Graph:
    """One captured graph. It is exported at its first call, when its inputs are real tensors."""

    def __init__(self, graph: torch.fx.GraphModule, options: dict[str, Any]) -> None:
        self.original = graph
        self.eager = graph.forward
        self.fallback_to_eager = options.pop("fallback_to_eager", True)
        self.options = options
        self.session: backplane.Session | None = None
        self.failed = False
        self.weights: dict[int, torch.Tensor] = {}
        self.versions: list[tuple[int, int]] = []
        self.samples: list[tuple[numpy.ndarray, bytes]] = []  # of the weights, with their content when the graph was exported
        self.names: list[str] = []
        self.graph, self.kept, self.shapes = self._without_symbols(graph)
        _graphs.add(self)

    @staticmethod
    def _without_symbols(graph: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, list[int], dict[int, list[int]]]:
        """Returns a copy of the graph without its integer inputs: each of these is an extent of another input, from which the copy reads
        it. Also returns the positions of the inputs that stay, and the symbolic axes of each input by its position."""
        copied = torch.fx.GraphModule(graph, graph.graph.__class__())
        copied.graph = torch.fx.Graph()
        values: dict[torch.fx.Node, torch.fx.Node] = {}
        result = copied.graph.graph_copy(graph.graph, values)
        copied.graph.output(result)
        placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        where: dict[str, tuple[torch.fx.Node, int]] = {}
        shapes: dict[int, list[int]] = {}
        for position, node in enumerate(placeholders):
            for axis, symbol in _symbols_of(_example(node)):
                where.setdefault(symbol, (values[node], axis))
                shapes.setdefault(position, []).append(axis)
        kept = []
        last = values[placeholders[-1]] if placeholders else None
        for position, node in enumerate(placeholders):
            example = _example(node)
            if not isinstance(example, torch.SymInt):
                kept.append(position)
                continue
            if str(example) not in where:
                raise NotExportable(f"input '{node.name}' is a number that no tensor has as an extent")
            tensor, axis = where[str(example)]
            with copied.graph.inserting_after(last):
                extent = copied.graph.call_function(torch.ops.aten.sym_size.int, (tensor, axis))
            values[node].replace_all_uses_with(extent)
            copied.graph.erase_node(values[node])
        for node in copied.graph.nodes:
            if node.target is torch._transformer_encoder_layer_fwd:
                node.target = _encoder_layer
        copied.recompile()
        return copied, kept, shapes

    def _export(self, inputs: Sequence[Any]) -> backplane.Session:
        placeholders = [node for node in self.original.graph.nodes if node.op == "placeholder"]
        kept = [inputs[position] for position in self.kept]
        if any(not isinstance(value, torch.Tensor) for value in kept):
            raise NotExportable("an input is neither a tensor nor an extent")
        if torch.is_grad_enabled() and any(value.requires_grad for value in kept):
            raise NotExportable("gradients are wanted: use torch.inference_mode() or torch.no_grad()")
        weights = {
            index: value
            for index, (position, value) in enumerate(zip(self.kept, kept, strict=True))
            if _is_static(placeholders[position], value)
        }
        self.weights = {self.kept[index]: value for index, value in weights.items()}
        self.versions = self._versions(inputs)
        self.samples = [(sample, sample.tobytes()) for sample in map(_sample, weights.values())]
        arguments = tuple(value.detach() for index, value in enumerate(kept) if index not in weights)
        dynamic = tuple(
            {axis: torch.export.Dim.AUTO for axis in self.shapes.get(position, ())}
            for index, position in enumerate(self.kept)
            if index not in weights
        )
        frozen = _Frozen(self.graph, weights, len(self.kept)).eval()
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.export.export(frozen, arguments, dynamic_shapes=(dynamic,), strict=False)
            signature = program.run_decompositions({}).graph_signature  # functional form: the signature lists writes
            if signature.buffers_to_mutate or signature.user_inputs_to_mutate:
                raise NotExportable("the graph writes to its inputs or buffers")
            exported = torch.onnx.export(program, dynamo=True, verbose=False)
        if exported is None:
            raise NotExportable("torch.onnx.export returned no program")
        session = backplane.load(exported.model_proto).compile(**self.options)
        if len(session.inputs) != len(arguments):
            raise NotExportable(f"the exported model has {len(session.inputs)} inputs instead of {len(arguments)}")
        self.names = [value.name for value in session.inputs]
        return session

    def _versions(self, inputs: Sequence[Any]) -> list[tuple[int, int]]:
        versions = []
        for position in self.weights:
            tensor = inputs[position]
            versions.append((tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version))
        return versions

    def _has_changed(self, inputs: Sequence[Any]) -> bool:
        """Whether a weight has changed since the graph was exported. The samples are read only if no weight has other memory than then."""
        return self._versions(inputs) != self.versions or any(sample.tobytes() != before for sample, before in self.samples)

    def _prepare(self, inputs: Sequence[Any], again: bool = False) -> backplane.Session | None:
        """Exports the graph at the first call, after changes of weights, and if `again`. Returns its session; None if the graph runs in
        eager mode from now on."""
        try:
            if again or self.session is None or self._has_changed(inputs):
                self.session = self._export(inputs)
        except Exception as reason:  # the exporter raises exceptions of many classes
            if not self.fallback_to_eager:
                raise
            _log.warning("a graph runs in eager mode: %s: %s", type(reason).__name__, str(reason).split("\n")[0])
            self.failed = True
            return None
        return self.session

    def __call__(self, *inputs: Any) -> Any:
        if self.failed:
            return self.eager(*inputs)
        if torch.is_grad_enabled() and any(isinstance(value, torch.Tensor) and value.requires_grad for value in inputs):
            if not self.fallback_to_eager:
                raise NotExportable("gradients are wanted: use torch.inference_mode() or torch.no_grad()")
            return self.eager(*inputs)
        session = self._prepare(inputs)
        if session is None:
            return self.eager(*inputs)
        arguments = [_to_array(inputs[position]) for position in self.kept if position not in self.weights]
        try:
            results = session.run(dict(zip(self.names, arguments, strict=True)))
        except backplane.TypeMismatch:
            # The exporter may have fixed an extent that is dynamic for Dynamo: exports again for the actual extents.
            session = self._prepare(inputs, again=True)
            if session is None:
                return self.eager(*inputs)
            results = session.run(dict(zip(self.names, arguments, strict=True)))
        return tuple(_to_tensor(array) for array in results.values())


_SAMPLED = 16  # number of elements of a weight that are compared


def _sample(tensor: torch.Tensor) -> numpy.ndarray:
    """A view of at most _SAMPLED elements, spread over a tensor of any type, as integers. Empty if the tensor is not on the CPU."""
    if tensor.device.type != "cpu" or tensor.numel() == 0:
        return numpy.empty(0, numpy.uint8)
    dimensions: list[tuple[int, int]] = []  # extent and stride; dimensions without gaps between them are merged
    for stride, extent in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if extent == 1 or stride == 0:
            continue
        if dimensions and stride == dimensions[-1][0] * dimensions[-1][1]:
            dimensions[-1] = dimensions[-1][0] * extent, dimensions[-1][1]
        else:
            dimensions.append((extent, stride))
    count = min(_SAMPLED, max((extent for extent, _ in dimensions), default=1))
    step = sum((extent - 1) // (count - 1) * stride for extent, stride in dimensions)
    size = min(tensor.element_size(), 8)  # an element of complex128 becomes two integers
    parts = tensor.element_size() // size
    integers = torch.empty(0, dtype={1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size])
    return integers.set_(tensor.untyped_storage(), tensor.storage_offset() * parts, (count, parts), (step * parts, 1)).numpy().squeeze()


def _to_array(tensor: torch.Tensor) -> Any:
    """The tensor in a form that the loader reads through DLPack, without a copy if possible."""
    tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    return tensor.contiguous()


def _to_tensor(array: numpy.ndarray) -> torch.Tensor:
    name = array.dtype.name
    if array.dtype.kind != "V" and hasattr(numpy, name):
        return torch.from_numpy(array)
    bits = array.view(numpy.uint8 if array.dtype.itemsize == 1 else numpy.int16)
    return torch.from_numpy(bits).view(getattr(torch, name))


def compile_graph(graph: torch.fx.GraphModule, example_inputs: Sequence[Any], **settings: Any) -> Callable[..., Any]:
    """Dynamo's backend: returns a callable that runs a captured graph."""
    options = dict(settings.get("options") or {})
    fallback = options.get("fallback_to_eager", True)
    output = next(node for node in reversed(graph.graph.nodes) if node.op == "output")
    try:
        for node in output.args[0]:
            if not isinstance(node, torch.fx.Node) or not isinstance(_example(node), torch.Tensor):
                raise NotExportable("an output is not a tensor")
        return _Graph(graph, options)
    except NotExportable as reason:
        if not fallback:
            raise
        _log.warning("a graph runs in eager mode: %s", reason)
        return graph.forward


if "backplane" not in torch._dynamo.list_backends():  # torch finds the backend of a wheel by itself, and registers it then
    torch._dynamo.register_backend(compile_graph, "backplane")
