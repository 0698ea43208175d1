# SPDX-License-Identifier: Apache-2.0
"""Convolutions, pools and other windows."""
import numpy as np

from .draw import ints, Node


def window(d, rank, pads=True):
    attributes = {"strides": [d.size(1, 3) for _ in range(rank)], "dilations": [d.size(1, 2) for _ in range(rank)]}
    if not pads or d.chance(0.3):
        attributes["auto_pad"] = d.one(["VALID", "SAME_UPPER", "SAME_LOWER"])
        if attributes["auto_pad"] != "VALID":
            attributes["dilations"], attributes["strides"] = [1] * rank, [d.size(1, 2) for _ in range(rank)]
    else:
        attributes["pads"] = [d.size(0, 1) for _ in range(2 * rank)]
    return {k: v for k, v in attributes.items() if k in ("pads", "auto_pad") or d.chance(0.7)}


def conv_shapes(d):
    rank, groups = d.size(1, 3), d.one([1, 1, 2, 3])
    ins, outs = groups * d.size(1, 3), groups * d.size(1, 3)
    kernel = [d.size(1, 3) for _ in range(rank)]
    image = [d.size(6, 9) for _ in range(rank)]
    return rank, groups, ins, outs, kernel, image


def conv(d):
    rank, groups, ins, outs, kernel, image = conv_shapes(d)
    dtype = d.one([np.float32, np.float32, np.float64])
    if d.op == "ConvTranspose":
        weights, attributes = [ins, outs // groups] + kernel, window(d, rank)
        attributes.pop("auto_pad", None)
        if d.chance(0.3):
            attributes["strides"] = [2] * rank
            attributes["output_padding"] = [d.size(0, 1) for _ in range(rank)]
    else:
        weights, attributes = [outs, ins // groups] + kernel, window(d, rank)
    if "auto_pad" in attributes or groups > 1:  # onnx.reference is wrong for these, and onnxruntime supports only fp32
        dtype = np.float32
    bias = d.exact([outs], dtype) if d.chance(0.5) else None
    constants = (1, 2) if d.chance(0.5) else ()
    return Node(d.op, [d.exact([d.size(1, 2), ins] + image, dtype), d.exact(weights, dtype), bias], dict(attributes, group=groups), 1, "", constants)


def zero_point(d, dtype, count=0):
    return d.array([count] if count else [], dtype, 0 if dtype == np.uint8 else -3, 6)


def conv_integer(d):
    rank, groups, ins, outs, kernel, image = conv_shapes(d)
    x, w = np.uint8, d.one([np.uint8, np.int8])
    inputs = [d.array([1, ins] + image, x, 0, 255), d.array([outs, ins // groups] + kernel, w, -100, 100)]
    if d.chance(0.7):
        inputs += [zero_point(d, x), zero_point(d, w)]
    return Node(d.op, inputs, dict(window(d, rank), group=groups))


def qlinear_conv(d):
    rank, groups, ins, outs, kernel, image = conv_shapes(d)
    x, w = d.one([(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
    per_channel = outs if d.chance(0.5) and w == np.int8 else 0
    scale = np.full([per_channel] if per_channel else [], 0.25, np.float32)
    zero = np.zeros([per_channel], w) if per_channel else zero_point(d, w)
    bias = d.array([outs], np.int32, -200, 200) if d.chance(0.5) else None
    inputs = [d.array([1, ins] + image, x, -100, 100), np.float32(0.5), zero_point(d, x), d.array([outs, ins // groups] + kernel, w, -60, 60), scale, zero, np.float32(d.one([2.0, 4.0])), zero_point(d, x), bias]
    return Node(d.op, [None if i is None else np.asarray(i) for i in inputs], dict(window(d, rank), group=groups), 1, "", (3, 4, 5, 8))


def pool(d):
    rank = d.size(1, 3)
    attributes = dict(window(d, rank), kernel_shape=[d.size(2, 3) for _ in range(rank)])
    if d.op == "LpPool":
        attributes["p"] = d.size(1, 3)
    if d.op == "AveragePool":
        attributes["count_include_pad"] = d.size(0, 1)
    if "auto_pad" not in attributes and d.chance(0.3):
        attributes["ceil_mode"] = 1
    outputs = d.size(1, 2) if d.op == "MaxPool" else 1
    dtype = d.one([np.float32, np.float64, np.int8, np.uint8]) if d.op == "MaxPool" else np.float32
    return Node(d.op, [d.exact([d.size(1, 2), d.size(1, 3)] + [d.size(6, 9) for _ in range(rank)], dtype)], attributes, outputs)


def global_pool(d):
    attributes = {"p": d.size(1, 3)} if d.op == "GlobalLpPool" else {}
    return Node(d.op, [d.exact([d.size(1, 2), d.size(1, 3)] + d.shape(1, 3, empty=0), np.float32)], attributes)


def col2im(d):
    kernel, image = [d.size(1, 3), d.size(1, 3)], [d.size(4, 7), d.size(4, 7)]
    strides, pads = [d.size(1, 2)] * 2, [d.size(0, 1) for _ in range(4)]
    count = [(image[i] + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1 for i in range(2)]
    x = d.exact([d.size(1, 2), d.size(1, 3) * kernel[0] * kernel[1], count[0] * count[1]], d.one([np.float32, np.float64, np.int32, np.bool_]))
    return Node(d.op, [x, ints(image), ints(kernel)], {"strides": strides, "pads": pads})


def roi_align(d):
    count, n = d.size(1, 4), d.size(1, 3)
    corner = d.rng.uniform(0, 4, [count, 2])
    rois = np.concatenate([corner, corner + d.rng.uniform(0.5, 5, [count, 2])], 1).astype(np.float32)
    attributes = {"output_height": d.size(1, 4), "output_width": d.size(1, 4), "sampling_ratio": d.size(0, 3), "spatial_scale": d.one([0.5, 1.0, 2.0]), "mode": d.one(["avg", "max"]), "coordinate_transformation_mode": d.one(["half_pixel", "output_half_pixel"])}
    return Node(d.op, [d.array([n, 2, 8, 9], np.float32), rois, d.array([count], np.int64, 0, n - 1)], attributes)
