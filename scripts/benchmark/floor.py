# SPDX-License-Identifier: Apache-2.0
"""The least time that a model should take on this machine: the larger of its operations over the measured peak rate, and the bytes of its
weights over the measured bandwidth.

Rates are measured with large matrix products and dot products; of NumPy and onnxruntime, the faster fp32 product counts. Operations are
counted by the definition of the operators, so a kernel with fewer, such as a Winograd convolution, can take less than this time.
"""
import json
import math
import os
import pathlib
import sys
import time

import numpy
import onnx
from onnx import helper

from . import sides

SHAPED = ("Conv", "ConvTranspose", "Gemm", "MatMul", "MatMulInteger", "ConvInteger")


def best(seconds, call):
    """The shortest time of a call, in seconds, of all calls within about `seconds`."""
    call()
    shortest, end = math.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def product_session(op, n, threads):
    import onnxruntime

    kinds = {"MatMul": (1, 1, 1), "MatMulInteger": (2, 3, 6)}[op]
    a, b, y = (helper.make_tensor_value_info(name, kind, [n, n]) for name, kind in zip("aby", kinds))
    weights = numpy.random.default_rng(0).integers(-3, 4, (n, n))
    constant = onnx.numpy_helper.from_array(weights.astype(helper.tensor_dtype_to_np_dtype(kinds[1])), "b")
    graph = helper.make_graph([helper.make_node(op, ["a", "b"], ["y"])], "g", [a], [y], [constant])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feed = {"a": numpy.ones((n, n), helper.tensor_dtype_to_np_dtype(kinds[0]))}
    return lambda: session.run(None, feed)


def measure_here(threads):
    """The rates, each per second: fp32 operations, int8 operations, bytes read. Runs in a process that `rates` starts, because NumPy reads
    its number of threads from the environment."""
    n = 2048
    a = numpy.ones((n, n), numpy.float32)
    x, y = (numpy.ones(1 << 26, numpy.float32) for _ in range(2))
    product = min(best(1.0, lambda: a @ a), best(1.0, product_session("MatMul", n, threads)))
    return {
        "flops": 2 * n**3 / product,
        "int8_ops": 2 * n**3 / best(1.0, product_session("MatMulInteger", n, threads)),
        "bytes": 2 * x.nbytes / best(1.0, lambda: numpy.dot(x, y)),
    }


def rates(threads):
    environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads))
    return json.loads(sides.call([sys.executable, "-m", "benchmark.floor", threads], env=environment, cwd=pathlib.Path(__file__).resolve().parent.parent))


def work(folder):
    """(operations, bytes of weights that are read) of one run with the stored inputs."""
    model = onnx.load(folder / "model.onnx")
    inputs = sides.stored(folder, "input")
    weights = {w.name: w for w in model.graph.initializer}
    for info, value in zip([i for i in model.graph.input if i.name not in weights], inputs):
        del info.type.tensor_type.shape.dim[:]
        for extent in value.shape:
            info.type.tensor_type.shape.dim.add().dim_value = extent
    for info in model.graph.output:
        info.type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    shapes = {name: list(w.dims) for name, w in weights.items()}
    for info in [*inferred.value_info, *inferred.input, *inferred.output]:
        shapes.setdefault(info.name, [d.dim_value for d in info.type.tensor_type.shape.dim])
    operations, looked_up, read = 0, set(), set()
    for node in model.graph.node:
        (looked_up if node.op_type == "Gather" else read).update(node.input)
        if node.op_type not in SHAPED:
            continue
        a, b, y = (shapes[name] for name in (node.input[0], node.input[1], node.output[0]))
        terms = math.prod(b[1:]) if node.op_type in ("Conv", "ConvInteger") else a[-1]
        if node.op_type == "Gemm" and any(at.name == "transA" and at.i for at in node.attribute):
            terms = a[0]
        if node.op_type == "ConvTranspose":
            operations += 2 * math.prod(a) * math.prod(b[1:])
            continue
        operations += 2 * math.prod(y) * terms
    bytes_read = sum(len(w.raw_data) or onnx.numpy_helper.to_array(w).nbytes for name, w in weights.items() if name in read or name not in looked_up)
    return operations, bytes_read


def floor_ms(folder, int8, rate):
    operations, bytes_read = work(folder)
    return 1e3 * max(operations / rate["int8_ops" if int8 else "flops"], bytes_read / rate["bytes"])


if __name__ == "__main__":
    print(json.dumps(measure_here(int(sys.argv[1]))))
