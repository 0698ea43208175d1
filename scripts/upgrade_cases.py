# SPDX-License-Identifier: Apache-2.0
"""Nodes in older forms of their operators, with their results: the table of upgrades.py.

A case names its operator, the forms (since-versions) in which it is written, attributes and inputs as those forms have them, and its
result: arrays, or a Node in the newest form that computes the same. For operators and forms that are not here, differential_ops
generates nodes. That is enough if a form differs from the newest only in types and in attributes that were added later.
"""
import dataclasses

import numpy as np
from onnx import TensorProto, helper

from differential_ops import ML, Node, ints


@dataclasses.dataclass
class Case:
    op: str
    forms: tuple
    inputs: list
    result: object  # arrays, or a Node; None: the same node in the newest form
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: int = 1
    domain: str = ""
    constants: tuple = ()
    before: tuple = ()  # nodes in front of this one: they read `inputs`, and this node reads their outputs


RNG = np.random.default_rng(22)


def floats(*shape, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape).astype(np.float32)


def value(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


# ---- broadcasting by an axis, before opset 7


def broadcasts(op, forms, function, draw):
    a, same, suffix, middle, first, one = draw(2, 3, 4), draw(2, 3, 4), draw(3, 4), draw(3), draw(2, 3), draw(1)
    yield Case(op, forms, [a, same], [function(a, same)])
    yield Case(op, forms, [a, suffix], [function(a, suffix)], {"broadcast": 1})
    yield Case(op, forms, [a, middle], [function(a, middle[:, None])], {"broadcast": 1, "axis": 1})
    yield Case(op, forms, [a, first], [function(a, first[:, :, None])], {"broadcast": 1, "axis": 0})
    yield Case(op, forms, [a, one], [function(a, one)], {"broadcast": 1})


def old_binaries():
    positive = lambda *shape: floats(*shape, low=0.5)
    truth = lambda *shape: RNG.random(shape) < 0.5
    small = lambda *shape: RNG.integers(0, 3, shape).astype(np.int32)
    for op, function in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide)):
        yield from broadcasts(op, (1, 6), function, positive)
    for op, function in (("Greater", np.greater), ("Less", np.less), ("Pow", np.power)):
        yield from broadcasts(op, (1,), function, positive)
    for op, function in (("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)):
        yield from broadcasts(op, (1,), function, truth)
    yield from broadcasts("Equal", (1,), np.equal, small)
    for forms, attributes in (((1,), {"consumed_inputs": [0, 0]}), ((6,), {})):
        x, slope = floats(2, 3, 4), floats(3)
        yield Case("PRelu", forms, [x, slope], [np.where(x < 0, slope[:, None] * x, x)], attributes)
        yield Case("PRelu", forms, [x, slope[:1]], [np.where(x < 0, slope[0] * x, x)], attributes, constants=(1,))
    # Later forms of these operators broadcast; forms 1 and 6 do not.
    parts = [floats(2, 3) for _ in range(3)]
    for op, function in (("Max", np.max), ("Min", np.min), ("Mean", np.mean), ("Sum", np.sum)):
        for forms, attributes in (((1,), {"consumed_inputs": [0, 0, 0]}), ((6,), {})):
            yield Case(op, forms, parts, [function(np.stack(parts), axis=0)], attributes)
    a, b, c = floats(3, 2), floats(3, 4), floats(4)
    for forms in ((1,), (6,)):
        yield Case("Gemm", forms, [a, b, c], [2 * a.T @ b + 0.5 * c], {"transA": 1, "alpha": 2.0, "beta": 0.5, "broadcast": 1})
        yield Case("Gemm", forms, [a, b, floats(2, 4) * 0], [a.T @ b], {"transA": 1})


# ---- an attribute became an input


REDUCTIONS = {
    "ReduceL1": lambda x, **k: np.abs(x).sum(**k), "ReduceL2": lambda x, **k: np.sqrt((x * x).sum(**k)),
    "ReduceLogSum": lambda x, **k: np.log(x.sum(**k)), "ReduceLogSumExp": lambda x, **k: np.log(np.exp(x).sum(**k)),
    "ReduceMax": np.max, "ReduceMean": np.mean, "ReduceMin": np.min, "ReduceProd": np.prod, "ReduceSum": np.sum,
    "ReduceSumSquare": lambda x, **k: (x * x).sum(**k),
}


def axes_inputs():
    x = floats(2, 3, 4, low=0.5)
    for op, function in REDUCTIONS.items():
        forms = {"ReduceSum": (1, 11), "ReduceMax": (1, 11, 12, 13), "ReduceMin": (1, 11, 12, 13)}.get(op, (1, 11, 13))
        yield Case(op, forms, [x], [function(x, axis=(0, 2), keepdims=True)], {"axes": [0, 2]})
        yield Case(op, forms, [x], [function(x, axis=1)], {"axes": [1], "keepdims": 0})
        yield Case(op, forms, [x], [np.asarray(function(x, axis=(0, 1, 2), keepdims=True))])
        yield Case(op, forms[1:], [x], [function(x, axis=2)], {"axes": [-1], "keepdims": 0})
    # In form 18, the attribute `axes` of form 13 is an input, as in form 20.
    for op in ("ReduceMax", "ReduceMin"):
        yield Case(op, (18,), [x, ints([0])], [REDUCTIONS[op](x, axis=0)], {"keepdims": 0})
    thin = floats(1, 3, 1, 2)
    for forms in ((1,), (11,)):
        yield Case("Squeeze", forms, [thin], [thin[0]], {"axes": [0]})
        yield Case("Squeeze", forms, [thin], [thin[0, :, 0]])
        yield Case("Unsqueeze", forms, [x], [x[None, :, :, None]], {"axes": [0, 3]})
    yield Case("Squeeze", (11,), [thin], [thin[:, :, 0]], {"axes": [-2]})
    yield Case("Unsqueeze", (11,), [x], [x[..., None]], {"axes": [-1]})


def bounds_and_pads():
    x = floats(3, 4)
    for forms, attributes in (((1,), {"consumed_inputs": [0]}), ((6,), {})):
        yield Case("Clip", forms, [x], [np.clip(x, -1, 0.5)], {"min": -1.0, "max": 0.5} | attributes)
        yield Case("Clip", forms, [x], [np.maximum(x, 0)], {"min": 0.0} | attributes)
        yield Case("Clip", forms, [x], [x], attributes)
    yield Case("Clip", (6,), [x.astype(np.float64)], [np.minimum(x.astype(np.float64), 0.5)], {"max": 0.5})
    for forms, name in (((1,), "paddings"), ((2,), "pads")):
        yield Case("Pad", forms, [x], [np.pad(x, [(1, 0), (0, 2)], constant_values=1.5)], {name: [1, 0, 0, 2], "value": 1.5})
        yield Case("Pad", forms, [x], [np.pad(x, [(1, 1), (2, 2)], "reflect")], {name: [1, 2, 1, 2], "mode": "reflect"})
        yield Case("Pad", forms, [x], [np.pad(x, [(1, 1), (2, 2)], "edge")], {name: [1, 2, 1, 2], "mode": "edge"})
    yield Case("Pad", (2,), [x], [x[1:, :]], {"pads": [-1, 0, 0, 0]})


def slices():
    x = floats(4, 6)
    yield Case("Slice", (1,), [x], [x[:, 1:3]], {"starts": [1], "ends": [3], "axes": [1]})
    yield Case("Slice", (1,), [x], [x[1:, -3:-1]], {"starts": [1, -3], "ends": [1000, -1]})
    by = lambda *sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis)
    yield Case("Split", (1,), [x, np.array([2, 4], np.float32)], by(2, 4, axis=1), {"axis": 1}, 2)
    yield Case("Split", (1,), [x], by(1, 3, axis=0), {"axis": 0, "split": [1, 3]}, 2)
    yield Case("Split", (2, 11), [x], by(1, 3, axis=0), {"split": [1, 3]}, 2)
    yield Case("Split", (2, 11), [x], by(2, 2, 2, axis=1), {"axis": 1}, 3)
    yield Case("Split", (11,), [x], by(4, 2, axis=1), {"axis": -1, "split": [4, 2]}, 2)
    yield Case("Split", (13,), [x, ints([4, 2])], by(4, 2, axis=1), {"axis": 1}, 2)
    yield Case("Split", (13,), [x], by(3, 3, axis=1), {"axis": 1}, 2)
    order = np.argsort(-x, axis=0, kind="stable")[:2]
    yield Case("TopK", (1,), [x], [np.take_along_axis(x, order, 0), order], {"axis": 0, "k": 2}, 2)
    yield Case("TopK", (1,), [x], [-np.sort(-x)[:, :3], np.argsort(-x)[:, :3]], {"k": 3}, 2)
    yield Case("Tile", (1,), [x, np.array(3, np.float32), np.array(1, np.float32)], [np.tile(x, (1, 3))])
    yield Case("Reshape", (1,), [x], [x.reshape(4, 2, 3)], {"shape": [0, 2, -1]})
    yield Case("Reshape", (1,), [x], [x.reshape(8, 3)], {"shape": [8, 3], "consumed_inputs": [0]})
    yield Case("Concat", (1,), [x, x[:, :2]], [np.concatenate([x, x[:, :2]], 1)])
    yield Case("Concat", (1,), [x, x[:2]], [np.concatenate([x, x[:2]], 0)], {"axis": 0})
    index, updates = np.array([[0, 3, 1]]), floats(1, 3)
    scattered = x.copy()
    scattered[0, index[0]] = updates[0]
    yield Case("Scatter", (9,), [x, index, updates], [scattered], {"axis": 1})


def transforms():
    x = floats(2, 8, 1)
    spectrum = np.fft.fft(x[..., 0], axis=1)
    yield Case("DFT", (17,), [x], [np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32)])
    pairs = np.fft.fft(x[..., 0], axis=0)
    yield Case("DFT", (17,), [x], [np.stack([pairs.real, pairs.imag], -1).astype(np.float32)], {"axis": 0})


# ---- the meaning of an attribute changed


def soften(x, kind):
    y = np.exp(x - x.max(-1, keepdims=True))
    y /= y.sum(-1, keepdims=True)
    return {"Softmax": y, "LogSoftmax": np.log(y), "Hardmax": (x == x.max(-1, keepdims=True)).astype(np.float32)}[kind]


def normalizations():
    x = floats(2, 3, 4)
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        for forms, attributes, flat in (((1, 11), {}, (2, 12)), ((1, 11), {"axis": 0}, (1, 24)), ((1, 11), {"axis": 2}, (6, 4)), ((11,), {"axis": -2}, (2, 12))):
            yield Case(op, forms, [x], [soften(x.reshape(flat), op).reshape(x.shape)], attributes)
    scale, bias, mean, variance = floats(3), floats(3), floats(3), floats(3, low=0.5)
    column = lambda v: v[:, None]
    expected = column(scale) * (x - column(mean)) / np.sqrt(column(variance) + np.float32(1e-3)) + column(bias)
    stats = [x, scale, bias, mean, variance]
    yield Case("BatchNormalization", (1,), stats, [expected], {"epsilon": 1e-3, "is_test": 1, "consumed_inputs": [0, 0, 0, 1, 1]})
    yield Case("BatchNormalization", (6,), stats, [expected], {"epsilon": 1e-3, "is_test": 1})
    yield Case("BatchNormalization", (7, 9), stats, [expected], {"epsilon": 1e-3})
    spots = [floats(3, 4), floats(3, 4), floats(3, 4), floats(3, 4, low=0.5)]
    by_spot = spots[0] * (x - spots[2]) / np.sqrt(spots[3] + np.float32(1e-5)) + spots[1]
    yield Case("BatchNormalization", (7,), [x, *spots], [by_spot], {"spatial": 0})
    yield Case("BatchNormalization", (6,), [x, *spots], [by_spot], {"spatial": 0, "is_test": 1})
    many = floats(2, 6, 5)
    groups = many.reshape(2, 3, 10)
    normal = ((groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + np.float32(1e-5))).reshape(many.shape)
    each = lambda v: np.repeat(v, 2)[:, None]
    yield Case("GroupNormalization", (18,), [many, scale, bias], [normal * each(scale) + each(bias)], {"num_groups": 3})
    for op, forms in (("GlobalLpPool", (1,)), ("LpPool", (1,))):
        picture = floats(1, 2, 4, 4)
        window = {} if op == "GlobalLpPool" else {"kernel_shape": [2, 2], "strides": [2, 2]}
        cells = picture.reshape(1, 2, 1, 4, 1, 4) if op == "GlobalLpPool" else picture.reshape(1, 2, 2, 2, 2, 2)
        for p in (2.0, 3.0):
            result = (np.abs(cells) ** p).sum((3, 5)) ** (1 / p)
            yield Case(op, forms, [picture], [result.astype(np.float32)], dict(window, p=p))


def dropouts():
    x = floats(2, 3)
    yield Case("Dropout", (1,), [x], [x], {"ratio": 0.3, "is_test": 1, "consumed_inputs": [0]})
    yield Case("Dropout", (6,), [x], [x], {"ratio": 0.3, "is_test": 1})
    yield Case("Dropout", (7, 10), [x], [x], {"ratio": 0.3})
    yield Case("Dropout", (7,), [x], [x, np.ones_like(x)], {"ratio": 0.3}, 2)
    yield Case("Dropout", (10,), [x], [x, np.ones_like(x, bool)], {"ratio": 0.3}, 2)
    for forms in ((12,), (13,)):
        yield Case("Dropout", forms, [x, np.array(0.3, np.float32), np.array(False)], [x, np.ones_like(x, bool)], {}, 2)


def names_and_labels():
    x = np.array([1.7, -2.2, 0.0], np.float32)
    for name, dtype in (("INT64", np.int64), ("DOUBLE", np.float64), ("BOOL", np.bool_), ("float16", np.float16)):
        yield Case("Cast", (1,), [x], [x.astype(dtype)], {"to": name})
    labels = {"classes_strings": ["red", "green", "blue"]}
    yield Case("LabelEncoder", (1,), [np.array(["blue", "red", "pink"], object)], [np.array([2, 0, -1])], labels, 1, ML)
    yield Case("LabelEncoder", (1,), [np.array([1, 2, 7])], [np.array(["green", "blue", "_Unused"], object)], labels, 1, ML)


def pictures():
    x = floats(1, 2, 4, 6)
    doubled = x.repeat(2, 2).repeat(3, 3)
    yield Case("Upsample", (1,), [x], [doubled], {"height_scale": 2.0, "width_scale": 3.0})
    yield Case("Upsample", (7,), [x], [doubled], {"scales": [1.0, 1.0, 2.0, 3.0]})
    grow, shrink = np.array([1, 1, 2, 3], np.float32), np.array([1, 1, 0.5, 0.5], np.float32)
    yield Case("Upsample", (9,), [x, grow], [doubled], constants=(1,))
    resized = lambda factors, **how: Node("Resize", [x, None, factors], dict({"coordinate_transformation_mode": "asymmetric"}, **how))
    linear = resized(grow, mode="linear")
    yield Case("Upsample", (1,), [x], linear, {"height_scale": 2.0, "width_scale": 3.0, "mode": "bilinear"})
    yield Case("Upsample", (7,), [x], linear, {"scales": [1.0, 1.0, 2.0, 3.0], "mode": "linear"})
    yield Case("Upsample", (9,), [x, grow], linear, {"mode": "linear"}, constants=(1,))
    yield Case("Resize", (10,), [x, grow], [doubled], constants=(1,))
    yield Case("Resize", (10,), [x, shrink], [x[:, :, ::2, ::2]], constants=(1,))
    yield Case("Resize", (10,), [x, grow], linear, {"mode": "linear"}, constants=(1,))
    none = np.zeros([0], np.float32)
    rows, columns = np.floor((np.arange(6) + 0.5) / 1.5).astype(int), np.floor((np.arange(9) + 0.5) / 1.5).astype(int)
    half = np.array([1, 1, 1.5, 1.5], np.float32)
    yield Case("Resize", (11,), [x, none, half], [x[:, :, rows][..., columns]], {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": "floor"}, constants=(1, 2))
    yield Case("Resize", (11,), [x, none, grow], resized(grow, mode="cubic", coordinate_transformation_mode="half_pixel"), {"mode": "cubic"}, constants=(1, 2))
    yield Case("Resize", (11,), [x, none, none, ints([1, 2, 8, 3])], Node("Resize", [x, None, None, ints([1, 2, 8, 3])], {"mode": "linear"}), {"mode": "linear"}, constants=(1, 2, 3))
    grid = floats(1, 3, 3, 2, low=-1.1, high=1.1)
    for old, new in (("bilinear", "linear"), ("nearest", "nearest"), ("bicubic", "cubic")):
        yield Case("GridSample", (16,), [x, grid], Node("GridSample", [x, grid], {"mode": new}), {"mode": old})
    rois, batch = np.array([[0, 0, 3, 3], [1, 1, 5, 3]], np.float32), ints([0, 0])
    window = {"output_height": 2, "output_width": 2, "sampling_ratio": 2}
    yield Case("RoiAlign", (10,), [x, rois, batch], Node("RoiAlign", [x, rois, batch], dict(window, coordinate_transformation_mode="output_half_pixel")), window)
    yield Case("MaxRoiPool", (1,), [x, np.array([[0, 0, 0, 3, 3]], np.float32)], [x[:, :, :4, :4].reshape(1, 2, 2, 2, 2, 2).max((3, 5))], {"pooled_shape": [2, 2]})
    small = floats(1, 1, 2, 2)
    where = ints([0, 3, 8, 15]).reshape(1, 1, 2, 2)
    spread = np.zeros((1, 1, 4, 4), np.float32)
    spread.flat[where.flat] = small.flat
    yield Case("MaxUnpool", (9, 11), [small, where], [spread], {"kernel_shape": [2, 2], "strides": [2, 2]})
    offsets, kernel = floats(1, 8, 3, 5) * 0.25, floats(3, 2, 2, 2)
    yield Case("DeformConv", (19,), [x, kernel, offsets], None, {"kernel_shape": [2, 2]})
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]]], np.float32)
    scores = np.array([[[0.9, 0.8, 0.7]]], np.float32)
    yield Case("NonMaxSuppression", (10,), [boxes, scores, ints(3), np.array(0.5, np.float32)], [ints([[0, 0, 0], [0, 0, 2]])])


# ---- recurrent operators with the attribute output_sequence


def recurrent():
    x, hidden = floats(3, 2, 4), 5
    for op, gates, forms in (("RNN", 1, (1,)), ("LSTM", 4, (1,)), ("GRU", 3, (1, 3))):
        inputs = [x, floats(1, gates * hidden, 4), floats(1, gates * hidden, hidden), floats(1, 2 * gates * hidden)]
        # The default direction of GRU-1 is "foward", so the attribute is omitted here.
        yield Case(op, forms, inputs, Node(op, inputs, {"hidden_size": hidden}, 2), {"hidden_size": hidden, "output_sequence": 1}, 2)
        yield Case(op, forms, inputs, Node(op, inputs, {"hidden_size": hidden, "direction": "reverse"}, 2), {"hidden_size": hidden, "output_sequence": 1, "direction": "reverse"}, 2)


# ---- random operators whose parameters allow only one result, apart from rounding


def certain_draws():
    yield Case("RandomNormal", (1,), [], [np.full((2, 3), 1.5, np.float32)], {"shape": [2, 3], "mean": 1.5, "scale": 1e-9})
    yield Case("RandomUniform", (1,), [], [np.full((2, 3), 1.5, np.float32)], {"shape": [2, 3], "low": 1.5, "high": 1.500001})
    x = floats(2, 3)
    yield Case("RandomNormalLike", (1,), [x], [np.full((2, 3), 1.5, np.float32)], {"mean": 1.5, "scale": 1e-9})
    yield Case("RandomUniformLike", (1,), [x], [np.full((2, 3), 1.5, np.float32)], {"low": 1.5, "high": 1.500001})
    yield Case("Bernoulli", (15,), [np.array([0, 1, 1, 0], np.float32)], [np.array([0, 1, 1, 0], np.float32)])
    yield Case("Multinomial", (7,), [np.array([[-200, 0, -200], [0, -200, -200]], np.float32)], [np.array([[1] * 4, [0] * 4], np.int32)], {"sample_size": 4})


# ---- graphs inside, containers

ALL_CONTROL = (1, 11, 13, 16, 19, 21, 23, 24)
CONSTANTS = (1, 9, 11, 12, 13, 19, 21, 23, 24)


def control():
    one = value("o", TensorProto.FLOAT, [2, 3])
    x = floats(2, 3)
    branch = lambda number: helper.make_graph(
        [helper.make_node("Constant", [], ["o"], value=helper.make_tensor("v", TensorProto.FLOAT, [2, 3], [float(number)] * 6))], f"branch{number}", [], [one])
    for truth in (False, True):
        yield Case("If", ALL_CONTROL, [np.array(truth)], [np.full((2, 3), 1.0 if truth else 2.0, np.float32)], {"then_branch": branch(1), "else_branch": branch(2)})
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "s"], ["t"]), helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Sum", ["t"], ["u"])], "body",
        [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("s", TensorProto.FLOAT, [2, 3])],
        [value("d", TensorProto.BOOL, []), value("t", TensorProto.FLOAT, [2, 3]), value("u", TensorProto.FLOAT, [2, 3])])
    yield Case("Loop", ALL_CONTROL, [ints(3), np.array(True), x], [8 * x, np.stack([2 * x, 4 * x, 8 * x])], {"body": body}, 2)
    # The body's inputs have the names of other values outside.
    shadow = helper.make_graph(
        [helper.make_node("Add", ["x1", "x1"], ["t"]), helper.make_node("Identity", ["x2"], ["d"])], "shadow",
        [value("x0", TensorProto.INT64, []), value("x2", TensorProto.BOOL, []), value("x1", TensorProto.FLOAT, [2, 3])],
        [value("d", TensorProto.BOOL, []), value("t", TensorProto.FLOAT, [2, 3])])
    yield Case("Loop", ALL_CONTROL, [ints(3), np.array(True), x], [8 * x], {"body": shadow})
    step = helper.make_graph(
        [helper.make_node("Add", ["s", "v"], ["t"]), helper.make_node("Sum", ["t"], ["u"])], "step",
        [value("s", TensorProto.FLOAT, [2]), value("v", TensorProto.FLOAT, [2])],
        [value("t", TensorProto.FLOAT, [2]), value("u", TensorProto.FLOAT, [2])])
    start, rows = floats(2), floats(4, 2)
    sums = start + np.cumsum(rows, 0)
    yield Case("Scan", (9, 11, 16, 19, 21, 23, 24), [start, rows], [sums[-1], sums], {"body": step, "num_scan_inputs": 1}, 2)
    starts, batches = floats(3, 2), floats(3, 4, 2)
    sums = starts[:, None] + np.cumsum(batches, 1)
    yield Case("Scan", (8,), [None, starts, batches], [sums[:, -1], sums], {"body": step, "num_scan_inputs": 1}, 2)
    backwards = starts[:, None] + np.cumsum(batches[:, ::-1], 1)
    yield Case("Scan", (8,), [None, starts, batches], [backwards[:, -1], backwards], {"body": step, "num_scan_inputs": 1, "directions": [1]}, 2)
    tensor = helper.make_tensor("v", TensorProto.FLOAT, [2, 3], x.flat)
    yield Case("Constant", CONSTANTS, [], [x], {"value": tensor})
    yield Case("Constant", CONSTANTS[3:], [], [np.array([3, 1, 4])], {"value_ints": [3, 1, 4]})
    yield Case("SplitToSequence", (11,), [x, ints([1, 2])], [[x[:, :1], x[:, 1:]]], {"axis": 1})
    yield Case("SplitToSequence", (11,), [x], [[x[0], x[1]]], {"keepdims": 0})
    full = (helper.make_node("Optional", ["x0"], ["o"]),)
    yield Case("OptionalGetElement", (15, 18), [x], [x], before=full)
    yield Case("OptionalHasElement", (15, 18), [x], [np.array(True)], before=full)


GROUPS = [
    old_binaries, axes_inputs, bounds_and_pads, slices, transforms, normalizations, dropouts, names_and_labels, pictures, recurrent,
    certain_draws, control,
]
CASES = [case for group in GROUPS for case in group()]
