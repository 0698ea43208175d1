# SPDX-License-Identifier: Apache-2.0
"""Strings."""
import numpy as np

from .draw import Node

WORDS = ["", "a", "Abc", "monday", "TUESDAY", "été", "x y", "1,2", "abcabc"]


def words(d, shape):
    return np.array([d.one(WORDS) for _ in range(int(np.prod(shape)))], object).reshape(shape)


def string_concat(d):
    shape = d.shape(0, 3, large=0)
    return Node(d.op, [words(d, shape), words(d, d.broadcast(shape))])


def string_normalizer(d):
    x = words(d, [d.size(1, 5)])
    x[x == "été"] = "Ete"  # the locale "C" has only ASCII letters
    return Node(d.op, [x], {"case_change_action": d.one(["LOWER", "UPPER", "NONE"]), "is_case_sensitive": 1, "stopwords": ["a", "monday"], "locale": "C"})


def string_split(d):
    return Node(d.op, [words(d, d.shape(1, 2, empty=0, large=0))], {"delimiter": d.one([",", "b", " "])}, 2)


def regex(d):
    return Node(d.op, [words(d, d.shape(0, 2, large=0))], {"pattern": d.one(["a.*", "[a-z]+", "(abc)+", "\\d,\\d", ""])})
