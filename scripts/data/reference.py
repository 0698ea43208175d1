# SPDX-License-Identifier: Apache-2.0
"""How this folder's scripts get reference results and store them."""
import hashlib

import numpy
import onnxruntime


def open_model(path):
    """A session with every optimization, on two CPU threads."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = 2
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run(session, data):
    """The first output for the first input."""
    return session.run([session.get_outputs()[0].name], {session.get_inputs()[0].name: data})[0]


def store(folder, data, result):
    if not numpy.isfinite(result).all():
        raise SystemExit(f"{folder}: the reference result is not finite")
    numpy.save(folder / "input_0.npy", data)
    numpy.save(folder / "output_0.npy", result)


def rng(*names):
    """A generator seeded by names, so that adding a model or a tensor changes no other."""
    digest = hashlib.sha256("/".join(names).encode()).digest()
    return numpy.random.default_rng(int.from_bytes(digest[:8], "little"))
