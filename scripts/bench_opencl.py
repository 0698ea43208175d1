#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_opencl.py [--runs N] [--rounds N] [--only TEXT]: the share of the device's measured peak that the OpenCL backend's kernels reach.

Peaks are measured by small kernels of the backend before and after the cases, and the greater one counts: multiply-adds in registers,
and streaming through memory. A case's time is the sum of its kernels' times by the device's clock, the median of the runs. Then
ResNet-50 runs on OpenCL and on the CPU backend, interleaved.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

import onnx

from benchmark import kernels

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "build/dev/bin/backplane"
DATA = pathlib.Path(os.environ.get("BACKPLANE_DATA", pathlib.Path.home() / ".cache/backplane"))
MEASURED = re.compile(r"(?P<device>\S[^\n]*): measured (?P<gflops>\S+) GFLOP/s, (?P<gbs>\S+) GB/s, (?P<launch>\S+) us per launch")


def call(*command, **more):
    done = subprocess.run([str(PROGRAM), *map(str, command)], capture_output=True, text=True, **more)
    if done.returncode:
        raise SystemExit(f"bench_opencl: {' '.join(map(str, command))}: {done.stderr.strip()[-500:]}")
    return done


def peaks(model):
    """GFLOP/s, GB/s and microseconds for each launch. The backend measures them again, because it gets an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        output = call("explain", model, "--device", "opencl", env=os.environ | {"BACKPLANE_CACHE_DIR": cache, "BACKPLANE_LOG": "info"}).stderr
    found = MEASURED.search(output)
    if not found:
        raise SystemExit(f"bench_opencl: the backend measured nothing: {output.strip()[-300:]}")
    return float(found["gflops"]), float(found["gbs"]), float(found["launch"])


def device_ms(model, runs, scratch):
    """Milliseconds of all kernels of one run: the median over the runs, without the first two."""
    out = scratch / "trace.json"
    call("trace", model, "--device", "opencl", "--runs", runs + 2, "--out", out)
    events = json.loads(out.read_text())["traceEvents"]
    process = next(e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"] == "opencl")
    spans = sorted((e for e in events if e["ph"] == "X" and e["pid"] == process and e["tid"] == 0 and e["cat"] == "compute"), key=lambda e: e["ts"])
    each = len(spans) // (runs + 2)
    return statistics.median(sum(e["dur"] for e in spans[i * each:(i + 1) * each]) for i in range(2, runs + 2)) / 1e3


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=9)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", default="", help="only cases whose family contains this text, without ResNet-50")
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        chosen = [c for c in kernels.cases() if options.only in c.family]
        if not chosen:
            raise SystemExit(f"bench_opencl: no family contains '{options.only}'; there are {', '.join(dict.fromkeys(c.family for c in kernels.cases()))}")
        for i, each in enumerate(chosen):
            onnx.save(each.model, scratch / f"{i}.onnx")
        before = peaks(scratch / "0.onnx")
        times = [device_ms(scratch / f"{i}.onnx", options.runs, scratch) for i in range(len(chosen))]
        after = peaks(scratch / "0.onnx")
    gflops, gbs, launch = max(before[0], after[0]), max(before[1], after[1]), min(before[2], after[2])
    print(f"peaks: {gflops:.0f} GFLOP/s, {gbs:.1f} GB/s, {launch:.1f} us per launch (before {before[0]:.0f} / {before[1]:.1f}, after {after[0]:.0f} / {after[1]:.1f})\n")
    print("| family | case | ms | rate | of the peak |\n|---|---|---|---|---|")
    for each, ms in zip(chosen, times):
        rate, peak, unit = (each.gflop / ms * 1e3, gflops, "GFLOP/s") if each.gflop else (each.megabytes / ms, gbs, "GB/s")
        print(f"| {each.family} | {each.name} | {ms:.2f} | {rate:.1f} {unit} | {100 * rate / peak:.0f}% |")
    if options.only:
        return
    model, sides = DATA / "light/resnet50/model.onnx", {"opencl": [], "cpu": []}
    for _ in range(options.rounds):
        for device, found in sides.items():
            found.append(json.loads(call("bench", model, "--device", device, "--runs", 10, "--json").stdout)["median_ms"])
    ours, cpu = statistics.median(sides["opencl"]), statistics.median(sides["cpu"])
    print(f"\nResNet-50: {ours:.1f} ms on OpenCL, {cpu:.1f} on the CPU backend: a ratio of {ours / cpu:.2f}")


if __name__ == "__main__":
    main()
