# SPDX-License-Identifier: Apache-2.0
"""Nodes that move elements, or generate them from shapes."""
import numpy as np
from onnx import TensorProto, helper

from .draw import FLOATS, ints, MOVED, Node


def transpose(d):
    shape = d.shape(0, 5)
    return Node(d.op, [d.array(shape, d.one(MOVED))], {"perm": [int(p) for p in d.rng.permutation(len(shape))]} if d.chance(0.8) and shape else {})


def reshape(d):
    shape = d.shape(0, 4, empty=0)
    target = [int(n) for n in d.rng.permutation(shape)] + [1] * d.size(0, 2)
    if target and d.chance(0.5):
        target[d.rng.integers(len(target))] = -1
    return Node(d.op, [d.array(shape, d.one(MOVED)), ints(target)])


def flatten(d):
    shape = d.shape(1, 4)
    return Node(d.op, [d.array(shape, d.one(MOVED))], {"axis": int(d.rng.integers(-len(shape), len(shape) + 1))})


def squeeze(d):
    shape = [1 if d.chance(0.5) else n for n in d.shape(1, 5)]
    ones = [i - (len(shape) if d.chance(0.5) else 0) for i, n in enumerate(shape) if n == 1]
    return Node(d.op, [d.array(shape, d.one(MOVED)), ints(ones) if d.chance(0.7) and ones else None])


def unsqueeze(d):
    shape, count = d.shape(0, 3), d.size(1, 3)
    rank = len(shape) + count
    return Node(d.op, [d.array(shape, d.one(MOVED)), ints([int(a) - (rank if d.chance(0.5) else 0) for a in d.rng.choice(rank, count, replace=False)])])


def expand(d):
    shape = d.shape(1, 4)
    return Node(d.op, [d.array(d.broadcast(shape), d.one(MOVED)), ints(shape)])


def tile(d):
    shape = d.shape(1, 4)
    return Node(d.op, [d.array(shape, d.one(MOVED)), ints([d.size(0 if d.chance(0.1) else 1, 3) for _ in shape])])


def concat(d):
    shape, dtype = d.shape(1, 4), d.one(MOVED)
    axis = d.axis(len(shape))
    parts = []
    for _ in range(d.size(1, 4)):
        part = list(shape)
        part[axis] = d.size(0, 4)
        parts.append(d.array(part, dtype))
    return Node(d.op, parts, {"axis": axis})


def split(d):
    shape, parts = d.shape(1, 4, empty=0), [d.size(0, 4) for _ in range(d.size(1, 4))]
    axis = d.axis(len(shape))
    if d.chance(0.6):
        shape[axis] = sum(parts)
        return Node(d.op, [d.array(shape, d.one(MOVED)), ints(parts)], {"axis": axis}, len(parts))
    count = d.size(1, min(4, shape[axis]))
    while -(-shape[axis] // count) * (count - 1) >= shape[axis] > 1:
        count -= 1
    return Node(d.op, [d.array(shape, d.one(MOVED)), None], {"axis": axis, "num_outputs": count}, count)


def slice_(d):
    shape = d.shape(1, 4)
    axes = d.axes(len(shape)) or [0]
    index = d.one([np.int32, np.int64])
    steps = [d.one([-3, -2, -1, 1, 2, 3]) for _ in axes]
    starts, ends = ([int(d.rng.integers(-7, 8)) for _ in axes] for _ in range(2))
    if d.chance(0.2):
        ends = [np.iinfo(index).max if s > 0 else np.iinfo(index).min for s in steps]
    return Node(d.op, [d.array(shape, d.one(MOVED))] + [np.array(v, index) for v in (starts, ends, axes, steps)])


def pad(d):
    shape, dtype = d.shape(1, 4, empty=0), d.one(MOVED)
    mode = d.one(["constant", "reflect", "edge", "wrap"])
    least = -1 if mode == "constant" else 0
    most = min(shape) - 1 if mode == "reflect" else 3
    pads = [int(d.rng.integers(least, max(least, most) + 1)) for _ in range(2 * len(shape))]
    for i, n in enumerate(shape):
        if pads[i] + pads[i + len(shape)] + n < 0:
            pads[i] = 0
    value = np.array(1, dtype) if mode == "constant" and d.chance(0.7) else None
    return Node(d.op, [d.array(shape, dtype), ints(pads), value], {"mode": mode})


def blocks(d):
    block, c, h, w = d.size(1, 3), d.size(1, 3), d.size(1, 3), d.size(1, 3)
    x = d.one(FLOATS)
    if d.op == "SpaceToDepth":
        return Node(d.op, [d.array([2, c, h * block, w * block], x)], {"blocksize": block})
    return Node(d.op, [d.array([2, c * block * block, h, w], x)], {"blocksize": block, "mode": d.one(["DCR", "CRD"])})


def reverse_sequence(d):
    time, batch = d.size(1, 5), d.size(1, 4)
    axis = d.size(0, 1)
    shape = [time, batch] if axis == 0 else [batch, time]
    lengths = ints([d.size(1, time) for _ in range(batch)])
    return Node(d.op, [d.array(shape + d.shape(0, 2), np.float32), lengths], {"time_axis": axis, "batch_axis": 1 - axis})


def trilu(d):
    k = np.array(int(d.rng.integers(-4, 5)), np.int64) if d.chance(0.7) else None
    return Node(d.op, [d.array(d.shape(2, 4), d.one([np.float32, np.float64, np.int64, np.bool_])), k], {"upper": d.size(0, 1)})


def eye_like(d):
    attributes = {"k": int(d.rng.integers(-3, 4))}
    if d.chance(0.5):
        attributes["dtype"] = d.one([TensorProto.FLOAT, TensorProto.INT32, TensorProto.DOUBLE])
    return Node(d.op, [d.array([d.size(), d.size()], d.one([np.float32, np.int64]))], attributes)


def shape_of(d):
    attributes = {"start": int(d.rng.integers(-4, 5)), "end": int(d.rng.integers(-4, 5))} if d.op == "Shape" and d.chance(0.5) else {}
    return Node(d.op, [d.array(d.shape(), d.one(MOVED))], attributes)


def constant_of_shape(d):
    value = d.array([1], d.one(MOVED))
    return Node(d.op, [ints(d.shape())], {"value": helper.make_tensor("v", helper.np_dtype_to_tensor_dtype(value.dtype), [1], value.tolist())})


def range_(d):
    dtype = d.one([np.float32, np.float64, np.int16, np.int32, np.int64])
    step = dtype(d.one([-2, -1, 1, 3]))
    return Node(d.op, [np.array(v, dtype) for v in (d.size(0, 5), int(d.rng.integers(-9, 15)), step)])


def one_hot(d):
    shape, depth = d.shape(0, 3), d.size(1, 6)
    x = d.array(shape, d.one([np.int64, np.int32, np.float32]), -depth, depth - 1)
    x = np.trunc(x) if x.dtype == np.float32 else x
    return Node(d.op, [x, np.array(depth, np.int64), d.array([2], d.one([np.float32, np.int64, np.int32]))], {"axis": int(d.rng.integers(-len(shape) - 1, len(shape) + 1))})


def crop_pad(d):
    shape = d.shape(1, 4, empty=0)
    axes = d.axes(len(shape)) or [0]
    return Node(d.op, [d.array(shape, d.one([np.float32, np.int32])), ints([d.size(1, 7) for _ in axes])], {"axes": axes})
