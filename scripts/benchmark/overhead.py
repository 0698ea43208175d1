# SPDX-License-Identifier: Apache-2.0
"""The loader's own cost, compared with its goals. Backplane's figures come from loader/session/session_bench.cpp,
onnxruntime's from its Python API."""
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnx
from onnx import helper

from . import sides
from .floor import best

GIGABYTE_WIDTH, GIGABYTE_LAYERS = 8192, 4


@dataclasses.dataclass
class Overhead:
    name: str
    ours: float
    unit: str
    goal: float
    theirs: float | None = None

    @property
    def met(self):
        return self.ours <= self.goal


def chain(length):
    """The same chain of nodes as session_bench.cpp builds."""
    names = ["x", *(f"v{i}" for i in range(length - 1)), "y"]
    nodes = [helper.make_node("Add", [a, "w"], [b]) if i % 2 == 0 else helper.make_node("Relu", [a], [b]) for i, (a, b) in enumerate(zip(names, names[1:]))]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [helper.make_tensor("w", onnx.TensorProto.FLOAT, [1], [1.0])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def open_theirs(model):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def bound_run(length):
    session = open_theirs(chain(length))
    binding = session.io_binding()
    binding.bind_cpu_input("x", numpy.ones(1, numpy.float32))
    binding.bind_output("y")
    return best(0.5, lambda: session.run_with_iobinding(binding))


def theirs_here():
    """onnxruntime's times in seconds. Runs in a separate process."""
    runs = {n: bound_run(n) for n in (1, 1001)}
    sessions = {n: best(1.0, lambda: open_theirs(model)) for n, model in ((n, chain(n)) for n in (1000, 10000, 100000))}
    return {"run": runs[1], "node": (runs[1001] - runs[1]) / 1000, "sessions": sessions}


def write_gigabyte(path):
    """A model of one gigabyte of random weights, in one file."""
    rng, shape = numpy.random.default_rng(3), (GIGABYTE_WIDTH, GIGABYTE_WIDTH)
    weights = [onnx.numpy_helper.from_array(rng.standard_normal(shape, numpy.float32) / numpy.float32(90), f"w{i}") for i in range(GIGABYTE_LAYERS)]
    nodes = [helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(GIGABYTE_LAYERS)]
    ends = [helper.make_tensor_value_info(f"v{i}", onnx.TensorProto.FLOAT, [1, GIGABYTE_WIDTH]) for i in (0, GIGABYTE_LAYERS)]
    graph = helper.make_graph(nodes, "gigabyte", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    os.sync()


def forget(path):
    """Removes the file from the system's page cache."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_cold(path):
    forget(path)
    start = time.perf_counter()
    subprocess.run(["cat", str(path)], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def gigabyte(ours, theirs, threads, rounds):
    """For each side, a ratio: the time until the first result of an uncached model of one gigabyte, over the time for reading that file plus that
    for one run. Each time is the shortest of some rounds, because disks are slow at times."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BACKPLANE_DATA")) as scratch:
        folder = pathlib.Path(scratch)
        write_gigabyte(folder / "model.onnx")
        numpy.save(folder / "input_0.npy", numpy.ones((1, GIGABYTE_WIDTH), numpy.float32))
        cats, loads, runs = [], {ours: [], theirs: []}, {ours: [], theirs: []}
        for _ in range(rounds):
            cats.append(1e3 * read_cold(folder / "model.onnx"))
            for side in (ours, theirs):
                forget(folder / "model.onnx")
                one = side.measure(folder, threads, 3)
                loads[side].append(one["create_ms"] + one["first_ms"])
                runs[side].append(one["median_ms"])
    return tuple(min(loads[side]) / (min(cats) + min(runs[side])) for side in (ours, theirs))


def through_onnxifi(ours, model, threads, rounds):
    """The time of a model on the backend onnxifi, which runs Backplane's libonnxifi.so over the CPU backend in a separate process, over its time on
    the CPU backend directly. Both are medians of alternating runs."""
    prefix = pathlib.Path(ours.program).resolve().parent.parent
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "libonnxifi-backplane.so").symlink_to(prefix / "lib" / "libonnxifi.so")
        env = {**os.environ, "BACKPLANE_SELECT": "cpu,onnxifi", "BACKPLANE_ONNXIFI_PATH": folder, "BACKPLANE_ISOLATE_PATHS": str(prefix)}
        command = [ours.program, "bench", model / "model.onnx", "--fallback", "forbid", "--set", "loader.cache=", "--threads", threads, "--runs", 30, "--json", "--device"]
        medians = {device: [] for device in ("cpu", "onnxifi")}
        for _ in range(rounds):
            for device, taken in medians.items():
                taken.append(json.loads(sides.call([*command, device], env=env))["median_ms"])
    return statistics.median(medians["onnxifi"]) / statistics.median(medians["cpu"])


def measure(ours, theirs, bench_program, threads, rounds):
    report = json.loads(sides.call([bench_program, "--benchmark_format=json", "--benchmark_min_time=0.5", "--benchmark_repetitions=3", "--benchmark_report_aggregates_only=true"]))
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    medians = {b["run_name"].removesuffix("/repeats:3"): b for b in report["benchmarks"] if b.get("aggregate_name") == "median"}
    took = {name: b["real_time"] * units[b["time_unit"]] for name, b in medians.items()}
    them = json.loads(sides.call([sys.executable, "-m", "benchmark.overhead"], cwd=pathlib.Path(__file__).resolve().parent.parent))
    hand_over = took["hand_over/real_time"]
    island = 1e-9 * medians["async_chain/streamed/20/real_time"]["beyond_ns"] - hand_over / 20
    opencl_best = lambda how, length: 1e-9 * medians[f"opencl_chain/{how}/{length}/real_time"]["best_ns"]
    opencl = []
    if "opencl_chain/islands/20/real_time" in medians:  # missing if there is no OpenCL device
        each, kernel = ((opencl_best(how, 100) - opencl_best(how, 20)) / 80 for how in ("islands", "one_island"))
        opencl.append(Overhead(f"each further island on OpenCL, less its kernel in a larger island ({1e6 * kernel:.1f} us)", 1e6 * (each - kernel), "us", 2))
    resnet = pathlib.Path(os.environ.get("BACKPLANE_DATA") or pathlib.Path.home() / ".cache/backplane") / "light" / "resnet50"
    vendor = []
    if (resnet / "model.onnx").exists():
        vendor.append(Overhead("ResNet-50 through backends/onnxifi in its own process, over direct", through_onnxifi(ours, resnet, threads, rounds), "x", 1.03))
    per_node = lambda sessions: (sessions(100000) / 100000) / (sessions(1000) / 1000)
    big, their_big = gigabyte(ours, theirs, threads, rounds)
    return [
        Overhead("bound run of a program that does nothing", 1e6 * took["bound_run_null/1"], "us", 0.3, 1e6 * them["run"]),
        Overhead("bound run of one tiny node on the CPU", 1e6 * took["bound_run/1"], "us", 0.3, 1e6 * them["run"]),
        Overhead("each further tiny node", 1e9 * (took["bound_run/1001"] - took["bound_run/1"]) / 1000, "ns", 50, 1e9 * them["node"]),
        Overhead("session for a chain of 10,000 nodes", 1e3 * took["session/10000"], "ms", 20, 1e3 * them["sessions"]["10000"]),
        Overhead("2,000 nodes that alternate between two devices", 1e3 * took["alternating_islands/2000"], "ms", 50),
        Overhead("growth from 1,000 to 100,000 nodes, each node", per_node(lambda n: took[f"session/{n}"]), "x", 1.2, per_node(lambda n: them["sessions"][str(n)])),
        Overhead(f"each island of 20 in the stream of a device, less its work and one hand-over between threads ({1e6 * hand_over:.0f} us)", 1e6 * island, "us", 2),
        *opencl,
        *vendor,
        Overhead("scan of 50 known backends", 1e3 * took["known_backends/50"], "ms", 2),
        Overhead("1 GB model: load and first result, over cat cold and one run", big, "x", 1.2, their_big),
    ]


if __name__ == "__main__":
    print(json.dumps(theirs_here()))
