# SPDX-License-Identifier: Apache-2.0
"""Compares every model of a folder with onnxruntime: equal inputs, interleaved runs, compared outputs, and the slowest steps if Backplane is slower.

Inputs are seeded. The first dimension of an input, and those of recurrent states, get the extent 1 if they have none. Other dimensions without an
extent get the first of SIZES with which onnxruntime runs the model. A file MODEL.json next to MODEL.onnx may state extents: {"INPUT": [1, 3, 48, 320]}.
"""
import collections
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy

from . import sides

SIZES = (320, 64, 160, 512, 576, 16, 1600, 16000, 1, 8)
STATES = ("state", "h", "c", "h0", "c0", "context")  # inputs that are states of recurrent networks: their unknown extents are the batch
BEHIND = 1.1  # the slowest steps are listed for models with a larger ratio of Backplane's time to onnxruntime's
SAME = 2e-2  # largest accepted difference over the outputs' largest magnitude
TYPES = {"tensor(float)": "f4", "tensor(double)": "f8", "tensor(float16)": "f2", "tensor(int64)": "i8", "tensor(int32)": "i4", "tensor(uint8)": "u1",
         "tensor(int8)": "i1", "tensor(bool)": "?"}


def value_of(given, size, stated):
    """A seeded array for an input as onnxruntime describes it. `size` is the extent of unknown dimensions, `stated` has extents by input name."""
    if given.type not in TYPES:
        raise ValueError(f"input {given.name} is {given.type}, for which this script has no values")
    extents = stated.get(given.name)
    if extents is None:
        extents = [d if isinstance(d, int) and d > 0 else (1 if i == 0 or given.name in STATES else size) for i, d in enumerate(given.shape)]
    random = numpy.random.default_rng(len(given.name))
    kind = numpy.dtype(TYPES[given.type])
    if given.name in ("sr", "sample_rate"):
        return numpy.full(extents, 16000, kind)
    if "mask" in given.name or kind == bool:
        return numpy.ones(extents, kind)
    if kind.kind in "iu":
        return numpy.asarray(random.integers(0, 20, extents)).astype(kind)
    return numpy.asarray(random.standard_normal(extents) * (0.1 if len(extents) < 3 else 1), kind)


def prepare(path, folder):
    """Stores inputs and onnxruntime's outputs in `folder`, as the rows of the table have them. Returns the inputs' extents."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    description = path.with_suffix(".json")
    stated = json.loads(description.read_text()) if description.exists() else {}
    error = None
    for size in SIZES:
        try:
            feed = {given.name: value_of(given, size, stated) for given in session.get_inputs()}
            outputs = session.run(None, feed)
            break
        except ValueError:
            raise
        except Exception as problem:  # onnxruntime has no common class for shapes that do not fit
            error = problem
    else:
        raise ValueError(str(error).splitlines()[0][:120])
    for file in path.parent.iterdir():
        (folder / file.name).symlink_to(file.resolve())  # among them are files of weights
    (folder / "model.onnx").symlink_to(path.resolve())
    for i, value in enumerate(feed.values()):
        numpy.save(folder / f"input_{i}.npy", value)
    for i, value in enumerate(outputs):
        if not isinstance(value, numpy.ndarray) or value.dtype.kind not in "fiub":
            raise ValueError(f"output {i} is not a tensor of numbers")
        numpy.save(folder / f"output_{i}.npy", value)
    return [list(value.shape) for value in feed.values()]


def slowest(ours, folder, threads):
    """The three steps that take the most time in Backplane."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [ours.program, "trace", folder / "model.onnx", "--device", "cpu", "--set", f"cpu.threads={threads}", "--runs", 10, "--out", file.name,
                   *ours.inputs(folder)]
        if subprocess.run([str(part) for part in command], capture_output=True).returncode:
            return "no trace"
        events = json.loads(pathlib.Path(file.name).read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    times = collections.Counter()
    for event in events:
        if event.get("cat") == "compute" and "node" in event.get("args", {}):  # a span of nodes, not of a whole island
            times[f"{event['name']} (node {event['args']['node']})"] += event["dur"]
    total = sum(times.values()) or 1
    return ", ".join(f"{name} {100 * time / total:.0f}%" for name, time in times.most_common(3)) or "no steps in the trace"


def measure(path, ours, theirs, arguments):
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        extents = prepare(path, folder)
        taken = {ours: [], theirs: []}
        for round_ in range(arguments.rounds):
            for side in (ours, theirs) if round_ % 2 == 0 else (theirs, ours):
                taken[side].append(side.measure(folder, arguments.threads, arguments.runs)["median_ms"])
        mine, other = (statistics.median(taken[side]) for side in (ours, theirs))
        result = {"model": f"{path.parent.name}/{path.stem}", "inputs": extents, "ours_ms": mine, "theirs_ms": other, "ratio": mine / other,
                  "difference": ours.difference(folder)}
        if result["ratio"] > BEHIND:
            result["slowest"] = slowest(ours, folder, arguments.threads)
        return result


def run(root, ours, theirs, arguments):
    results, failed = [], []
    if not any(root.rglob("*.onnx")):
        raise SystemExit(f"bench: there is no .onnx file in {root}; scripts/benchmark/unseen_models.sh collects some")
    print(f"{'model':<58}{'ours ms':>10}{'theirs':>10}{'ratio':>7}{'error':>10}")
    for path in sorted(root.rglob("*.onnx")):
        if arguments.names and not any(name in str(path) for name in arguments.names):
            continue
        try:
            result = measure(path, ours, theirs, arguments)
        except (Exception, SystemExit) as problem:  # one model must not end the table
            failed.append(f"{path.parent.name}/{path.name}: {str(problem).splitlines()[0][:160] if str(problem) else type(problem).__name__}")
            continue
        results.append(result)
        same = "" if result["difference"] <= SAME else "  DIFFERS"
        print(f"{result['model'][-57:]:<58}{result['ours_ms']:10.3f}{result['theirs_ms']:10.3f}{result['ratio']:7.2f}{result['difference']:10.1e}{same}", flush=True)
        if "slowest" in result:
            print(f"    slowest: {result['slowest']}")
    if results:
        mean = math.exp(statistics.mean(math.log(r["ratio"]) for r in results))
        behind = sum(r["ratio"] > BEHIND for r in results)
        print(f"{len(results)} models, geometric mean {mean:.3f}, {behind} above {BEHIND}, {sum(r['difference'] > SAME for r in results)} with different outputs")
    for line in failed:
        print(f"not run: {line}", file=sys.stderr)
    return {"unseen": results, "failed": failed}
