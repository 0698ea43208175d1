# SPDX-License-Identifier: Apache-2.0
"""Nodes that work element by element."""
import numpy as np

from .draw import FLOATS, INTS, MOVED, Node, NUMBERS, SIGNED, UNSIGNED

UNARY_RANGE = {  # range of the inputs, in which the operator is defined
    "Acos": (-1, 1), "Asin": (-1, 1), "Atanh": (-0.99, 0.99), "Acosh": (1, 9), "Log": (0.01, 50), "Sqrt": (0, 50),
    "Cosh": (-4, 4), "Sinh": (-4, 4), "Tan": (-1.2, 1.2), "Exp": (-8, 8), "Gelu": (-2, 5),
}
UNARY_ATTRIBUTES = {
    "Elu": ["alpha"], "LeakyRelu": ["alpha"], "HardSigmoid": ["alpha", "beta"], "Selu": ["alpha", "gamma"],
    "ThresholdedRelu": ["alpha"], "Celu": ["alpha"], "Shrink": ["lambd", "bias"], "Swish": ["alpha"],
}
UNARY_TYPES = {
    "Not": [np.bool_], "BitwiseNot": INTS, "Abs": NUMBERS, "Neg": FLOATS + SIGNED, "Sign": NUMBERS, "Relu": FLOATS + SIGNED,
    "Identity": MOVED, "IsInf": [np.float32, np.float64], "Celu": [np.float32], "Shrink": NUMBERS, "Gelu": FLOATS[:2],
}


def unary(d):
    low, high = UNARY_RANGE.get(d.op, (-5, 5))
    x = d.array(d.shape(), d.one(UNARY_TYPES.get(d.op, FLOATS)), low, high)
    if d.op not in ("Shrink", "Gelu", "Softplus"):
        x = d.special(x)
    attributes = {name: float(np.float32(d.rng.uniform(0.1, 2))) for name in UNARY_ATTRIBUTES.get(d.op, []) if d.chance(0.6)}
    if d.op == "Gelu" and d.chance(0.5):
        attributes["approximate"] = "tanh"
    if d.op == "IsInf":
        attributes = {name: d.size(0, 1) for name in ("detect_negative", "detect_positive") if d.chance(0.5)}
    return Node(d.op, [x], attributes)


BINARY_TYPES = {
    "And": [np.bool_], "Or": [np.bool_], "Xor": [np.bool_], "Equal": MOVED, "BitwiseAnd": INTS, "BitwiseOr": INTS,
    "BitwiseXor": INTS, "BitShift": UNSIGNED, "PRelu": FLOATS + [np.int32, np.int64, np.uint32, np.uint64],
    "Pow": FLOATS + [np.int32, np.int64],
}


def binary(d):
    dtype = d.one(BINARY_TYPES.get(d.op, NUMBERS))
    shape = d.shape()
    a, b = d.array(shape, dtype), d.array(d.broadcast(shape), dtype)
    attributes = {}
    if d.op == "BitShift":
        attributes["direction"] = d.one(["LEFT", "RIGHT"])
        b = b % (8 * b.itemsize)
    if d.op in ("Div", "Mod") and np.issubdtype(dtype, np.integer):
        b = np.where(b == 0, dtype(1), b)
    if d.op == "Mod":
        attributes["fmod"] = 1 if np.issubdtype(dtype, np.floating) else d.size(0, 1)
        b = np.where(b == 0, dtype(1), b)
    if d.op == "Pow":
        exponent = d.one(FLOATS + [np.int32, np.int64])
        b = d.array(b.shape, exponent, 0, 3)
        a = np.abs(a) if np.issubdtype(exponent, np.floating) else a
    elif d.op not in ("Mod", "BitShift", "Div") and d.chance(0.5):
        a, b = d.special(a), d.special(b)
    if d.op not in ("PRelu", "Pow", "BitShift") and d.chance(0.3):
        a, b = (a, b) if d.op == "Mod" or (d.op == "Div" and np.issubdtype(dtype, np.integer)) else (b, a)
    return Node(d.op, [a, b], attributes)


def variadic(d):
    dtype = d.one(FLOATS if d.op in ("Sum", "Mean") else NUMBERS)
    shape = d.shape()
    first = d.array(shape, dtype)
    return Node(d.op, [first] + [d.array(d.broadcast(shape), dtype) for _ in range(d.size(0, 3))])


def where(d):
    shape, dtype = d.shape(), d.one(MOVED)
    return Node(d.op, [d.array(d.broadcast(shape), np.bool_), d.array(shape, dtype), d.array(d.broadcast(shape), dtype)])


def clip(d):
    dtype = d.one(NUMBERS)
    low, high = (np.array(v, dtype) for v in ((0, 3) if np.issubdtype(dtype, np.unsignedinteger) else (-2, 2)))
    return Node(d.op, [d.special(d.array(d.shape(), dtype)), low if d.chance(0.7) else None, high if d.chance(0.7) else None])
