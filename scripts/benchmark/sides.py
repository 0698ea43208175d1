# SPDX-License-Identifier: Apache-2.0
"""The two sides of a comparison. Each run of either is a separate process, so that peak memory is measured separately."""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy


def stored(folder, stem):
    return [numpy.load(path) for path in sorted(folder.glob(f"{stem}_*.npy"), key=lambda p: int(p.stem.split("_")[1]))]


def call(command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    if done.returncode:
        raise SystemExit(f"bench: {' '.join(map(str, command))}: {done.stderr.strip()[-500:]}")
    return done.stdout


class Ours:
    def __init__(self, program):
        self.program = program

    def inputs(self, model):
        if not (model / "input_0.npy").exists():
            return []
        names = [value["name"] for value in json.loads(call([self.program, "info", model / "model.onnx", "--json"]))["inputs"]]
        return [f"--input={name}={model / f'input_{i}.npy'}" for i, name in enumerate(names)]

    def measure(self, model, threads, runs):
        # Without the cache of programs, because one from an earlier run would shorten the time of creating the session.
        return json.loads(call([self.program, "bench", model / "model.onnx", "--device", "cpu", "--set", "loader.cache=", "--threads", threads,
                                "--runs", runs, "--json", *self.inputs(model)]))

    def difference(self, model):
        """The largest difference from the stored outputs, over the largest magnitude there."""
        worst = 0.0
        with tempfile.TemporaryDirectory() as scratch:
            call([self.program, "run", model / "model.onnx", "--device", "cpu", "--output", scratch, *self.inputs(model)])
            results = [numpy.load(path) for path in sorted(pathlib.Path(scratch).glob("*.npy"))]
        for expected in stored(model, "output"):
            fits = [r for r in results if r.shape == expected.shape and r.dtype == expected.dtype]
            if not fits:
                return float("inf")
            size = max(numpy.abs(expected).max(), 1e-9)  # smaller outputs count as 0: onnxruntime's Sigmoid flushes them to 0
            worst = max(worst, min(float(numpy.abs(r.astype("f8") - expected.astype("f8")).max() / size) for r in fits))
        return worst


class Theirs:
    """onnxruntime's CPU provider, through Python, which adds some microseconds to each run."""

    def measure(self, model, threads, runs):
        return json.loads(call([sys.executable, "-m", "benchmark.sides", model, threads, runs], cwd=pathlib.Path(__file__).resolve().parent.parent))


def quantile(times, q):
    return sorted(times)[int(q * (len(times) - 1) + 0.5)]


def peak_mb():
    """The peak memory of this process in MiB. getrusage is not used, because its figure includes the memory of the parent process."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main():
    """The program of the process that measures onnxruntime once."""
    import onnxruntime

    model, threads, runs = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    base = peak_mb()
    inputs = stored(model, "input")
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(str(model / "model.onnx"), options, providers=["CPUExecutionProvider"])
    create = time.perf_counter() - start
    feed = {given.name: value for given, value in zip(session.get_inputs(), inputs)}
    start = time.perf_counter()
    session.run(None, feed)
    first = time.perf_counter() - start
    for _ in range(min(max(runs // 10, 1), 10) - 1):
        session.run(None, feed)
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        session.run(None, feed)
        times.append(1e3 * (time.perf_counter() - start))
    print(json.dumps({
        "create_ms": 1e3 * create, "first_ms": 1e3 * first, "mean_ms": statistics.mean(times), "median_ms": quantile(times, 0.5), "p90_ms": quantile(times, 0.9),
        "p99_ms": quantile(times, 0.99), "peak_rss_mb": peak_mb(), "base_rss_mb": base,
    }))


if __name__ == "__main__":
    main()
