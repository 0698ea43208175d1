# SPDX-License-Identifier: Apache-2.0
"""Random nodes for differential.py: FAMILIES says which operators each generator draws.

A generator takes a Draw and returns a Node. Inputs of operators that add up products are multiples of 1/4 with few bits, so that
every order of summation gives the same bits; what is left is rounding of single functions.
"""
import dataclasses

import numpy as np
from onnx import TensorProto, helper

FLOATS = [np.float32, np.float64, np.float16]
SIGNED = [np.int8, np.int16, np.int32, np.int64]
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]
INTS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTS
MOVED = NUMBERS + [np.bool_]
ML = "ai.onnx.ml"


@dataclasses.dataclass
class Node:
    op: str
    inputs: list  # arrays; None: omitted
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: int = 1
    domain: str = ""
    constants: tuple = ()  # inputs that are initializers


class Draw:
    """Seeded choices."""

    def __init__(self, op, rng):
        self.op, self.rng = op, rng

    def one(self, options):
        return options[self.rng.integers(len(options))]

    def chance(self, p):
        return self.rng.random() < p

    def size(self, low=1, high=6):
        return int(self.rng.integers(low, high + 1))

    def shape(self, low=0, high=4, empty=0.04, large=0.03):
        shape = [self.size(1, 5) for _ in range(self.size(low, high))]
        if shape and self.chance(large):
            shape[self.rng.integers(len(shape))] = self.size(60, 300)
        elif shape and self.chance(empty):
            shape[self.rng.integers(len(shape))] = 0
        return shape

    def axis(self, rank):
        return int(self.rng.integers(-rank, rank))

    def axes(self, rank):
        count = self.size(0, rank)
        chosen = self.rng.choice(rank, count, replace=False)
        return [int(a) - (rank if self.chance(0.5) else 0) for a in chosen]

    def array(self, shape, dtype, low=-4, high=4):
        """Any numbers of the type within bounds."""
        if dtype == np.bool_:
            return self.rng.random(shape) < 0.5
        if np.issubdtype(dtype, np.integer):
            low = max(low, np.iinfo(dtype).min)
            return np.asarray(self.rng.integers(low, high + 1, shape)).astype(dtype)
        return np.asarray(self.rng.uniform(low, high, shape)).astype(dtype)

    def exact(self, shape, dtype=np.float32, bound=4):
        """Numbers whose sums of products are exact."""
        if np.issubdtype(dtype, np.floating):
            return (np.asarray(self.rng.integers(-4 * bound, 4 * bound + 1, shape)) / 4).astype(dtype)
        return self.array(shape, dtype, -bound, bound)

    def special(self, array):
        """The same with a few special values."""
        if array.size and np.issubdtype(array.dtype, np.floating) and self.chance(0.3):
            array = np.array(array)
            tiny = np.finfo(array.dtype).smallest_subnormal
            values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, tiny, np.finfo(array.dtype).max])
            places = self.rng.integers(array.size, size=self.size(1, 4))
            array.flat[places] = self.rng.choice(values, len(places)).astype(array.dtype)
        elif array.size and np.issubdtype(array.dtype, np.integer) and self.chance(0.1):
            array = np.array(array)
            array.flat[self.rng.integers(array.size)] = self.one([np.iinfo(array.dtype).min, np.iinfo(array.dtype).max])
        return array

    def broadcast(self, shape):
        """A shape that broadcasts with `shape`."""
        part = list(shape[self.size(0, len(shape)) :]) if shape else []
        return [1 if self.chance(0.3) else n for n in part]


def ints(values):
    return np.array(values, np.int64)


# ---- element by element

UNARY_RANGE = {  # where it is defined
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


# ---- over axes

def reduce(d):
    # ONNX Runtime takes integers' logarithms in integers.
    dtype = d.one(FLOATS[:2] + ([] if d.op == "ReduceLogSumExp" else [np.int32, np.int64]))
    shape = d.shape(0, 4, empty=0 if d.op == "ReduceMean" else 0.03)
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


# ---- elements go elsewhere

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


# ---- by index

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
    picks = np.argsort(d.rng.random(shape), axis)  # no place twice
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


# ---- windows

def window(d, rank, pads=True):
    attributes = {"strides": [d.size(1, 3) for _ in range(rank)], "dilations": [d.size(1, 2) for _ in range(rank)]}
    if not pads or d.chance(0.3):
        attributes["auto_pad"] = d.one(["VALID", "SAME_UPPER", "SAME_LOWER"])
        if attributes["auto_pad"] != "VALID":  # the least kernel that is drawn with it has 2
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
    if "auto_pad" in attributes or groups > 1:  # onnx.reference is wrong there, and onnxruntime has float alone
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
    x = d.exact([d.size(1, 2), d.size(1, 3) * kernel[0] * kernel[1], count[0] * count[1]])
    return Node(d.op, [x, ints(image), ints(kernel)], {"strides": strides, "pads": pads})


def roi_align(d):
    count, n = d.size(1, 4), d.size(1, 3)
    corner = d.rng.uniform(0, 4, [count, 2])
    rois = np.concatenate([corner, corner + d.rng.uniform(0.5, 5, [count, 2])], 1).astype(np.float32)
    attributes = {"output_height": d.size(1, 4), "output_width": d.size(1, 4), "sampling_ratio": d.size(0, 3), "spatial_scale": d.one([0.5, 1.0, 2.0]), "mode": d.one(["avg", "max"]), "coordinate_transformation_mode": d.one(["half_pixel", "output_half_pixel"])}
    return Node(d.op, [d.array([n, 2, 8, 9], np.float32), rois, d.array([count], np.int64, 0, n - 1)], attributes)


# ---- products

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


# ---- normalization

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
    scale = d.array(shape[axis:], np.float32, 1, 3)
    inputs = [d.array(shape, np.float32), scale]
    if d.op == "LayerNormalization" and d.chance(0.5):
        inputs.append(d.array(shape[axis:], np.float32))
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


# ---- pictures

def resize(d):
    mode = d.one(["nearest", "linear", "cubic"])
    rank = 4 if mode == "cubic" else d.size(1, 4) if mode == "nearest" else d.one([2, 4])
    shape = [d.size(1, 2), d.size(1, 2)][: max(0, rank - 2)] + [d.size(3, 7) for _ in range(min(rank, 2))]
    attributes = {"mode": mode, "coordinate_transformation_mode": d.one(["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"])}
    if mode == "nearest":
        attributes["nearest_mode"] = d.one(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    else:
        attributes["antialias"] = d.size(0, 1) if rank == 4 else 0
    if mode == "cubic":
        attributes["cubic_coeff_a"] = d.one([-0.75, -0.5])
        attributes["exclude_outside"] = d.size(0, 1)
    scales = [1.0] * (rank - min(rank, 2)) + [d.one([0.5, 1.0, 1.5, 2.0, 3.0, 0.75]) for _ in range(min(rank, 2))]
    x = d.array(shape, np.float32)
    if d.chance(0.5):
        return Node(d.op, [x, None, np.array(scales, np.float32)], attributes, 1, "", (2,))
    return Node(d.op, [x, None, None, ints([max(1, int(n * s)) for n, s in zip(shape, scales)])], attributes, 1, "", (3,))


def grid_sample(d):
    n, c = d.size(1, 2), d.size(1, 3)
    attributes = {"mode": d.one(["linear", "nearest", "cubic"]), "padding_mode": d.one(["zeros", "border", "reflection"]), "align_corners": d.size(0, 1)}
    grid = np.round(d.rng.uniform(-1.3, 1.3, [n, d.size(1, 4), d.size(1, 4), 2]), 2).astype(np.float32) + np.float32(0.003)
    return Node(d.op, [d.array([n, c, d.size(3, 6), d.size(3, 6)], np.float32), grid], attributes)


def affine_grid(d):
    n = d.size(1, 2)
    align = d.size(0, 1)  # of one corner alone nobody agrees where it is
    return Node(d.op, [d.exact([n, 2, 3]), ints([n, d.size(1, 3), d.size(1 + align, 5), d.size(1 + align, 5)])], {"align_corners": align})


# ---- types

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


# ---- the rest

def loss(d):
    n, c = d.size(1, 4), d.size(2, 5)
    tail = d.shape(0, 2, empty=0, large=0)
    inputs = [d.array([n, c] + tail, np.float32, -5, -0.5), d.array([n] + tail, np.int64, 0, c - 1)]
    if d.chance(0.5):
        inputs.append(d.array([c], np.float32, 0.5, 2))
    attributes = {"reduction": d.one(["none", "sum", "mean"])}
    if d.chance(0.3):
        attributes["ignore_index"] = d.size(0, c - 1)
    return Node(d.op, inputs, attributes)


def recurrent(d):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[d.op]
    direction = d.one(["forward", "reverse", "bidirectional"])
    dirs = 2 if direction == "bidirectional" else 1
    t, n, i, h = d.size(1, 4), d.size(1, 3), d.size(1, 4), d.size(1, 4)
    x = lambda *shape: d.array(shape, np.float32, -1, 1)
    inputs = [x(t, n, i), x(dirs, gates * h, i), x(dirs, gates * h, h), x(dirs, 2 * gates * h) if d.chance(0.6) else None]
    inputs.append(np.array([d.size(1, t) for _ in range(n)], np.int32) if d.chance(0.3) else None)
    inputs.append(x(dirs, n, h) if d.chance(0.5) else None)
    attributes = {"hidden_size": h, "direction": direction}
    if d.op == "LSTM":
        inputs.append(x(dirs, n, h) if d.chance(0.5) else None)
        inputs.append(x(dirs, 3 * h) if d.chance(0.3) else None)
    if d.op == "GRU":
        attributes["linear_before_reset"] = d.size(0, 1)
    if d.chance(0.2):
        attributes["clip"] = 0.5
    return Node(d.op, inputs, attributes, 3 if d.op == "LSTM" else 2)


def dft(d):
    n = d.size(2, 12)
    inverse = d.size(0, 1)
    shape = [d.size(1, 2), n, 2 if inverse else d.size(1, 2)]
    return Node(d.op, [d.array(shape, np.float32), None, np.array(d.one([1, -2]), np.int64)], {"inverse": inverse, "onesided": 0 if inverse or shape[-1] == 2 else d.size(0, 1)})


def signal_window(d):
    return Node(d.op, [np.array(d.size(2, 40), np.int64)], {"periodic": d.size(0, 1)})


def attention(d):
    batch, heads, q, k, size = d.size(1, 2), d.size(1, 3), d.size(1, 5), d.size(1, 6), d.one([2, 4, 8])
    x = lambda *shape: d.array(shape, np.float32, -2, 2)
    inputs = [x(batch, heads, q, size), x(batch, heads, k, size), x(batch, heads, k, size)]
    if d.chance(0.4):
        inputs.append(x(q, k) if d.chance(0.5) else d.rng.random([q, k]) < 0.8)
        if inputs[-1].dtype == np.bool_:
            inputs[-1][:, 0] = True
    attributes = {"is_causal": d.size(0, 1) if len(inputs) == 3 else 0}
    if d.chance(0.3):
        attributes["softcap"] = 2.0
    return Node(d.op, inputs, attributes)


WORDS = ["", "a", "Abc", "monday", "TUESDAY", "été", "x y", "1,2", "abcabc"]


def words(d, shape):
    return np.array([d.one(WORDS) for _ in range(int(np.prod(shape)))], object).reshape(shape)


def string_concat(d):
    shape = d.shape(0, 3, large=0)
    return Node(d.op, [words(d, shape), words(d, d.broadcast(shape))])


def string_normalizer(d):
    x = words(d, [d.size(1, 5)])
    x[x == "été"] = "Ete"  # the locale "C" knows no other letters
    return Node(d.op, [x], {"case_change_action": d.one(["LOWER", "UPPER", "NONE"]), "is_case_sensitive": 1, "stopwords": ["a", "monday"], "locale": "C"})


def string_split(d):
    return Node(d.op, [words(d, d.shape(1, 2, empty=0, large=0))], {"delimiter": d.one([",", "b", " "])}, 2)


def regex(d):
    return Node(d.op, [words(d, d.shape(0, 2, large=0))], {"pattern": d.one(["a.*", "[a-z]+", "(abc)+", "\\d,\\d", ""])})


# ---- ai.onnx.ml

FEATURES = [np.float32, np.float64, np.int32, np.int64]
POST = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]


def features(d, width, dtype=None):
    return d.array([d.size(1, 5), width], dtype or d.one(FEATURES), -4, 4)


def floats(d, *shape):
    return [float(v) for v in d.rng.uniform(-2, 2, shape).astype(np.float32).flat]


def ml_scale(d):
    width = d.size(1, 5)
    x = features(d, width)
    if d.op == "Binarizer":
        return Node(d.op, [x], {"threshold": 0.5}, 1, ML)
    if d.op == "Normalizer":
        return Node(d.op, [np.abs(x) + 1], {"norm": d.one(["MAX", "L1", "L2"])}, 1, ML)
    if d.op == "Scaler":
        count = d.one([1, width])
        return Node(d.op, [x], {"offset": floats(d, count), "scale": floats(d, count)}, 1, ML)
    count = d.one([1, width])
    if np.issubdtype(x.dtype, np.integer):
        return Node(d.op, [x], {"imputed_value_int64s": [int(v) for v in d.rng.integers(-9, 9, count)], "replaced_value_int64": 1}, 1, ML)
    old = d.one([np.nan, 0.0])
    x = np.where(d.rng.random(x.shape) < 0.3, x.dtype.type(old), x)
    return Node(d.op, [x], {"imputed_value_floats": floats(d, count), "replaced_value_float": old}, 1, ML)


def ml_features(d):
    if d.op == "ArrayFeatureExtractor":
        shape = d.shape(1, 3, empty=0)
        return Node(d.op, [d.array(shape, d.one(FEATURES)), d.array([d.size(1, 4)], np.int64, 0, shape[-1] - 1)], {}, 1, ML)
    if d.op == "OneHotEncoder":
        return Node(d.op, [d.array([d.size(1, 6)], d.one([np.int64, np.int32, np.float32, np.float64]), 0, 5).round()], {"cats_int64s": [0, 2, 3, 7]}, 1, ML)
    rows, dtype, widths = d.size(1, 4), d.one(FEATURES), [d.size(1, 3) for _ in range(d.size(1, 3))]
    return Node(d.op, [d.array([rows, w], dtype) for w in widths], {"inputdimensions": widths}, 1, ML)


def ml_linear(d):
    width, outputs = d.size(1, 5), d.size(1, 4)
    x = d.exact([d.size(1, 5), width], d.one(FEATURES))
    coefficients = [float(v) for v in d.exact([outputs * width]).flat]
    intercepts = [float(v) + 0.0625 for v in d.exact([outputs]).flat]
    if d.op == "LinearRegressor":
        return Node(d.op, [x], {"coefficients": coefficients, "intercepts": intercepts, "targets": outputs}, 1, ML)
    labels = {"classlabels_ints": list(range(3, 3 + max(2, outputs)))} if d.chance(0.5) else {"classlabels_strings": list("abcd")[: max(2, outputs)]}
    return Node(d.op, [x], dict(labels, coefficients=coefficients, intercepts=intercepts, post_transform=d.one(POST)), 2, ML)


def ml_svm(d):
    width, classes = d.size(1, 4), d.size(2, 4)
    kernel = {"kernel_type": d.one(["LINEAR", "POLY", "RBF", "SIGMOID"]), "kernel_params": [0.25, 0.5, 2.0]}
    x = features(d, width, d.one([np.float32, np.float32, np.int64]))
    if d.op == "SVMRegressor":
        n = d.size(0, 4)
        if n == 0:
            return Node(d.op, [x], {"coefficients": floats(d, width), "kernel_params": [0.0, 0.0, 0.0], "rho": [0.25]}, 1, ML)
        return Node(d.op, [x], dict(kernel, n_supports=n, coefficients=floats(d, n), support_vectors=floats(d, n * width), rho=[0.25], one_class=d.size(0, 1)), 1, ML)
    attributes = {"classlabels_ints": list(range(classes))} if d.chance(0.5) else {"classlabels_strings": list("abcd")[:classes]}
    pairs = classes * (classes - 1) // 2
    if d.chance(0.3):
        # With one rho and more than two classes the references answer 0 or 1 instead of a label.
        rho = [0.25] if classes == 2 else [0.25, 0.25]
        return Node(d.op, [x], dict(attributes, coefficients=floats(d, classes * width), kernel_params=kernel["kernel_params"], rho=rho, post_transform=d.one(POST)), 2, ML)
    per_class = [d.size(1, 3) for _ in range(classes)]
    n = sum(per_class)
    attributes |= dict(kernel, vectors_per_class=per_class, support_vectors=floats(d, n * width), coefficients=floats(d, (classes - 1) * n), rho=floats(d, pairs))
    if d.chance(0.5):
        attributes |= {"prob_a": [-1.0] * pairs, "prob_b": [0.1] * pairs}
    else:
        attributes["post_transform"] = d.one(POST)
    return Node(d.op, [x], attributes, 2, ML)


def ml_trees(d):
    width = d.size(1, 4)
    x = features(d, width, np.float32)
    if d.chance(0.2):
        x.flat[0] = np.nan
    prefix = "class" if d.op == "TreeEnsembleClassifier" else "target"
    targets = d.size(2, 4) if prefix == "class" else d.size(1, 3)
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    leaves = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}
    trees = d.size(1, 4)
    mode = d.one(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"])
    for tree in range(trees):
        for node in range(7):
            leaf = node >= 3
            for key, value in zip(nodes, (tree, node, 0 if leaf else d.size(0, width - 1), 0.0 if leaf else float(d.exact([])), "LEAF" if leaf else mode, 0 if leaf else 2 * node + 1, 0 if leaf else 2 * node + 2, 0 if leaf else d.size(0, 1))):
                nodes[key].append(value)
            # What a target without any leaf gets is nowhere defined.
            for target in ([] if not leaf else range(targets) if prefix == "target" else [d.size(0, targets - 1)]):
                for key, value in zip(leaves, (tree, node, target, float(d.exact([], bound=2)) + 0.25)):
                    leaves[key].append(value)
    attributes = {f"nodes_{k}": v for k, v in nodes.items()} | {f"{prefix}_{k}": v for k, v in leaves.items()}
    if prefix == "target":
        attributes |= {"n_targets": targets, "aggregate_function": d.one(["SUM", "AVERAGE", "MIN", "MAX"])}
        if d.chance(0.5):
            attributes["base_values"] = floats(d, targets)
        return Node(d.op, [x], attributes, 1, ML)
    attributes["classlabels_int64s"] = list(range(targets))
    attributes["post_transform"] = d.one(POST)
    if d.chance(0.3) and targets > 2:
        attributes["base_values"] = floats(d, targets)
    if targets == 2 and d.chance(0.5):
        attributes["class_ids"] = [0] * len(leaves["ids"])
    return Node(d.op, [x], attributes, 2, ML)


def ml_labels(d):
    if d.op == "CategoryMapper":
        attributes = {"cats_int64s": [1, 2, 3], "cats_strings": ["a", "Abc", "monday"]}
        return Node(d.op, [words(d, [d.size(1, 5)]) if d.chance(0.5) else d.array([d.size(1, 5)], np.int64, 0, 4)], attributes, 1, ML)
    keys = {"keys_strings": ["a", "Abc", "monday"], "keys_int64s": [1, 2, 3], "keys_floats": [1.0, 2.0, float("nan")]}
    values = {"values_strings": ["x", "y", "z"], "values_int64s": [7, 8, 9], "values_floats": [0.5, 1.5, 2.5]}
    key, value = d.one(list(keys)), d.one(list(values))
    shape = [d.size(1, 6)]
    x = words(d, shape) if key == "keys_strings" else d.array(shape, np.int64 if key == "keys_int64s" else np.float32, 0, 4).round()
    return Node(d.op, [x], {key: keys[key], value: values[value]}, 1, ML)


def ml_maps(d):
    names = [str(n) for n in d.rng.permutation(["a", "b", "c", "d", "e"])[: d.size(1, 5)]]
    numbers = [int(n) for n in d.rng.permutation(9)[: len(names)]]
    texts = d.chance(0.5)
    if d.op == "ZipMap":
        attributes = {"classlabels_strings": names} if texts else {"classlabels_int64s": numbers}
        return Node(d.op, [d.array([d.size(1, 4), len(names)], np.float32)], attributes, 1, ML)
    if d.op == "DictVectorizer":
        vocabulary = {"string_vocabulary": ["e", "c", "a", "x"]} if texts else {"int64_vocabulary": [8, 1, 3, 20]}
        return Node(d.op, [{k: float(v) for k, v in zip(names if texts else numbers, d.array([9], np.float32))}], vocabulary, 1, ML)
    form = {"map_form": "SPARSE", "max_map": 9} if d.chance(0.5) else {"map_form": "DENSE"}
    numeric = {k: float(v) for k, v in zip(numbers, d.array([9], np.float32).round(1))}
    return Node(d.op, [numeric], dict(form, cast_to=d.one(["TO_FLOAT", "TO_INT64"])), 1, ML)


FAMILIES = [
    (unary, "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf "
            "IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh "
            "ThresholdedRelu"),
    (binary, "Add Sub Mul Div Pow Mod And Or Xor Equal Less LessOrEqual Greater GreaterOrEqual BitwiseAnd BitwiseOr BitwiseXor BitShift PRelu"),
    (variadic, "Max Min Sum Mean"), (where, "Where"), (clip, "Clip"),
    (reduce, "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare"),
    (arg_reduce, "ArgMax ArgMin"), (cumulative, "CumSum CumProd"), (softmax, "Softmax LogSoftmax Hardmax"),
    (transpose, "Transpose"), (reshape, "Reshape"), (flatten, "Flatten"), (squeeze, "Squeeze"), (unsqueeze, "Unsqueeze"), (expand, "Expand"),
    (tile, "Tile"), (concat, "Concat"), (split, "Split"), (slice_, "Slice"), (pad, "Pad"), (blocks, "DepthToSpace SpaceToDepth"),
    (reverse_sequence, "ReverseSequence"), (trilu, "Trilu"), (eye_like, "EyeLike"), (shape_of, "Shape Size"),
    (constant_of_shape, "ConstantOfShape"), (range_, "Range"), (one_hot, "OneHot"), (crop_pad, "CenterCropPad"),
    (gather, "Gather"), (gather_elements, "GatherElements"), (gather_nd, "GatherND"), (scatter_elements, "ScatterElements"),
    (scatter_nd, "ScatterND"), (compress, "Compress"), (non_zero, "NonZero"), (unique, "Unique"), (top_k, "TopK"),
    (conv, "Conv ConvTranspose"), (conv_integer, "ConvInteger"), (qlinear_conv, "QLinearConv"), (pool, "MaxPool AveragePool LpPool"),
    (global_pool, "GlobalMaxPool GlobalAveragePool GlobalLpPool"), (col2im, "Col2Im"), (roi_align, "RoiAlign"),
    (matmul, "MatMul"), (gemm, "Gemm"), (matmul_integer, "MatMulInteger"), (qlinear_matmul, "QLinearMatMul"), (einsum, "Einsum"), (det, "Det"),
    (batch_norm, "BatchNormalization"), (instance_norm, "InstanceNormalization"), (layer_norm, "LayerNormalization RMSNormalization"),
    (group_norm, "GroupNormalization"), (lp_norm, "LpNormalization"), (mvn, "MeanVarianceNormalization"), (lrn, "LRN"),
    (resize, "Resize"), (grid_sample, "GridSample"), (affine_grid, "AffineGrid"), (cast, "Cast CastLike"),
    (quantize, "QuantizeLinear DequantizeLinear"), (dynamic_quantize, "DynamicQuantizeLinear"),
    (loss, "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss"), (recurrent, "RNN GRU LSTM"), (dft, "DFT"),
    (signal_window, "HannWindow HammingWindow BlackmanWindow"), (attention, "Attention"),
    (string_concat, "StringConcat"), (string_normalizer, "StringNormalizer"), (string_split, "StringSplit"), (regex, "RegexFullMatch"),
    (ml_scale, "Binarizer Imputer Normalizer Scaler"), (ml_features, "ArrayFeatureExtractor FeatureVectorizer OneHotEncoder"),
    (ml_linear, "LinearClassifier LinearRegressor"), (ml_svm, "SVMClassifier SVMRegressor"),
    (ml_trees, "TreeEnsembleClassifier TreeEnsembleRegressor"), (ml_labels, "CategoryMapper LabelEncoder"), (ml_maps, "CastMap DictVectorizer ZipMap"),
]
