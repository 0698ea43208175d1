# SPDX-License-Identifier: Apache-2.0
"""Matrix products."""
import numpy as np

from .draw import Node
from .window import zero_point


def matmul(d):
    m, k, n = d.size(1, 9), d.size(1, 40), d.size(1, 9)
    batch, dtype = d.shape(0, 2), d.one([np.float32, np.float64, np.int32, np.int64, np.uint32])
    a, b = batch + [m, k], d.broadcast(batch) + [k, n]
    if d.chance(0.1):
        a = [k]
    elif d.chance(0.1):
        b = [k]
    return Node(d.op, [d.exact(a, dtype), d.exact(b, dtype)], {}, 1, "", (1,) if d.chance(0.3) else ())


def gemm(d):
    m, k, n = d.size(0, 9), d.size(1, 20), d.size(1, 9)
    ta, tb = d.size(0, 1), d.size(0, 1)
    dtype = d.one([np.float32, np.float64])
    c = d.exact(d.one([[], [n], [1, n], [m, 1], [m, n]]), dtype) if d.chance(0.7) else None
    return Node(d.op, [d.exact([k, m] if ta else [m, k], dtype), d.exact([n, k] if tb else [k, n], dtype), c], {"transA": ta, "transB": tb, "alpha": d.one([1.0, 0.5]), "beta": d.one([1.0, 2.0])})


def matmul_integer(d):
    m, k, n = d.size(1, 6), d.size(1, 30), d.size(1, 6)
    a, b = np.uint8, d.one([np.uint8, np.int8])
    inputs = [d.array([m, k], a, 0, 255), d.array([k, n], b, -100, 100)]
    if d.chance(0.7):
        inputs += [zero_point(d, a), zero_point(d, b)]
    return Node(d.op, inputs)


def qlinear_matmul(d):
    m, k, n = d.size(1, 6), d.size(1, 20), d.size(1, 6)
    a, b = d.one([(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
    return Node(d.op, [d.array([m, k], a, -100, 100), np.float32(0.5).reshape([]), zero_point(d, a), d.array([k, n], b, -100, 100), np.array(0.25, np.float32), zero_point(d, b), np.array(4.0, np.float32), zero_point(d, a)])


EINSUMS = [("ij,jk->ik", "ij jk"), ("bij,bjk->bik", "bij bjk"), ("ij->ji", "ij"), ("ii->i", "ii"), ("ij->", "ij"), ("i,j->ij", "i j"), ("...ij,...jk->...ik", "bij bjk"), ("bhid,bhjd->bhij", "bhid bhjd"), ("ij,ij->i", "ij ij")]


def einsum(d):
    equation, operands = d.one(EINSUMS)
    sizes = {letter: d.size(1, 5) for letter in "bhijkd"}
    return Node(d.op, [d.exact([sizes[c] for c in o], d.one([np.float32]) ) for o in operands.split()], {"equation": equation})


def det(d):
    n = d.size(1, 4)
    return Node(d.op, [d.exact(d.shape(0, 2, large=0) + [n, n], np.float32, 2) + 3 * np.eye(n, dtype=np.float32)])
