#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_model.py FILE.onnx: writes a model that does enough work per row, and its results for the sample's seven distinct rows, as FILE.npy."""
import pathlib
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HIDDEN = 64, 4096
rng = numpy.random.default_rng(1)
weights = [rng.standard_normal(shape, dtype=numpy.float32) / 64 for shape in ((WIDTH, HIDDEN), (HIDDEN, 1024), (1024, 4))]
nodes, last = [], "x"
for i in range(len(weights)):
    nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"p{i}"]))
    nodes.append(helper.make_node("Tanh", [f"p{i}"], ["y" if i == 2 else f"t{i}"]))
    last = f"t{i}"
infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width]) for name, width in (("x", WIDTH), ("y", 4))]
graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)])
path = pathlib.Path(sys.argv[1])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
rows = ((numpy.arange(7)[:, None] + numpy.arange(WIDTH)) % 7).astype(numpy.float32)
for w in weights:
    rows = numpy.tanh(rows @ w)
numpy.save(path.with_suffix(".npy"), rows)
