# SPDX-License-Identifier: Apache-2.0
"""For the generators: seeded choices (Draw), and the node that a generator makes (Node)."""
import dataclasses

import numpy as np

FLOATS = [np.float32, np.float64, np.float16]
SIGNED = [np.int8, np.int16, np.int32, np.int64]
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]
INTS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTS
MOVED = NUMBERS + [np.bool_]
ML = "ai.onnx.ml"
MICROSOFT = "com.microsoft"


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
        """Multiples of 1/4, or integers, whose sums of products are exact."""
        if np.issubdtype(dtype, np.floating):
            return (np.asarray(self.rng.integers(-4 * bound, 4 * bound + 1, shape)) / 4).astype(dtype)
        return self.array(shape, dtype, -bound, bound)

    def special(self, array):
        """The array with a few elements replaced by special values, sometimes."""
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
