# SPDX-License-Identifier: Apache-2.0
"""Quantized operators of com.microsoft, and other ones that exported models have. Scales are powers of two, so that results are exact before they
are rounded."""
import numpy as np

from .draw import MICROSOFT, Node
from .microsoft import range_of_weights
from .window import window


def scale(d):
    return np.float32(d.one([0.0625, 0.125, 0.25, 0.5]))


def quantized(d, shape, dtype):
    """A tensor of 8-bit numbers, its scale and its zero point."""
    low, high = (0, 255) if dtype == np.uint8 else (-128, 127)
    zero = d.array([], dtype, *((100, 150) if dtype == np.uint8 else (-20, 20)))
    return [d.array(shape, dtype, low, high), scale(d), zero]


def parameters(d, dtype):
    return quantized(d, [], dtype)[1:]


def qlinear_binary(d):
    dtype, shape = d.one([np.uint8, np.int8]), d.shape(0, 3, empty=0)
    inputs = quantized(d, shape, dtype) + quantized(d, d.broadcast(shape), dtype) + parameters(d, dtype)
    known = tuple(i for i in range(8) if i not in (0, 3)) + ((3,) if d.chance(0.3) else ())
    return Node(d.op, inputs, {}, 1, MICROSOFT, known)


def qlinear_unary(d):
    dtype = d.one([np.uint8, np.int8])
    inputs = quantized(d, d.shape(1, 3, empty=0), dtype) + parameters(d, dtype)
    return Node(d.op, inputs, {"alpha": d.one([0.25, 0.5])} if d.op == "QLinearLeakyRelu" else {}, 1, MICROSOFT, (1, 2, 3, 4))


def qlinear_concat(d):
    dtype, shape = d.one([np.uint8, np.int8]), d.shape(1, 3, empty=0, large=0)
    axis = d.axis(len(shape))
    inputs = parameters(d, dtype)
    for _ in range(d.size(1, 4)):
        shape[axis] = d.size(1, 5)
        inputs += quantized(d, shape, dtype)
    return Node(d.op, inputs, {"axis": axis}, 1, MICROSOFT, tuple(i for i in range(len(inputs)) if i % 3 != 2))


def qlinear_pool(d):
    dtype, attributes = d.one([np.uint8, np.int8]), {}
    x = quantized(d, [d.size(1, 2), d.size(1, 9), d.size(6, 9), d.size(6, 9)], dtype)
    if d.op == "QLinearAveragePool":
        attributes = window(d, 2) | {"kernel_shape": [d.size(2, 3), d.size(2, 3)], "count_include_pad": d.size(0, 1)}
        attributes.pop("dilations", None)
    return Node(d.op, x + parameters(d, dtype), attributes, 1, MICROSOFT, (1, 2, 3, 4))


def integer_product(d):
    """DynamicQuantizeMatMul and MatMulIntegerToFloat."""
    m, k, n, of_b = d.size(1, 9), d.size(1, 40), d.size(1, 19), d.one([np.uint8, np.int8])
    b = d.array([k, n], of_b, *range_of_weights(of_b))
    columns = [n] if d.chance(0.5) else []
    zeros = d.array(columns, of_b, *((100, 150) if of_b == np.uint8 else (-9, 9))) if d.chance(0.6) else None
    b_scale, bias = np.asarray(d.array(columns, np.float32, 0.002, 0.02)), d.array([n], np.float32) if d.chance(0.5) else None
    if d.op == "DynamicQuantizeMatMul":
        inputs, known = [d.array([m, k], np.float32, 0.5, 4), b, b_scale, zeros, bias], (1, 2, 3, 4)
    else:
        of_a = np.uint8 if of_b == np.uint8 else d.one([np.uint8, np.int8])
        a = quantized(d, [m, k], of_a)
        inputs, known = [a[0], b, a[1], b_scale, a[2], zeros, bias], (1, 2, 3, 4, 5, 6)
    return Node(d.op, inputs, {}, 1, MICROSOFT, tuple(i for i in known if inputs[i] is not None))


def fused_conv(d):
    groups = d.one([1, 1, 2])
    ins, outs, kernel = groups * d.one([1, 3, 4, 8]), groups * d.one([1, 2, 8, 16]), [d.size(1, 3), d.size(1, 3)]
    activation, values = d.one([("Relu", None), ("LeakyRelu", [0.25]), ("Clip", [-1.0, 3.0]), ("HardSigmoid", [0.25, 0.5]), ("Tanh", None), ("Sigmoid", None)])
    attributes = dict(window(d, 2), group=groups, activation=activation) | ({"activation_params": values} if values else {})
    inputs = [d.exact([d.size(1, 2), ins, d.size(6, 9), d.size(6, 9)]), d.exact([outs, ins // groups] + kernel), d.exact([outs]) if d.chance(0.6) else None]
    return Node(d.op, inputs, attributes, 1, MICROSOFT, (1,) if inputs[2] is None else (1, 2))


def rotary_embedding(d):
    batch, heads, length, half, most = d.size(1, 3), d.size(1, 3), d.size(1, 5), d.one([1, 2, 4, 8]), d.size(7, 9)
    four = d.chance(0.4)
    x = d.array([batch, heads, length, 2 * half] if four else [batch, length, heads * 2 * half], np.float32)
    positions = d.array([batch, length], np.int64, 0, most - 1) if d.chance(0.5) else d.array([1], np.int64, 0, most - length)
    angles = d.array([most, half], np.float32, -3, 3)
    return Node(d.op, [x, positions, np.cos(angles), np.sin(angles)], {"interleaved": d.size(0, 1)}, 1, MICROSOFT, (2, 3) if d.chance(0.5) else ())
