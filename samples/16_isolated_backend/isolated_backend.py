#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a model on a backend that has a separate process, and kills that process during a run.

The model multiplies a matrix by weights n times, and n is an input: depending on n, a run takes a moment or hours.
"""
import os
import pathlib
import signal
import threading
import time

import backplane
import numpy
from onnx import TensorProto, helper

SIZE = 256


def make_model():
    """y = x * w * … * w, n times, in a Loop."""
    value = helper.make_tensor_value_info
    matrix = lambda name: value(name, TensorProto.FLOAT, [SIZE, SIZE])
    body = helper.make_graph(
        [helper.make_node("MatMul", ["before", "w"], ["after"]), helper.make_node("Identity", ["go_on"], ["still"])], "body",
        [value("i", TensorProto.INT64, []), value("go_on", TensorProto.BOOL, []), matrix("before")],
        [value("still", TensorProto.BOOL, []), matrix("after")])
    graph = helper.make_graph([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], "powers",
                              [value("n", TensorProto.INT64, []), matrix("x"), matrix("w")], [matrix("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def backend_process():
    """The child of this process that runs the backend, as (process id, processor seconds used)."""
    for file in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = file.read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:  # it has ended
            continue
        state, parent, *rest = fields.split()
        if name.startswith("backplane-isol") and int(parent) == os.getpid() and state != "Z":
            return int(file.parent.name), int(rest[9]) / os.sysconf("SC_CLK_TCK")
    raise RuntimeError("no process runs the backend")


def kill_when_busy():
    """Kills the backend's process once it has computed for a while."""
    process, start = backend_process()
    while backend_process()[1] < start + 0.2:
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)


def main():
    env = backplane.Environment(settings={"loader.isolate": "cpu"})  # or BACKPLANE_ISOLATE, or the backend's manifest
    model = env.load(make_model())
    x = numpy.random.default_rng(1).random((SIZE, SIZE), numpy.float32)
    w = numpy.roll(numpy.eye(SIZE, dtype=numpy.float32), 1, axis=1)  # moves columns to the right, so results are exact
    inputs = {"x": x, "w": w}

    def is_right(session):
        return numpy.array_equal(session.run({"n": 10, **inputs})["y"], numpy.roll(x, 10, axis=1))

    session = model.compile(devices="cpu", fallback="forbid")
    first, _ = backend_process()
    print("first run:", "right" if is_right(session) else "wrong")

    killer = threading.Thread(target=kill_when_busy)
    killer.start()
    try:
        session.run({"n": 1_000_000_000, **inputs}, timeout=60)
    except backplane.DeviceLost as error:  # a LostError: create the object again
        print(f"killed: {error.status}: {error}")
    killer.join()
    try:
        is_right(session)
    except backplane.DeviceLost as error:
        print("the old session:", error.status)

    session = model.compile(devices="cpu", fallback="forbid")  # starts the backend again
    second, _ = backend_process()
    print("next run:", "right" if is_right(session) else "wrong", "in", "a new process" if second != first else "the same process")


if __name__ == "__main__":
    main()
