# SPDX-License-Identifier: Apache-2.0
"""Casts and quantization."""
import numpy as np

from .draw import FLOATS, Node

CASTS = {np.float32: 1, np.uint8: 2, np.int8: 3, np.uint16: 4, np.int16: 5, np.int32: 6, np.int64: 7, np.bool_: 9, np.float16: 10, np.float64: 11, np.uint32: 12, np.uint64: 13}


def cast(d):
    source, target = d.one(list(CASTS)), d.one(list(CASTS))
    x = d.array(d.shape(), source, 0 if np.issubdtype(target, np.unsignedinteger) else -100, 100)
    if target in FLOATS:
        x = d.special(x) if target != np.float16 else x
    if d.op == "CastLike":
        return Node(d.op, [x, d.array([1], target)])
    return Node(d.op, [x], {"to": CASTS[target]})


def quantize(d):
    shape = d.shape(1, 4, empty=0.02)
    dtype = d.one([np.uint8, np.int8, np.uint16, np.int16])
    axis = d.axis(len(shape))
    per_axis = d.chance(0.5)
    scale = np.exp2(d.array([shape[axis]] if per_axis else [], np.float32, -3, 2).round()).astype(np.float32)
    zero = d.array(scale.shape, dtype, 0, 9)
    attributes = {"axis": axis} if per_axis else {}
    if d.op == "DequantizeLinear":
        return Node(d.op, [d.array(shape, dtype, -100, 100), scale, zero if d.chance(0.8) else None], attributes)
    x = np.nan_to_num(d.special(d.array(shape, np.float32, -300, 300)), nan=0, posinf=1e6, neginf=-1e6)
    return Node(d.op, [np.clip(x, -1e6, 1e6), scale, zero if d.chance(0.8) or dtype != np.uint8 else None], attributes)


def dynamic_quantize(d):
    return Node(d.op, [d.array(d.shape(1, 3, empty=0), np.float32)], {}, 3)
