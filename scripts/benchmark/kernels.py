# SPDX-License-Identifier: Apache-2.0
"""Models of one operator or chain, one for each family of kernels, with the minimum of arithmetic and memory traffic that they need."""
import dataclasses
import math

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


@dataclasses.dataclass
class Case:
    family: str
    name: str
    model: onnx.ModelProto
    gflop: float  # 10^9 operations of one run, a multiply-add counts as two; 0: bound by memory
    megabytes: float  # inputs and weights read once, outputs written once


def case(family, name, nodes, inputs, output, *, weights=(), flop=0, output_type=FLOAT):
    """`nodes` end in y; `inputs` and `weights` are {name: shape}, weights may be arrays."""
    random = numpy.random.default_rng(1)
    arrays = {key: value if isinstance(value, numpy.ndarray) else (random.standard_normal(value) / math.sqrt(max(1, math.prod(value[1:])))).astype("f4")
              for key, value in dict(weights).items()}
    graph = helper.make_graph(nodes, "kernel", [helper.make_tensor_value_info(key, FLOAT, shape) for key, shape in inputs.items()],
                              [helper.make_tensor_value_info("y", output_type, output)],
                              [numpy_helper.from_array(value, key) for key, value in arrays.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    width = helper.tensor_dtype_to_np_dtype(output_type).itemsize
    size = sum(4 * math.prod(shape) for shape in inputs.values()) + sum(a.nbytes for a in arrays.values()) + width * math.prod(output)
    return Case(family, name, model, flop / 1e9, size / 1e6)


def conv(name, channels, maps, size, kernel, stride=1, group=1, family="conv"):
    out = size // stride
    attributes = {"kernel_shape": [kernel, kernel], "strides": [stride, stride], "pads": [kernel // 2] * 4, "group": group}
    flop = 2 * maps * out * out * channels // group * kernel * kernel
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes), helper.make_node("Relu", ["c"], ["y"])]
    return case(family, name, nodes, {"x": [1, channels, size, size]}, [1, maps, out, out],
                weights={"w": [maps, channels // group, kernel, kernel], "b": [maps]}, flop=0 if group == channels else flop)


def one(op, inputs, output, *, family, name=None, weights=(), operands=None, **attributes):
    names = operands or list(inputs) + list(dict(weights))
    output_type = attributes.pop("output_type", FLOAT)
    return case(family, name or op, [helper.make_node(op, names, ["y"], **attributes)], inputs, output, weights=weights, output_type=output_type)


def product(name, m, n, k, *, constant):
    inputs = {"x": [m, k]} | ({} if constant else {"w": [k, n]})
    return case("gemm", name, [helper.make_node("MatMul", ["x", "w"], ["y"])], inputs, [m, n], weights={"w": [k, n]} if constant else {},
                flop=2 * m * n * k)


def attention(heads, length, size):
    shape = [1, heads, length, size]
    return case("attention", f"Attention {heads} heads of {size}, {length} keys", [helper.make_node("Attention", ["q", "k", "v"], ["y"])],
                {name: shape for name in "qkv"}, shape, flop=4 * heads * length * length * size)


def cases():
    rows, columns = 8192, 1024
    flat, image = {"x": [rows, columns]}, {"x": [1, 64, 384, 384]}
    chain = [helper.make_node("Add", ["x", "z"], ["a"]), helper.make_node("Mul", ["a", "x"], ["b"]), helper.make_node("Relu", ["b"], ["y"])]
    index = numpy.random.default_rng(2).integers(0, rows, rows)
    floats = {"scale": numpy.float32([1, 1, 2, 2]), "empty": numpy.zeros(0, "f4")}
    resize = {"roi": floats["empty"], "scales": floats["scale"]}
    half = [1, 64, 192, 192]
    return [
        product("1024 × 1024 × 1024", 1024, 1024, 1024, constant=False),
        product("128 × 3072 × 768, constant weights", 128, 3072, 768, constant=True),
        conv("1 × 1, 64 → 256 over 56 × 56", 64, 256, 56, 1),
        conv("3 × 3, 128 → 128 over 56 × 56", 128, 128, 56, 3),
        conv("3 × 3 by 2, 128 → 128 over 56 × 56", 128, 128, 56, 3, 2),
        conv("7 × 7 by 2, 3 → 64 over 224 × 224", 3, 64, 224, 7, 2),
        conv("3 × 3, 32 groups of 8, 28 × 28", 256, 256, 28, 3, group=32),
        conv("depthwise 3 × 3, 256 over 112 × 112", 256, 256, 112, 3, group=256, family="depthwise"),
        case("conv_transpose", "2 × 2 by 2, 64 → 32 over 64 × 64", [helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])],
             {"x": [1, 64, 64, 64]}, [1, 32, 128, 128], weights={"w": [64, 32, 2, 2]}, flop=2 * 64 * 64 * 64 * 32 * 4),
        attention(12, 384, 64),
        one("Add", flat | {"z": [rows, columns]}, [rows, columns], family="elementwise"),
        case("elementwise", "Add, Mul, Relu in one", chain, flat | {"z": [rows, columns]}, [rows, columns]),
        one("Gelu", flat, [rows, columns], family="elementwise"),
        one("ReduceMean", flat, [rows, 1], family="reduce", name="ReduceMean of rows", weights={"axes": numpy.int64([1])}),
        one("ReduceMean", flat, [1, columns], family="reduce", name="ReduceMean of columns", weights={"axes": numpy.int64([0])}),
        one("ArgMax", flat, [rows, 1], family="reduce", axis=1, output_type=INT64),
        one("Softmax", flat, [rows, columns], family="softmax"),
        one("LayerNormalization", flat, [rows, columns], family="norm", weights={"s": [columns], "b": [columns]}),
        one("InstanceNormalization", image, image["x"], family="norm", weights={"s": [64], "b": [64]}),
        one("Transpose", flat, [columns, rows], family="transpose", perm=[1, 0]),
        one("Transpose", {"x": [128, 64, 1024]}, [64, 128, 1024], family="transpose", name="Transpose, last axis stays", perm=[1, 0, 2]),
        one("Gather", flat, [rows, columns], family="gather", weights={"i": index}),
        one("Concat", flat | {"z": [rows, columns]}, [rows, 2 * columns], family="gather", axis=1),
        one("Resize", {"x": half}, image["x"], family="resize", name="Resize nearest", weights=resize, mode="nearest"),
        one("Resize", {"x": half}, image["x"], family="resize", name="Resize linear", weights=resize, mode="linear"),
        one("MaxPool", image, half, family="pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        one("GlobalAveragePool", image, [1, 64, 1, 1], family="pool"),
    ]
