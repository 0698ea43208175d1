#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench.py [--rounds N] [--runs N] [--threads N] [--load | --neighbour fma|l1 | --overhead | --operators | --unseen DIR] [--instructions SET] [--out FOLDER] [NAME…]: compares Backplane with onnxruntime.

Without names: all models, then the loader's overhead. With names: only these models. With --overhead: only the overhead. With --operators:
single operators, only those whose name contains a NAME if there are names.

For each model and round, Backplane runs RUNS times in its own process and so does onnxruntime; which of them comes first alternates. Both
use the same number of threads and the same stored input; Backplane's output is compared with onnxruntime's stored output. A model's goal
is met if the outputs agree, and if either the ratio of the median times (Backplane's over onnxruntime's) is within the goal of
benchmark/rows.py or Backplane's time is at most 1.15 times the floor: the model's operations over the peak rate measured on this machine,
or its weights over the bandwidth. Memory is the peak of a process less its memory before it opened the model. With --load, another process
keeps one core busy; then one goal holds for the medians and the 90th percentiles of all models, Backplane's 99th percentile is checked, and
the floor does not count. With --out, results.json and results.png are written to that folder.

--neighbour: another process does multiply-adds, or reads its L1 cache, on the last core during the measurement. --instructions limits
Backplane to an instruction set (BACKPLANE_CPU_INSTRUCTIONS), the floor to the peak rate of its vectors, and onnxruntime too, if it is AVX2 or
SSE41 (scripts/benchmark/limited.py). --unseen:
every model of a folder (scripts/benchmark/unseen_models.sh collects some); names are then parts of paths.
"""
import argparse
import contextlib
import dataclasses
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

from benchmark import floor, limited, neighbour, operators, overhead, report, sides, unseen
from benchmark.rows import FLOOR_SLACK, LOAD_GOAL, MEAN_GOAL, MEMORY_GOAL, ROWS

BUILD = pathlib.Path(__file__).resolve().parent.parent / "build/dev"
DATA = pathlib.Path(os.environ.get("BACKPLANE_DATA", pathlib.Path.home() / ".cache/backplane"))
SAME = {False: 1e-3, True: 0.1}  # largest difference over the outputs' largest magnitude: fp32; int8, where quantization errors add up


def combine(rounds):
    """Medians of times over the rounds, but the 99th percentile and the memory of the worst round."""
    one = {key: statistics.median(r[key] for r in rounds) for key in ("median_ms", "p90_ms", "create_ms", "first_ms")}
    one["p99_ms"] = max(r["p99_ms"] for r in rounds)
    one["peak_rss_mb"] = max(r["peak_rss_mb"] for r in rounds)
    one["memory_mb"] = max(r["peak_rss_mb"] - r["base_rss_mb"] for r in rounds)
    return one


def measure(row, ours, theirs, arguments, rates):
    folder = DATA / row.folder
    taken = {ours: [], theirs: []}
    for round_ in range(arguments.rounds):
        for side in (ours, theirs) if round_ % 2 == 0 else (theirs, ours):
            taken[side].append(side.measure(folder, arguments.threads, arguments.runs))
    result = {"model": row.name, "goal": row.goal, "int8": row.int8, "ours": combine(taken[ours]), "theirs": combine(taken[theirs])}
    result["ratio"] = result["ours"]["median_ms"] / result["theirs"]["median_ms"]
    result["p90_ratio"] = result["ours"]["p90_ms"] / result["theirs"]["p90_ms"]
    result["memory_ratio"] = result["ours"]["memory_mb"] / result["theirs"]["memory_mb"]
    result["difference"] = ours.difference(folder)
    result["same"] = result["difference"] <= SAME[row.int8]
    if arguments.load:
        result["goal"] = LOAD_GOAL
        result["p99_limit_ms"] = 3 * result["ours"]["median_ms"] + 8
        result["met"] = max(result["ratio"], result["p90_ratio"]) <= LOAD_GOAL and result["ours"]["p99_ms"] <= result["p99_limit_ms"] and result["same"]
        return result
    result["floor_ms"] = floor.floor_ms(folder, row.int8, rates)
    result["met_by_ratio"] = result["same"] and result["ratio"] <= row.goal
    result["met_by_floor"] = result["same"] and result["ours"]["median_ms"] <= FLOOR_SLACK * result["floor_ms"]
    result["met"] = result["met_by_ratio"] or result["met_by_floor"]
    return result


@contextlib.contextmanager
def busy_core():
    """Keeps one core busy with another process: the last core that this process may use."""
    core = max(os.sched_getaffinity(0))
    other = subprocess.Popen([sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{core}])\nwhile os.getppid() == {os.getpid()}:\n    for _ in range(10**6): pass"])
    try:
        yield core
    finally:
        other.kill()
        other.wait()


def run_models(chosen, arguments):
    ours, theirs = sides.Ours(arguments.program), sides.Theirs()
    rates = None
    if not arguments.load:
        rates = floor.rates(arguments.threads)
        if arguments.instructions:
            rates["flops"] = 2 * arguments.threads * neighbour.peak(arguments.instructions)
        print(f"measured here: {rates['flops'] / 1e9:.0f} GFLOP/s, {rates['int8_ops'] / 1e9:.0f} G int8 operations/s, {rates['bytes'] / 1e9:.1f} GB/s")
    print(report.load_header() if arguments.load else report.model_header())
    results = []
    for row in chosen:
        results.append(measure(row, ours, theirs, arguments, rates))
        print(report.load_line(results[-1]) if arguments.load else report.model_line(results[-1]), flush=True)
        if not results[-1]["same"]:
            print(f"  the outputs differ by {results[-1]['difference']:.2g} of their magnitude: not met")
    summary = {"rates": rates, "models": results}
    exact = [r["ratio"] for r in results if not r["int8"]]
    if exact:
        summary["geometric_mean"] = math.exp(statistics.mean(map(math.log, exact)))
        print(f"geometric mean of the fp32 ratios: {summary['geometric_mean']:.3f} (goal {LOAD_GOAL if arguments.load else MEAN_GOAL})")
    over = [r["model"] for r in results if r["memory_ratio"] > MEMORY_GOAL]
    print(f"peak memory: {len(results) - len(over)} of {len(results)} models need at most {MEMORY_GOAL} times the memory of ONNX Runtime" + (f"; not {', '.join(over)}" if over else ""))
    print(f"{sum(r['met'] for r in results)} of {len(results)} rows met their goals")
    return summary


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--runs", type=int, help="runs per round; default 15, with --load as many as make 1,000 in total")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--load", action="store_true", help="while another process uses one core")
    parser.add_argument("--neighbour", choices=("fma", "l1"), help="while another process does this on one core")
    parser.add_argument("--instructions", choices=tuple(neighbour.BITS), help="the largest instruction set that both sides may use; onnxruntime is only limited to AVX2 and SSE41")
    parser.add_argument("--unseen", type=pathlib.Path, help="a folder of models instead of the table's")
    parser.add_argument("--overhead", action="store_true", help="only the loader's overhead")
    parser.add_argument("--operators", action="store_true", help="single operators instead of models")
    parser.add_argument("--program", default=str(BUILD / "bin/backplane"))
    parser.add_argument("--overhead-program", default=str(BUILD / "tests/session_bench"))
    parser.add_argument("--out", type=pathlib.Path, help="a folder for results.json and results.png")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    arguments.runs = arguments.runs or (math.ceil(1000 / arguments.rounds) if arguments.load else 15)
    if arguments.operators and (arguments.overhead or arguments.load):
        parser.error("--operators cannot be combined with --overhead or --load")
    if arguments.instructions:
        os.environ["BACKPLANE_CPU_INSTRUCTIONS"] = arguments.instructions
        if copy := limited.folder(arguments.instructions, DATA):
            os.environ["PYTHONPATH"] = str(copy)
    unknown = set() if arguments.operators or arguments.unseen else set(arguments.names) - {row.name for row in ROWS}
    if unknown:
        parser.error(f"no such model: {', '.join(sorted(unknown))}; there are {', '.join(row.name for row in ROWS)}")
    if arguments.overhead and (arguments.names or arguments.load):
        parser.error("--overhead cannot be combined with names or --load")
    chosen = [row for row in ROWS if not arguments.names or row.name in arguments.names]
    print(f"{arguments.threads} threads, {arguments.rounds} rounds of {arguments.runs} runs; load average before: {os.getloadavg()[0]:.2f}")
    summary = {"threads": arguments.threads, "rounds": arguments.rounds, "runs": arguments.runs, "load": arguments.load}
    if arguments.unseen:
        with neighbour.busy(arguments.neighbour):
            summary |= unseen.run(arguments.unseen, sides.Ours(arguments.program), sides.Theirs(), arguments)
    elif arguments.operators:
        summary |= operators.run(arguments.names, arguments.program, arguments.threads, arguments.rounds)
    elif not arguments.overhead:
        with busy_core() if arguments.load else neighbour.busy(arguments.neighbour):
            summary |= run_models(chosen, arguments)
    if arguments.overhead or not (arguments.names or arguments.load or arguments.neighbour or arguments.operators or arguments.unseen):
        overheads = overhead.measure(sides.Ours(arguments.program), sides.Theirs(), arguments.overhead_program, arguments.threads, arguments.rounds)
        print("\n".join(report.overhead_lines(overheads)))
        summary["overhead"] = [dataclasses.asdict(one) | {"met": one.met} for one in overheads]
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "results.json").write_text(json.dumps(summary, indent=1) + "\n")
        if "models" in summary:
            title = f"Backplane and onnxruntime, {arguments.threads} threads" + (", one core busy" if arguments.load else "")
            report.plot(summary["models"], title, arguments.out / "results.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
