# SPDX-License-Identifier: Apache-2.0
"""Normalizations."""
import numpy as np

from .draw import Node


def batch_norm(d):
    c = d.size(1, 4)
    shape = [d.size(1, 3), c] + d.shape(0, 3, empty=0)
    dtype = d.one([np.float32, np.float64])
    stats = [d.array([c], dtype) for _ in range(3)] + [d.array([c], dtype, 1, 4)]
    return Node(d.op, [d.array(shape, dtype)] + stats, {"epsilon": 1e-3} if d.chance(0.5) else {})


def instance_norm(d):
    c = d.size(1, 4)
    dtype = np.float32
    return Node(d.op, [d.array([d.size(1, 3), c] + [d.size(2, 5) for _ in range(d.size(1, 3))], dtype), d.array([c], dtype, 1, 3), d.array([c], dtype)])


def layer_norm(d):
    shape = d.shape(1, 4, empty=0, large=0.1)
    shape[-1] = max(shape[-1], 3)
    axis = d.axis(len(shape))
    by_rows = d.chance(0.4)
    if by_rows:  # of equal extents, so that a row has as many elements as there are rows
        shape = [d.size(2, 3)] * len(shape)
    affine = lambda: (d.broadcast(shape) or [1]) if by_rows else shape[axis:]
    inputs = [d.array(shape, np.float32), d.array(affine(), np.float32, 1, 3)]
    if d.op == "LayerNormalization" and d.chance(0.5):
        inputs.append(d.array(affine(), np.float32))
    return Node(d.op, inputs, {"axis": axis, "epsilon": d.one([1e-5, 1e-2])})


def group_norm(d):
    groups = d.size(1, 3)
    c = groups * d.size(1, 3)
    return Node(d.op, [d.array([d.size(1, 2), c, d.size(2, 4), d.size(2, 4)], np.float32), d.array([c], np.float32, 1, 2), d.array([c], np.float32)], {"num_groups": groups})


def lp_norm(d):
    shape = d.shape(1, 4, empty=0)
    return Node(d.op, [d.array(shape, d.one([np.float32, np.float64]), 0.5, 4)], {"axis": d.axis(len(shape)), "p": d.size(1, 2)})


def mvn(d):
    shape = [d.size(2, 4) for _ in range(4)]
    return Node(d.op, [d.array(shape, np.float32)], {"axes": sorted(int(a) for a in d.rng.choice(4, d.size(1, 4), replace=False))})


def lrn(d):
    return Node(d.op, [d.array([d.size(1, 2), d.size(1, 6), d.size(1, 4), d.size(1, 4)], np.float32)], {"size": d.one([1, 3, 5]), "alpha": 0.01, "beta": 0.75, "bias": d.one([1.0, 2.0])})
