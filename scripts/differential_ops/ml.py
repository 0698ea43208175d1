# SPDX-License-Identifier: Apache-2.0
"""Operators of ai.onnx.ml."""
import numpy as np

from .draw import ML, Node
from .text import words

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
        # With one rho and more than two classes, the references return 0 or 1 instead of a label.
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
    if prefix == "class" and targets == 2:
        x = np.nan_to_num(x)  # onnx.reference handles NaN wrongly, and onnxruntime the labels of two classes: no reference would be right
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    leaves = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}
    trees = d.size(1, 4)
    mode = d.one(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"])
    for tree in range(trees):
        for node in range(7):
            leaf = node >= 3
            for key, value in zip(nodes, (tree, node, 0 if leaf else d.size(0, width - 1), 0.0 if leaf else float(d.exact([])), "LEAF" if leaf else mode, 0 if leaf else 2 * node + 1, 0 if leaf else 2 * node + 2, 0 if leaf else d.size(0, 1))):
                nodes[key].append(value)
            # The result of a target without any leaf is not defined.
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
