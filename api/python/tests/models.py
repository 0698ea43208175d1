# SPDX-License-Identifier: Apache-2.0
"""Small models for the tests."""

from __future__ import annotations

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


def value(name: str, dtype: int = TensorProto.FLOAT, shape: list | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes: list, inputs: list, outputs: list, weights: dict[str, numpy.ndarray] | None = None) -> onnx.ModelProto:
    initializers = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "test", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def relu(shape: list | None = None, dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """y = Relu(x)."""
    shape = [2, 3] if shape is None else shape
    return model([helper.make_node("Relu", ["x"], ["y"])], [value("x", dtype, shape)], [value("y", dtype, shape)])


def identity(dtype: int, shape: list) -> onnx.ModelProto:
    """y = Identity(x)."""
    return model([helper.make_node("Identity", ["x"], ["y"])], [value("x", dtype, shape)], [value("y", dtype, shape)])


def affine(weight: numpy.ndarray, bias: numpy.ndarray) -> onnx.ModelProto:
    """y = x w + b, with a symbolic first dimension."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    rows, columns = weight.shape
    return model(nodes, [value("x", shape=["batch", rows])], [value("y", shape=["batch", columns])], {"w": weight, "b": bias})


def slow(steps: int = 1 << 40) -> onnx.ModelProto:
    """A loop so long that it must be cancelled: y = x after many multiplications by one."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["more"], ["again"]),
            helper.make_node("MatMul", ["now", "unit"], ["next"]),
        ],
        "body",
        [value("i", TensorProto.INT64, []), value("more", TensorProto.BOOL, []), value("now", shape=[64, 64])],
        [value("again", TensorProto.BOOL, []), value("next", shape=[64, 64])],
    )
    weights = {"steps": numpy.array(steps, numpy.int64), "unit": numpy.eye(64, dtype=numpy.float32), "true": numpy.array(True)}
    loop = helper.make_node("Loop", ["steps", "true", "x"], ["y"], body=body)
    return model([loop], [value("x", shape=[64, 64])], [value("y", shape=[64, 64])], weights)
