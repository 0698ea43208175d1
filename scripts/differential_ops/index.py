# SPDX-License-Identifier: Apache-2.0
"""Nodes that gather or scatter elements by index."""
import numpy as np

from .draw import ints, MOVED, Node


def gather(d):
    shape = d.shape(1, 4, empty=0)
    axis = d.axis(len(shape))
    n = shape[axis]
    return Node(d.op, [d.array(shape, d.one(MOVED)), d.array(d.shape(0, 3), d.one([np.int32, np.int64]), -n, n - 1)], {"axis": axis})


def gather_elements(d):
    shape = d.shape(1, 4, empty=0)
    axis = d.axis(len(shape))
    index = [d.size(1, n) for n in shape]
    index[axis] = d.size(0, 6)
    n = shape[axis]
    return Node(d.op, [d.array(shape, d.one(MOVED)), d.array(index, d.one([np.int32, np.int64]), -n, n - 1)], {"axis": axis})


def nd_index(d, shape, batch):
    depth = d.size(1, len(shape) - batch)
    lead = shape[:batch] + d.shape(1, 2, empty=0, large=0)
    parts = [d.array(lead + [1], np.int64, -n, n - 1) for n in shape[batch : batch + depth]]
    return np.concatenate(parts, -1), depth


def gather_nd(d):
    shape = d.shape(2, 4, empty=0)
    batch = d.size(0, len(shape) - 1)
    index, _ = nd_index(d, shape, batch)
    return Node(d.op, [d.array(shape, d.one(MOVED)), index], {"batch_dims": batch})


def scatter_elements(d):
    shape, dtype = d.shape(1, 4, empty=0, large=0), d.one([np.float32, np.float64, np.int32, np.int64])
    axis = d.axis(len(shape))
    index = [d.size(1, n) for n in shape]
    reduction = d.one(["none", "add", "mul", "max", "min"])
    picks = np.argsort(d.rng.random(shape), axis)  # no index occurs twice
    places = picks[tuple(slice(0, n) for n in index)].astype(np.int64)
    return Node(d.op, [d.exact(shape, dtype), places - (shape[axis] if d.chance(0.3) else 0), d.exact(index, dtype, 2)], {"axis": axis, "reduction": reduction})


def scatter_nd(d):
    shape, dtype = d.shape(1, 3, empty=0, large=0), d.one([np.float32, np.float64, np.int32, np.int64])
    depth = d.size(1, len(shape))
    count = d.size(1, int(np.prod(shape[:depth])))
    flat = d.rng.choice(int(np.prod(shape[:depth])), count, replace=False)
    index = np.stack(np.unravel_index(flat, shape[:depth]), -1).astype(np.int64)
    return Node(d.op, [d.exact(shape, dtype), index, d.exact([count] + shape[depth:], dtype, 2)], {"reduction": d.one(["none", "add", "mul", "max", "min"])})


def compress(d):
    shape = d.shape(1, 3, empty=0)
    axis = d.axis(len(shape)) if d.chance(0.7) else None
    length = d.size(0, shape[axis] if axis is not None else int(np.prod(shape)))
    return Node(d.op, [d.array(shape, d.one(MOVED)), d.array([length], np.bool_)], {} if axis is None else {"axis": axis})


def non_zero(d):
    return Node(d.op, [np.round(d.array(d.shape(1, 4), d.one([np.float32, np.int32, np.int64, np.bool_]), -1, 1))])


def unique(d):
    shape = d.shape(1, 3, empty=0)
    attributes = {"sorted": 1}
    if d.chance(0.5):
        attributes["axis"] = d.axis(len(shape))
    return Node(d.op, [np.round(d.array(shape, d.one([np.float32, np.float64, np.int64, np.int8]), -2, 2))], attributes, 4)


def top_k(d):
    shape = d.shape(1, 4, empty=0)
    axis = d.axis(len(shape))
    x = d.exact(shape, d.one([np.float32, np.float64, np.int32, np.int64]), 50)
    return Node(d.op, [x, ints([d.size(0, shape[axis])])], {"axis": axis, "largest": d.size(0, 1), "sorted": 1}, 2)
