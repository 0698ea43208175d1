# SPDX-License-Identifier: Apache-2.0
"""The cost of Python: from import to the first result, a bound run compared with C++, and threads.

    PYTHONPATH=build/dev/python api/python/bench/bench.py [--program build/dev/bin/backplane] [--json]

Times to the first result are medians of 7 processes. Times of runs are averages over 2000 runs; the least of 20 averages is printed. The
C++ figures are those that `backplane bench` (--program) reports, which uses the C++ client and the same loader.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

import backplane

FIRST = """
import sys, time, numpy
start = time.perf_counter()
import backplane
imported = time.perf_counter()
settings = {settings!r}
environment = backplane.Environment(settings=settings) if settings else backplane.environment()
found = time.perf_counter()
session = environment.load({path!r}).compile(devices="cpu")
result = session(numpy.ones((2, 3), numpy.float32))
print((imported - start) * 1e3, (found - imported) * 1e3, (time.perf_counter() - start) * 1e3)
"""


def save(path: str, nodes: list, shape: list[int], weights: dict[str, numpy.ndarray] | None = None) -> str:
    tensors = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)] for name in ("x", "y")]
    graph = helper.make_graph(nodes, "bench", *ends, tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def first_result(path: str, settings: dict[str, object]) -> dict[str, float]:
    """Medians in milliseconds: of the import, of the environment, and from before the import to the first result. NumPy is imported
    before. Each measurement has its own process."""
    code = FIRST.format(path=path, settings=settings)
    rows = []
    for _ in range(7):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        rows.append([float(word) for word in done.stdout.split()])
    imported, found, all_of_it = (statistics.median(column) for column in zip(*rows, strict=True))
    return {"import_ms": imported, "environment_ms": found, "first_result_ms": all_of_it}


def bound_run(path: str, program: str) -> dict[str, float]:
    """Microseconds of a bound run of one small node, and of `run` with new arrays."""
    session = backplane.load(path).compile(devices="cpu")
    x = numpy.ones((2, 3), numpy.float32)
    run = session.bind({"x": x}, {"y": numpy.empty_like(x)})

    def least(call: object, count: int = 2000) -> float:
        best = float("inf")
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(count):
                call()
            best = min(best, (time.perf_counter() - start) / count)
        return best * 1e6

    inputs = {"x": x}
    figures = {"bound_run_us": least(run), "run_us": least(lambda: session.run(inputs))}
    if os.path.exists(program):
        words = [program, "bench", path, "--device", "cpu", "--runs", "20000", "--json"]
        report = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        figures["cpp_bound_run_us"] = report["median_ms"] * 1e3
        figures["above_cpp_us"] = figures["bound_run_us"] - figures["cpp_bound_run_us"]
    return figures


def threads(path: str, program: str) -> dict[str, float]:
    """Runs per second of a network of small products, for 1, 2 and 8 threads that share a session, from Python and from C++. A run uses its
    caller's thread only."""
    environment = backplane.Environment(settings={"cpu.threads": 1})
    session = environment.load(path).compile(devices="cpu")
    figures = {}
    for count in (1, 2, 8):
        stop, done = threading.Event(), [0] * count

        def work(index: int, stop: threading.Event = stop, done: list[int] = done) -> None:
            x = numpy.ones((64, 256), numpy.float32)
            run = session.bind({"x": x}, {"y": numpy.empty_like(x)})
            while not stop.is_set():
                run()
                done[index] += 1

        workers = [threading.Thread(target=work, args=(index,)) for index in range(count)]
        for worker in workers:
            worker.start()
        time.sleep(2)
        stop.set()
        for worker in workers:
            worker.join()
        figures[f"threads_{count}_per_s"] = sum(done) / 2
        if os.path.exists(program):
            words = [program, "bench", path, "--device", "cpu", "--set", "cpu.threads=1", "--streams", str(count), "--runs", "3000", "--json"]
            report = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
            figures[f"cpp_threads_{count}_per_s"] = report["runs_per_second"]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/dev/bin/backplane")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small = save(f"{folder}/small.onnx", [helper.make_node("Relu", ["x"], ["y"])], [2, 3])
        weights = {f"w{i}": numpy.eye(256, dtype=numpy.float32) for i in range(8)}
        names = ["x", *(f"v{i}" for i in range(7)), "y"]
        nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(8)]
        deep = save(f"{folder}/deep.onnx", nodes, [64, 256], weights)
        figures = first_result(small, {})
        only = first_result(small, {"loader.select": "cpu"})
        figures["first_result_only_cpu_ms"] = only["first_result_ms"]
        figures.update(bound_run(small, options.program))
        figures.update(threads(deep, options.program))
    if options.json:
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name:26} {value:.3f}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
