# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft, which are defined by onnxruntime's implementation."""
import numpy as np

from onnx import helper

from .draw import MICROSOFT, Node
from .window import window


def embed_layer_norm(d):
    batch, length, width, words, places, segments = d.size(1, 3), d.size(1, 7), d.one([1, 3, 8, 33, 768]), d.size(1, 9), d.size(7, 9), d.size(1, 3)
    x = lambda *shape: d.array(shape, np.float32)
    ids = lambda rows, *shape: d.array(shape or (batch, length), np.int32, 0, rows - 1)
    has_segments = d.chance(0.7)
    inputs = [ids(words), ids(segments) if has_segments and d.chance(0.8) else None, x(words, width), x(places, width),
              x(segments, width) if has_segments else None, d.array([width], np.float32, 0.5, 1), d.array([width], np.float32, 8, 9)]  # results far from 0, because terms cancel near 0
    inputs.append(ids(3) if d.chance(0.5) else None)  # a mask, in which only elements equal to 1 count
    inputs.append(None if d.chance(0.6) else ids(places) if d.chance(0.5) else ids(places, 1, length))
    attributes = {"epsilon": d.one([1e-12, 1e-5, 0.25])} if d.chance(0.6) else {}
    constants = (2, 3, 4, 5, 6) if d.chance(0.5) else ()
    return Node(d.op, inputs, attributes, d.size(2, 3), MICROSOFT, tuple(i for i in constants if inputs[i] is not None))


def nhwc_conv(d):
    groups = d.one([1, 1, 1, 2, 3])
    ins, outs = groups * d.one([1, 3, 4, 8, 16]), groups * d.one([1, 2, 5, 8, 16])
    kernel, image = [d.size(1, 3), d.size(1, 3)], [d.size(6, 9), d.size(6, 9)]
    if d.chance(0.2):  # depthwise
        groups = outs = ins
    inputs = [d.exact([d.size(1, 2)] + image + [ins]), d.exact([outs] + kernel + [ins // groups]), d.exact([outs]) if d.chance(0.6) else None]
    attributes = dict(window(d, 2), group=groups)
    if d.chance(0.5):
        attributes["kernel_shape"] = kernel
    constants = (1,) if inputs[2] is None else (1, 2)
    return Node(d.op, inputs, attributes, 1, MICROSOFT, constants if d.chance(0.7) else ())


def key_mask(d, batch, length, keys):
    """A mask of keys (int32) with one of the shapes that QAttention accepts, or None."""
    extents = d.one([None, [batch], [2 * batch], [3 * batch + 2], [batch, keys], [batch, 1], [1, 1], [batch, length, keys]])
    if extents is None:
        return None
    mask = d.array(extents, np.int32, *((-1, keys + 1) if len(extents) == 1 else (-1, 2)))
    mask.flat[:batch] = np.maximum(mask.flat[:batch], 1)  # onnxruntime refuses negative lengths
    return mask


def range_of_weights(dtype):
    """onnxruntime multiplies packed int8 weights by uint8 and, on processors with AVX2 but without VNNI, adds two products in 16 bits, which saturate.
    With weights of 7 bits the sums fit there: 2 * 255 * 64 < 2^15."""
    if dtype == np.uint8:
        return 0, 255
    with open("/proc/cpuinfo", encoding="utf-8") as facts:
        text = facts.read()
    return (-64, 63) if "avx2" in text and "vnni" not in text else (-128, 127)


def qattention(d):
    """Values are far from 0, because terms cancel near 0."""
    batch, length, heads, size, inputs = d.size(1, 3), d.one([1, 2, 5, 9, 70]), d.size(1, 3), d.one([4, 8, 16]), d.one([5, 8, 24, 64])
    width, quantized = heads * size, d.op == "QAttention"
    past = d.size(0, 4) if d.chance(0.4) else None
    mask, bias = key_mask(d, batch, length, length + (past or 0)), d.array([3 * width], np.float32, 8, 9)
    cache = None if past is None else d.array([2, batch, heads, past, size], np.float32, 4, 9)
    if quantized:
        dtype = d.one([np.uint8, np.int8])
        columns = [3 * width] if d.chance(0.5) else [1] if d.chance(0.3) else []
        zeros = d.chance(0.7)
        of_weights = d.array(columns, dtype, *((-9, 9) if dtype == np.int8 else (110, 140)))
        given = [d.array([batch, length, inputs], np.uint8, 0, 255), d.array([inputs, 3 * width], dtype, *range_of_weights(dtype)), bias,
                 np.float32(1 / 128), d.array(columns, np.float32, 0.0005, 0.002), mask, d.array([], np.uint8, 100, 150) if zeros else None, of_weights if zeros else None, cache]
        known = (1, 2, 3, 4) + ((6, 7) if zeros else ())
    else:
        given, known = [d.array([batch, length, inputs], np.float32, -1, 1), d.array([inputs, 3 * width], np.float32, -0.5, 0.5), bias, mask, cache], (1, 2)
    attributes = {"num_heads": heads, "unidirectional": d.size(0, 1)}
    if d.chance(0.3):
        attributes |= {"scale": 0.5, "mask_filter_value": d.one([-10000.0, -3.0])}
    outputs = 1 if past is None and d.chance(0.5) else 2
    return Node(d.op, [None if x is None else np.asarray(x) for x in given], attributes, outputs, MICROSOFT, known if d.chance(0.7) else ())


def dynamic_quantize_lstm(d):
    direction = d.one(["forward", "reverse", "bidirectional"])
    dirs = 2 if direction == "bidirectional" else 1
    t, n, i, h = d.size(1, 5), d.one([1, 1, 2, 3]), d.one([1, 4, 17]), d.one([1, 4, 16, 19])
    dtype = d.one([np.uint8, np.int8])
    x = lambda *shape: d.array(shape, np.float32, -1, 1)

    def weights(rows):
        columns = [dirs, 4 * h] if d.chance(0.5) else [dirs]
        zero = np.zeros(columns, dtype) if dtype == np.int8 and len(columns) == 2 else np.full(columns, d.size(100, 150) if dtype == np.uint8 else d.size(-9, 9)).astype(dtype)
        if len(columns) == 1:
            zero = d.array(columns, dtype, 100, 150) if dtype == np.uint8 else d.array(columns, dtype, -9, 9)
        return d.array([dirs, rows, 4 * h], dtype, *range_of_weights(dtype)), d.array(columns, np.float32, 0.002, 0.02), zero

    w, w_scale, w_zero = weights(i)
    r, r_scale, r_zero = weights(h)
    inputs = [x(t, n, i), w, r, x(dirs, 8 * h) if d.chance(0.6) else None, np.array([d.size(0, t) for _ in range(n)], np.int32) if d.chance(0.4) else None]
    if inputs[4] is not None:
        inputs[4].flat[0] = max(1, inputs[4].flat[0])  # onnxruntime writes no results if all sequences are empty
    inputs += [x(dirs, n, h) if d.chance(0.5) else None, x(dirs, n, h) if d.chance(0.5) else None, x(dirs, 3 * h) if d.chance(0.3) else None]
    inputs += [w_scale, w_zero, r_scale, r_zero]
    attributes = {"direction": direction, "hidden_size": h}
    if d.chance(0.2):
        attributes["clip"] = 2.0  # a lower one makes the range of states symmetric, so that the quotient for the zero point lies halfway between two integers
    if d.chance(0.2):
        attributes["input_forget"] = 1
    if d.chance(0.2):
        attributes["activations"] = [d.one(["Sigmoid", "HardSigmoid"]), d.one(["Tanh", "Relu", "Softsign"]), "Tanh"] * dirs
    known = (1, 2, 8, 9, 10, 11) if d.chance(0.7) else ()
    return Node(d.op, inputs, attributes, 3, MICROSOFT, known)


def spelled_out(model):
    """The model with operators that onnxruntime has no kernel for replaced by others: NhwcConv by a Conv between transposes."""
    node = model.graph.node[0]
    if node.op_type != "NhwcConv":
        return model
    copy = type(model)()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    first = lambda name: helper.make_node("Transpose", [name], [name + ".first"], perm=[0, 3, 1, 2])
    conv = helper.make_node("Conv", [node.input[0] + ".first", node.input[1] + ".first", *node.input[2:]], ["conv"])
    conv.attribute.extend(node.attribute)
    back = helper.make_node("Transpose", ["conv"], [node.output[0]], perm=[0, 2, 3, 1])
    copy.graph.node.extend([first(node.input[0]), first(node.input[1]), conv, back])
    return copy


def gelu(d):
    """Numbers above 0, because terms cancel below 0."""
    x = d.array(d.shape(1, 4), np.float32, 0.5, 4)
    bias = d.array(x.shape[-1:], np.float32, 0, 1)
    inputs = [x, bias] if d.op == "BiasGelu" or (d.op == "FastGelu" and d.chance(0.5)) else [x]
    return Node(d.op, inputs, {"alpha": d.one([1.702, 1.0, -0.5])} if d.op == "QuickGelu" else {}, 1, MICROSOFT)


def skip_layer_norm(d):
    batch, length, width = d.size(1, 3), d.size(1, 5), d.one([1, 3, 8, 17, 64])
    vector = lambda low, high, p: d.array([width], np.float32, low, high) if d.chance(p) else None
    skip = d.one([[batch, length, width], [1, length, width], [length, width]])
    inputs = [d.array([batch, length, width], np.float32), d.array(skip, np.float32), vector(0.5, 1, 1)]
    inputs += [vector(8, 9, 0.7)] if d.op == "SkipLayerNormalization" else []
    inputs.append(vector(-2, 2, 0.5))
    known = tuple(i for i in range(2, len(inputs)) if inputs[i] is not None) if d.chance(0.5) else ()
    return Node(d.op, inputs, {"epsilon": d.one([1e-5, 0.1])}, 1, MICROSOFT, known)


def fused_product(d):
    m, k, n, transposed_a, transposed_b = d.size(1, 9), d.size(1, 20), d.size(1, 19), d.size(0, 1), d.size(0, 1)
    batch = d.shape(0, 2, empty=0, large=0) if d.op == "FusedMatMul" else []
    a, b = batch + ([k, m] if transposed_a else [m, k]), (d.broadcast(batch) if batch else []) + ([n, k] if transposed_b else [k, n])
    attributes = {"transA": transposed_a, "transB": transposed_b, "alpha": d.one([1.0, 0.25, -2.0])}
    inputs = [d.exact(a), d.exact(b)]
    if d.op == "FusedGemm":
        inputs.append(d.exact(d.one([[], [n], [1, n], [m, 1], [m, n]])) if d.chance(0.7) else None)
        attributes |= {"beta": d.one([1.0, 2.0]), "activation": d.one(["Relu", "LeakyRelu"]), "activation_alpha": 0.25}
    return Node(d.op, inputs, attributes, 1, MICROSOFT, (1,) if d.chance(0.5) else ())


def matmul_nbits(d):
    bits, block, k, n = d.one([2, 4, 4, 8]), d.one([16, 32, 64]), d.size(1, 150), d.size(1, 40)
    blocks = -(-k // block)
    zeros = d.array([n * -(-blocks * bits // 8)], np.uint8, 0, 255) if d.chance(0.5) else None
    inputs = [d.exact(d.shape(0, 2, empty=0, large=0) + [d.size(1, 9), k]), d.array([n, blocks, block * bits // 8], np.uint8, 0, 255),
              np.full([n * blocks], 0.25, np.float32), zeros, None, d.exact([n]) if d.chance(0.3) else None]
    known = tuple(i for i in (1, 2, 3, 5) if inputs[i] is not None)
    return Node(d.op, inputs, {"K": k, "N": n, "bits": bits, "block_size": block}, 1, MICROSOFT, known)


def multi_head_attention(d):
    """Values are far from 0, because terms cancel near 0."""
    batch, heads, length, keys, size = d.size(1, 3), d.size(1, 3), d.one([1, 2, 5, 70]), d.one([1, 3, 9]), d.one([4, 8])
    past = d.size(1, 4) if d.chance(0.3) else None
    values, total = size if past or d.chance(0.7) else 16, keys + (past or 0)
    x = lambda low, *extents: d.array(list(extents), np.float32, low, low + 4)
    mask = d.array(d.one([[batch], [batch, total]]), np.int32, 1, 2) - (0 if total == 1 else 1) if d.chance(0.4) else None
    if mask is not None and mask.ndim == 1:
        mask = d.array([batch], np.int32, 1, total)
    bias = x(-2, d.one([1, batch]), d.one([1, heads]), length, total) if d.chance(0.4) else None
    inputs = [x(-2, batch, length, heads * size), x(-2, batch, keys, heads * size), x(4, batch, keys, heads * values),
              x(-2, heads * (2 * size + values)) if d.chance(0.4) else None, mask, bias]
    if past:
        inputs += [x(-2, batch, heads, past, size), x(4, batch, heads, past, size)]
    attributes = {"num_heads": heads} | ({"scale": 0.3, "mask_filter_value": -5.0} if d.chance(0.3) else {})
    return Node(d.op, inputs, attributes, 3 if past else 1, MICROSOFT)
