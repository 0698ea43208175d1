#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench.py [--rounds N] [--runs N] [--threads N] [--json FILE] [NAME…]: Backplane beside ONNX Runtime, in one interleaved run.

For each model and round, first one of the two runs RUNS times in a process of its own, then the other; who is first alternates. Same
threads, same stored input; both outputs are compared with the stored result first. Prints the median of all runs, the 90th
percentile, the ratio of medians, the time until the first run can start, and the peak memory of the process.
"""
import argparse
import json
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
DATA = pathlib.Path(os.environ.get("BACKPLANE_DATA", pathlib.Path.home() / ".cache/backplane"))
MODELS = ["resnet50", "vgg19", "densenet121", "inception_v1", "inception_v2", "squeezenet", "shufflenet", "alexnet", "zfnet512"]


def peer(model, threads, runs):
    """Runs ONNX Runtime in this process and prints its times as JSON."""
    import numpy
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(str(model / "model.onnx"), options, providers=["CPUExecutionProvider"])
    create = time.perf_counter() - start
    feed = {session.get_inputs()[0].name: numpy.load(model / "input_0.npy")}
    for _ in range(3):
        session.run(None, feed)
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        session.run(None, feed)
        times.append(1e3 * (time.perf_counter() - start))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"create_ms": 1e3 * create, "times_ms": times, "peak_rss_mb": peak}))


def run_peer(model, threads, runs):
    command = [sys.executable, __file__, "--peer", str(model), "--threads", str(threads), "--runs", str(runs)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def run_ours(program, model, threads, runs):
    # One process gives the median and the 90th percentile of its runs; a round adds these two.
    name = json.loads(subprocess.run([program, "info", model / "model.onnx", "--json"], check=True, capture_output=True).stdout)["inputs"][0]["name"]
    command = [program, "bench", model / "model.onnx", "--device", "cpu", "--input", f"{name}={model / 'input_0.npy'}",
               "--threads", str(threads), "--runs", str(runs), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(program, name, arguments):
    model = DATA / "light" / name
    ours, theirs = [], []
    for round_ in range(arguments.rounds):
        order = [("ours", run_ours), ("theirs", run_peer)]
        for who, _ in order if round_ % 2 == 0 else reversed(order):
            if who == "ours":
                ours.append(run_ours(program, model, arguments.threads, arguments.runs))
            else:
                theirs.append(run_peer(model, arguments.threads, arguments.runs))
    times = sorted(t for one in theirs for t in one["times_ms"])
    row = {
        "model": name,
        "ours_median_ms": statistics.median(one["median_ms"] for one in ours),
        "ours_p90_ms": statistics.median(one["p90_ms"] for one in ours),
        "ours_create_ms": statistics.median(one["create_ms"] for one in ours),
        "ours_peak_mb": max(one["peak_rss_mb"] for one in ours),
        "theirs_median_ms": statistics.median(times),
        "theirs_p90_ms": times[int(0.9 * (len(times) - 1))],
        "theirs_create_ms": statistics.median(one["create_ms"] for one in theirs),
        "theirs_peak_mb": max(one["peak_rss_mb"] for one in theirs),
    }
    row["ratio"] = row["ours_median_ms"] / row["theirs_median_ms"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--program", default=str(HERE.parent / "build/dev/bin/backplane"))
    parser.add_argument("--json", help="also write the rows to this file")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", default=MODELS)
    arguments = parser.parse_args()
    if arguments.peer:
        peer(pathlib.Path(arguments.peer), arguments.threads, arguments.runs)
        return 0
    unknown = set(arguments.names) - set(MODELS)
    if unknown:
        parser.error(f"no such model: {', '.join(sorted(unknown))}; there are {', '.join(MODELS)}")
    print(f"{arguments.threads} threads, {arguments.rounds} rounds of {arguments.runs} runs; load average before: {os.getloadavg()[0]:.2f}")
    print(f"{'model':<14}{'ours ms':>9}{'p90':>9}{'theirs':>9}{'p90':>9}{'ratio':>7}{'create':>9}{'theirs':>9}{'MB':>7}{'theirs':>8}")
    rows = []
    for name in arguments.names:
        r = measure(arguments.program, name, arguments)
        rows.append(r)
        print(f"{name:<14}{r['ours_median_ms']:9.2f}{r['ours_p90_ms']:9.2f}{r['theirs_median_ms']:9.2f}{r['theirs_p90_ms']:9.2f}"
              f"{r['ratio']:7.2f}{r['ours_create_ms']:9.1f}{r['theirs_create_ms']:9.1f}{r['ours_peak_mb']:7.0f}{r['theirs_peak_mb']:8.0f}", flush=True)
    mean = math.exp(statistics.mean(math.log(r["ratio"]) for r in rows))
    print(f"geometric mean of the ratios: {mean:.3f}")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"threads": arguments.threads, "rows": rows, "geometric_mean": mean}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
