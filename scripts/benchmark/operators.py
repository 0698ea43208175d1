# SPDX-License-Identifier: Apache-2.0
"""Single operators compared with onnxruntime: models hide the cost of operators that they use little."""
import dataclasses
import json
import math
import os
import pathlib
import statistics
import tempfile
import time

import numpy
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import differential_ops
from benchmark import sides

GOAL = 1.5  # Backplane's time over onnxruntime's, for each operator; calls from Python add some microseconds to onnxruntime's
ENOUGH_S = 0.15  # seconds of runs of one side in a round
LEAST_RUNS, MOST_RUNS = 3, 200
MICROSOFT = "com.microsoft"
RANDOM = numpy.random.default_rng(0)


@dataclasses.dataclass
class Case:
    name: str
    op_type: str
    inputs: dict  # name: array
    known: dict = dataclasses.field(default_factory=dict)  # constants, after the inputs; None: omitted
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: int = 1
    domain: str = ""
    known_first: bool = False  # whether `known` come before `inputs`
    opset: int = 20


def real(*extents, dtype="f4"):
    return RANDOM.standard_normal(extents).astype(dtype)


def positive(*extents):
    return RANDOM.random(extents, dtype="f4") + 0.01


def whole(high, *extents, dtype="i8"):
    return RANDOM.integers(0, high, extents).astype(dtype)


def constant(values, dtype="i8"):
    return numpy.array(values, dtype=dtype)


def recurrent(op_type, gates, batch=1, directions=1, **attributes):
    return Case(f"{op_type} of {batch}" + (", both directions" if directions == 2 else ""), op_type, {"x": real(64, batch, 128)},
                {"w": real(directions, gates * 128, 128) / 10, "r": real(directions, gates * 128, 128) / 10},
                {"hidden_size": 128, "direction": "bidirectional" if directions == 2 else "forward"} | attributes, 2)


def conv(name, x, w, op_type="Conv", dtype="f4", **attributes):
    return Case(name, op_type, {"x": real(*x, dtype=dtype)}, {"w": real(*w, dtype=dtype) / 10}, attributes)


def resize(name, mode, **attributes):
    return Case(name, "Resize", {"x": real(1, 64, 64, 64)}, {"roi": real(0), "scales": constant([1, 1, 2, 2], "f4")}, {"mode": mode} | attributes)


def formulas():
    for op_type in ("Abs", "Atan", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSwish", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Reciprocal", "Relu",
                    "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Sqrt", "Tanh"):
        yield Case(op_type, op_type, {"x": positive(256, 1024) if op_type in ("Log", "Sqrt") else real(256, 1024)})
    yield Case("Not", "Not", {"x": real(256, 1024) > 0})
    yield Case("And", "And", {"x": real(256, 1024) > 0, "y": real(256, 1024) > 0})
    yield Case("Clip", "Clip", {"x": real(256, 1024)}, {"low": constant(0, "f4"), "high": constant(6, "f4")})
    yield Case("PRelu", "PRelu", {"x": real(1, 64, 56, 56), "slope": real(64, 1, 1)})
    yield Case("Add", "Add", {"x": real(256, 1024), "y": real(256, 1024)})
    yield Case("Add f16", "Add", {"x": real(256, 1024, dtype="f2"), "y": real(256, 1024, dtype="f2")})
    yield Case("Add int64", "Add", {"x": whole(99, 256, 1024), "y": whole(99, 256, 1024)})
    yield Case("Add a row", "Add", {"x": real(64, 128, 256), "y": real(256)})
    yield Case("Add channels", "Add", {"x": real(8, 64, 32, 32), "y": real(1, 64, 1, 1)})
    yield Case("Div", "Div", {"x": real(256, 1024), "y": positive(256, 1024)})
    yield Case("Max", "Max", {"x": real(256, 1024), "y": real(256, 1024)})
    yield Case("Mod", "Mod", {"x": whole(99, 256, 1024), "y": constant(7)})
    yield Case("Pow", "Pow", {"x": positive(256, 1024), "y": constant(1.7, "f4")})
    yield Case("Greater", "Greater", {"x": real(256, 1024), "y": constant(0, "f4")})
    yield Case("Equal", "Equal", {"x": whole(9, 256, 1024), "y": whole(9, 1, 1024)})
    yield Case("Where", "Where", {"c": real(1, 12, 128, 128) > 0, "x": real(1, 12, 128, 128), "y": real(1, 12, 128, 128)})
    yield Case("Where, mask", "Where", {"c": real(1, 1, 128, 128) > 0, "x": real(1, 12, 128, 128), "y": constant(-9, "f4")})
    for name, dtype, to in (("to f16", "f4", "FLOAT16"), ("from f16", "f2", "FLOAT"), ("int64 to f32", "i8", "FLOAT"), ("f32 to int64", "f4", "INT64")):
        yield Case(f"Cast {name}", "Cast", {"x": (real(256, 1024) * 99).astype(dtype)}, {}, {"to": getattr(onnx.TensorProto, to)})


def products():
    yield conv("Conv 3x3", (1, 64, 56, 56), (64, 64, 3, 3), pads=[1] * 4)
    yield conv("Conv 3x3 f16", (1, 64, 56, 56), (64, 64, 3, 3), dtype="f2", pads=[1] * 4)
    yield conv("Conv of channels", (1, 128, 56, 56), (128, 1, 3, 3), pads=[1] * 4, group=128)
    yield conv("Conv of channels 7x7", (1, 96, 56, 56), (96, 1, 7, 7), pads=[3] * 4, group=96)
    yield conv("Conv dilated", (1, 64, 56, 56), (64, 64, 3, 3), pads=[4] * 4, dilations=[4, 4])
    yield conv("Conv 1-D", (1, 128, 2000), (128, 128, 5), pads=[2, 2])
    yield conv("Conv 3-D", (1, 16, 16, 32, 32), (32, 16, 3, 3, 3), pads=[1] * 6)
    yield conv("ConvTranspose 4x4 by 2", (1, 64, 56, 56), (64, 32, 4, 4), "ConvTranspose", strides=[2, 2], pads=[1] * 4)
    yield conv("ConvTranspose 2x2 by 2", (1, 64, 56, 56), (64, 32, 2, 2), "ConvTranspose", strides=[2, 2])
    yield Case("MatMul", "MatMul", {"a": real(128, 768)}, {"b": real(768, 768)})
    yield Case("MatMul f16", "MatMul", {"a": real(128, 768, dtype="f2")}, {"b": real(768, 768, dtype="f2")})
    yield Case("MatMul f64", "MatMul", {"a": real(128, 768, dtype="f8")}, {"b": real(768, 768, dtype="f8")})
    yield Case("MatMul of heads", "MatMul", {"a": real(12, 128, 64), "b": real(12, 64, 128)})
    yield Case("MatMul of a row", "MatMul", {"a": real(1, 4096)}, {"b": real(4096, 1024)})
    yield Case("MatMul int32", "MatMul", {"a": whole(9, 128, 256, dtype="i4"), "b": whole(9, 256, 128, dtype="i4")})
    yield Case("MatMulInteger", "MatMulInteger", {"a": whole(256, 128, 768, dtype="u1")}, {"b": whole(100, 768, 768, dtype="i1")})
    yield Case("Gemm", "Gemm", {"a": real(128, 768), "b": real(768, 768), "c": real(768)})
    yield Case("Einsum of heads", "Einsum", {"a": real(12, 128, 64), "b": real(12, 128, 64)}, {}, {"equation": "bij,bkj->bik"})
    yield Case("Einsum, heads inside", "Einsum", {"a": real(2, 64, 8, 32), "b": real(2, 64, 8, 32)}, {}, {"equation": "bqhd,bkhd->bhqk"})
    yield Case("Attention", "Attention", {name: real(1, 12, 128, 64) for name in "qkv"}, opset=23)
    weights = {"b": whole(256, 1024, 128, 16, dtype="u1"), "scales": positive(1024 * 128)}
    for rows in (1, 64):
        yield Case(f"MatMulNBits, {rows} rows", "MatMulNBits", {"a": real(rows, 4096)}, weights, {"K": 4096, "N": 1024, "bits": 4, "block_size": 32}, domain=MICROSOFT)
    yield recurrent("LSTM", 4)
    yield recurrent("LSTM", 4, 8, 2)
    yield recurrent("GRU", 3)
    yield recurrent("RNN", 1)


def rows():
    channels = {"scale": real(64), "bias": real(64)}
    yield Case("Softmax", "Softmax", {"x": real(12, 128, 128)})
    yield Case("Softmax of channels", "Softmax", {"x": real(1, 21, 128, 128)}, {}, {"axis": 1})
    yield Case("LogSoftmax", "LogSoftmax", {"x": real(64, 1000)})
    yield Case("LayerNormalization", "LayerNormalization", {"x": real(128, 768)}, {"scale": real(768), "bias": real(768)})
    yield Case("RMSNormalization", "SimplifiedLayerNormalization", {"x": real(128, 768)}, {"scale": real(768)}, {"axis": -1})
    yield Case("SkipLayerNormalization", "SkipLayerNormalization", {"x": real(1, 128, 768), "skip": real(1, 128, 768)}, {"gamma": real(768)}, domain=MICROSOFT)
    yield Case("InstanceNormalization", "InstanceNormalization", {"x": real(1, 64, 56, 56)}, channels)
    yield Case("GroupNormalization", "GroupNormalization", {"x": real(1, 64, 56, 56)}, channels, {"num_groups": 8}, opset=21)
    yield Case("BatchNormalization", "BatchNormalization", {"x": real(1, 64, 56, 56)}, channels | {"mean": real(64), "variance": positive(64)})
    yield Case("LpNormalization", "LpNormalization", {"x": real(128, 768)})
    yield Case("LRN", "LRN", {"x": real(1, 64, 56, 56)}, {}, {"size": 5})
    for name, op_type, extents, axis in (("of rows", "ReduceMean", (64, 128, 256), -1), ("of images", "ReduceMean", (1, 512, 14, 14), (2, 3)), ("of columns", "ReduceSum", (256, 1024), 0),
                                         ("of the middle", "ReduceMax", (64, 128, 256), 1), ("of rows", "ReduceL2", (64, 128, 256), -1), ("of rows", "ReduceProd", (64, 1024), -1)):
        yield Case(f"{op_type} {name}", op_type, {"x": real(*extents)}, {"axes": constant(numpy.atleast_1d(axis))})
    yield Case("ArgMax", "ArgMax", {"x": real(100, 1000)}, {}, {"axis": 1})
    yield Case("ArgMax of channels", "ArgMax", {"x": real(1, 21, 256, 256)}, {}, {"axis": 1})
    yield Case("TopK", "TopK", {"x": real(100, 1000)}, {"k": constant([10])}, {}, 2)
    yield Case("TopK of one row", "TopK", {"x": real(1, 100000)}, {"k": constant([300])}, {}, 2)
    yield Case("CumSum", "CumSum", {"x": real(100, 1000)}, {"axis": constant(1)})
    yield Case("QuantizeLinear", "QuantizeLinear", {"x": real(256, 1024)}, {"scale": constant(0.1, "f4"), "zero": constant(128, "u1")})
    yield Case("QuantizeLinear of channels", "QuantizeLinear", {"x": real(1, 64, 56, 56)}, {"scale": positive(64), "zero": whole(9, 64, dtype="u1")}, {"axis": 1})
    yield Case("DequantizeLinear", "DequantizeLinear", {"x": whole(256, 256, 1024, dtype="u1")}, {"scale": constant(0.1, "f4"), "zero": constant(128, "u1")})
    yield Case("DequantizeLinear of columns", "DequantizeLinear", {"x": whole(100, 256, 1024, dtype="i1")}, {"scale": positive(1024)}, {"axis": 1})
    yield Case("RotaryEmbedding", "RotaryEmbedding", {"x": real(1, 128, 768), "positions": whole(128, 1, 128)}, {"cos": real(512, 32), "sin": real(512, 32)}, {"num_heads": 12}, domain=MICROSOFT)


def spectra():
    # A power of two, then lengths below it: products of 2, 3, 5 and 7, and a prime.
    for length in (512, 400, 360, 343, 509, 2048, 1200, 1125, 1372, 2039):
        yield Case(f"DFT of {length}", "DFT", {"x": real(1, 64, length, 1)}, {"length": constant(length), "axis": constant(2)})
    for length, step in ((400, 160), (512, 128)):  # ten seconds of speech
        yield Case(f"STFT of {length}", "STFT", {"x": real(1, 160000, 1)},
                   {"step": constant(step), "window": numpy.hanning(length).astype("f4"), "length": constant(length)})


def images():
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}
    yield Case("MaxPool", "MaxPool", {"x": real(1, 64, 112, 112)}, {}, window)
    yield Case("MaxPool with indices", "MaxPool", {"x": real(1, 64, 112, 112)}, {}, {"kernel_shape": [2, 2], "strides": [2, 2]}, 2)
    yield Case("AveragePool", "AveragePool", {"x": real(1, 64, 112, 112)}, {}, window)
    yield Case("GlobalAveragePool", "GlobalAveragePool", {"x": real(1, 512, 14, 14)})
    yield resize("Resize linear", "linear")
    yield resize("Resize linear, corners", "linear", coordinate_transformation_mode="align_corners")
    yield resize("Resize nearest", "nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")
    yield resize("Resize cubic", "cubic")
    yield Case("GridSample", "GridSample", {"x": real(1, 32, 64, 64), "grid": real(1, 64, 64, 2)})
    boxes = numpy.sort(RANDOM.random((100, 4), dtype="f4") * 50, axis=1)
    yield Case("RoiAlign", "RoiAlign", {"x": real(1, 64, 50, 50), "rois": boxes, "image": whole(1, 100)}, {}, {"output_height": 7, "output_width": 7, "sampling_ratio": 2})
    yield Case("NonMaxSuppression", "NonMaxSuppression", {"boxes": positive(1, 1000, 4), "scores": positive(1, 4, 1000)},
               {"most": constant([100]), "overlap": constant([0.5], "f4"), "score": constant([0.1], "f4")})
    yield Case("DepthToSpace", "DepthToSpace", {"x": real(1, 64, 56, 56)}, {}, {"blocksize": 2})
    yield Case("SpaceToDepth", "SpaceToDepth", {"x": real(1, 16, 112, 112)}, {}, {"blocksize": 2})


def foreign():
    """Operators of com.microsoft."""
    ids = {"words": whole(30000, 1, 128, dtype="i4"), "segments": whole(2, 1, 128, dtype="i4")}
    tables = {"word": real(30000, 768), "position": real(512, 768), "segment": real(2, 768), "gamma": real(768), "beta": real(768)}
    yield Case("EmbedLayerNormalization", "EmbedLayerNormalization", ids, tables, outputs=2, domain=MICROSOFT)
    quantized = {"w": whole(256, 768, 2304, dtype="u1").view("i1"), "bias": real(2304), "x_scale": constant(0.02, "f4"), "w_scale": positive(2304) / 100, "mask": None,
                 "x_zero": constant(128, "u1"), "w_zero": whole(1, 2304, dtype="i1")}
    for length in (16, 128, 384):
        yield Case(f"QAttention of {length}", "QAttention", {"x": whole(256, 1, length, 768, dtype="u1")}, quantized, {"num_heads": 12}, domain=MICROSOFT)
    for hidden, batch, directions in ((128, 1, 1), (256, 1, 1), (512, 1, 1), (128, 8, 2), (512, 1, 2), (512, 8, 1)):
        weights = {"w": whole(256, directions, hidden, 4 * hidden, dtype="u1").view("i1"), "r": whole(256, directions, hidden, 4 * hidden, dtype="u1").view("i1"), "b": real(directions, 8 * hidden)}
        scales = {f"{name}_{part}": constant(value, dtype) for name in "wr" for part, value, dtype in (("scale", [0.002] * directions, "f4"), ("zero", [0] * directions, "i1"))}
        yield Case(f"DynamicQuantizeLSTM {hidden}, {batch}" + (", both" if directions == 2 else ""), "DynamicQuantizeLSTM", {"x": real(64, batch, hidden)},
                   weights | dict.fromkeys(("lengths", "h", "c", "p")) | scales, {"hidden_size": hidden, "direction": "bidirectional" if directions == 2 else "forward"}, 2, MICROSOFT)
    for extent, channels in ((56, 64), (28, 128), (14, 256), (7, 512)):
        yield Case(f"NhwcConv 3x3 of {channels}", "NhwcConv", {"x": real(1, extent, extent, channels)}, {"w": real(channels, 3, 3, channels) / 10}, {"pads": [1] * 4}, domain=MICROSOFT)


def moves():
    yield Case("Transpose of rows", "Transpose", {"x": real(12, 128, 256)}, {}, {"perm": [0, 2, 1]})
    yield Case("Transpose of heads", "Transpose", {"x": real(1, 128, 12, 64)}, {}, {"perm": [0, 2, 1, 3]})
    yield Case("Transpose, channels first", "Transpose", {"x": real(1, 224, 224, 3)}, {}, {"perm": [0, 3, 1, 2]})
    yield Case("Transpose of bytes", "Transpose", {"x": whole(256, 1, 224, 224, 3, dtype="u1")}, {}, {"perm": [0, 3, 1, 2]})
    yield Case("Concat of channels", "Concat", {"x": real(1, 64, 56, 56), "y": real(1, 64, 56, 56)}, {}, {"axis": 1})
    yield Case("Concat of columns", "Concat", {"x": real(128, 32), "y": real(128, 32)}, {}, {"axis": 1})
    yield Case("Split", "Split", {"x": real(128, 768)}, {}, {"axis": 1, "num_outputs": 3}, 3)
    yield Case("Slice by 2", "Slice", {"x": real(1, 64, 112, 112)}, {"starts": constant([0, 0]), "ends": constant([112, 112]), "axes": constant([2, 3]), "steps": constant([2, 2])})
    yield Case("Gather of rows", "Gather", {"rows": whole(30000, 1024)}, {"table": real(30000, 384)}, known_first=True)
    yield Case("GatherElements", "GatherElements", {"x": real(256, 1024), "at": whole(1024, 256, 1024)}, {}, {"axis": 1})
    yield Case("GatherND", "GatherND", {"x": real(64, 64, 32), "at": whole(64, 500, 2)})
    yield Case("ScatterND", "ScatterND", {"x": real(64, 64, 32), "at": whole(64, 500, 2), "updates": real(500, 32)})
    yield Case("ScatterElements", "ScatterElements", {"x": real(256, 1024), "at": whole(1024, 256, 100), "updates": real(256, 100)}, {}, {"axis": 1})
    yield Case("Expand", "Expand", {"x": real(1, 128, 1, 64)}, {"extents": constant([4, 128, 32, 64])})
    yield Case("Tile", "Tile", {"x": real(64, 64)}, {"repeats": constant([8, 8])})
    pads = {"pads": constant([0, 0, 1, 1, 0, 0, 1, 1])}
    yield Case("Pad", "Pad", {"x": real(1, 64, 56, 56)}, pads)
    yield Case("Pad, reflect", "Pad", {"x": real(1, 64, 56, 56)}, pads, {"mode": "reflect"})
    yield Case("OneHot", "OneHot", {"x": whole(100, 1000)}, {"depth": constant(100), "values": constant([0, 1], "f4")})
    yield Case("NonZero", "NonZero", {"x": real(100, 1000)})
    yield Case("Unique", "Unique", {"x": whole(999, 5000)})
    yield Case("Trilu", "Trilu", {"x": real(12, 128, 128)})
    yield Case("ReverseSequence", "ReverseSequence", {"x": real(64, 16, 128), "lengths": whole(64, 16) + 1}, {}, {"time_axis": 0, "batch_axis": 1})


def cases():
    for family in (products, rows, spectra, images, foreign, moves, formulas):
        yield from family()


def write_model(case, path):
    names, known = list(case.inputs), [name if value is not None else "" for name, value in case.known.items()]
    node = helper.make_node(case.op_type, known + names if case.known_first else names + known, [f"y{i}" for i in range(case.outputs)], domain=case.domain, **case.attributes)
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape) for name, value in case.inputs.items()]
    graph = helper.make_graph([node], "operator", inputs, [helper.make_empty_tensor_value_info(name) for name in node.output],
                              [numpy_helper.from_array(value, name) for name, value in case.known.items() if value is not None])
    opsets = [helper.make_opsetid("", case.opset)] + ([helper.make_opsetid(case.domain, 1)] if case.domain else [])
    model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    for output in model.graph.output:
        if case.domain:
            output.ClearField("type")  # Backplane and onnxruntime infer it
        elif not output.type.tensor_type.elem_type:
            output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    onnx.save(model, path)


def runs_for(milliseconds):
    return max(LEAST_RUNS, min(MOST_RUNS, math.ceil(1000 * ENOUGH_S / max(milliseconds, 1e-3))))


def time_theirs(session, inputs):
    times, begin = [], time.perf_counter()
    while len(times) < LEAST_RUNS or (len(times) < MOST_RUNS and time.perf_counter() - begin < ENOUGH_S):
        start = time.perf_counter()
        session.run(None, inputs)
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def measure(case, program, threads, rounds, folder):
    path = folder / "model.onnx"
    write_model(case, path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    theirs = differential_ops.spelled_out(onnx.load(path)).SerializeToString()
    session = onnxruntime.InferenceSession(theirs, options, providers=["CPUExecutionProvider"])
    files = []
    for name, value in case.inputs.items():
        numpy.save(folder / f"{name}.npy", value)
        files.append(f"--input={name}={folder / name}.npy")

    def time_ours(runs):
        command = [program, "bench", path, "--device", "cpu", "--set", "loader.cache=", "--threads", threads, "--runs", runs, "--json", *files]
        return json.loads(sides.call(command))["median_ms"]

    runs, taken = runs_for(time_ours(LEAST_RUNS)), ([], [])
    time_theirs(session, case.inputs)
    for round_ in range(rounds):
        for side in (0, 1) if round_ % 2 == 0 else (1, 0):
            taken[side].append(time_theirs(session, case.inputs) if side else time_ours(runs))
    ours, theirs = map(statistics.median, taken)
    return {"operator": case.name, "ours_ms": ours, "theirs_ms": theirs, "ratio": ours / theirs, "met": ours <= GOAL * theirs}


def run(words, program, threads, rounds):
    """Runs all cases whose names contain one of the words. The results are sorted by the ratio to onnxruntime's time, the slowest first."""
    chosen = [case for case in cases() if not words or any(word.lower() in case.name.lower() for word in words)]
    if not chosen:
        raise SystemExit(f"bench: no operator's name contains {' or '.join(words)}; without names all operators are measured")
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        for case in chosen:
            results.append(measure(case, program, threads, rounds, pathlib.Path(scratch)))
    results.sort(key=lambda one: -one["ratio"])
    print(f"{'operator':30} {'ours, ms':>10} {'theirs':>10} {'ratio':>7}")
    for one in results:
        print(f"{one['operator']:30} {one['ours_ms']:10.4f} {one['theirs_ms']:10.4f} {one['ratio']:7.2f}" + ("" if one["met"] else "  missed"))
    mean = math.exp(statistics.mean(math.log(one["ratio"]) for one in results))
    print(f"geometric mean {mean:.2f}; {sum(one['met'] for one in results)} of {len(results)} operators take at most {GOAL} times as long as in ONNX Runtime; load average {os.getloadavg()[0]:.2f}")
    return {"operators": results, "operators_geometric_mean": mean}
