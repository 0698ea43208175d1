# SPDX-License-Identifier: Apache-2.0
"""Reductions, sums along an axis, softmax."""
import numpy as np

from .draw import FLOATS, ints, Node


def reduce(d):
    # For integers, ONNX Runtime computes ReduceLogSumExp in the integer type.
    dtype = d.one(FLOATS[:2] + ([] if d.op == "ReduceLogSumExp" else [np.int32, np.int64]))
    undefined = d.op == "ReduceMean" or (d.op == "ReduceLogSum" and np.issubdtype(dtype, np.integer))  # the result for no elements
    shape = d.shape(0, 4, empty=0 if undefined else 0.03)
    positive = d.op in ("ReduceLogSum", "ReduceProd")
    x = d.array(shape, dtype, 1, 3) if positive else d.exact(shape, dtype)
    if d.op == "ReduceLogSumExp":
        x = d.array(shape, dtype, -3, 3)
    attributes = {"keepdims": d.size(0, 1), "noop_with_empty_axes": d.size(0, 1)}
    axes = ints(d.axes(len(shape))) if shape and d.chance(0.8) else None
    return Node(d.op, [x, axes], attributes)


def arg_reduce(d):
    shape = d.shape(1, 4, empty=0)
    attributes = {"axis": d.axis(len(shape)), "keepdims": d.size(0, 1), "select_last_index": d.size(0, 1)}
    return Node(d.op, [d.exact(shape, d.one([np.float32, np.float64, np.int32, np.int8, np.uint8]))], attributes)


def cumulative(d):
    shape = d.shape(1, 4)
    attributes = {"exclusive": d.size(0, 1), "reverse": d.size(0, 1)}
    return Node(d.op, [d.exact(shape, d.one([np.float32, np.float64, np.int32, np.int64])), np.array(d.axis(len(shape)), np.int64)], attributes)


def softmax(d):
    shape = d.shape(1, 4, empty=0.02)
    return Node(d.op, [d.array(shape, d.one(FLOATS[:2]))], {"axis": d.axis(len(shape))} if d.chance(0.8) else {})
