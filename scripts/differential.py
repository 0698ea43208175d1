#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a device with ONNX Runtime, or where that lacks the operator with onnx.reference, on random nodes.

    $BACKPLANE_DATA/venv/bin/python scripts/differential.py --conform build/dev/bin/backplane-conform [--device cpu] [--count 20000]

Each case is a model of one node (differential_ops.py draws it) in a folder as ONNX's own test data has them; backplane-conform runs them
and compares by its own rule, ONNX's 1e-3 relative and 1e-7 absolute, exact for integers. A case that differs is shown to the other
reference too: only what differs from both counts as a disagreement, the rest is listed as "the references differ". The same seed
draws the same cases. Exit status: 0 if all agree, 1 if some do not, 2 for wrong usage.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

import numpy as np
import onnx
from onnx import helper, numpy_helper

import differential_ops as ops

BATCH = 1000
OPSETS, ML_OPSET, IR = (23, 21, 17), 4, 10  # those that onnxruntime has kernels for


def make_model(node, opset):
    if not node.domain and not onnx.defs.has(node.op, opset):
        opset = onnx.defs.get_schema(node.op).since_version
    names, infos, initializers = [], [], []
    for i, value in enumerate(node.inputs):
        names.append("" if value is None else f"x{i}")
        if value is None:
            continue
        if i in node.constants:
            initializers.append(numpy_helper.from_array(np.asarray(value), f"x{i}"))
        else:
            infos.append(helper.make_tensor_value_info(f"x{i}", dtype_of(value), list(np.shape(value))))
    while names and not names[-1]:
        names.pop()
    outputs = [f"y{i}" for i in range(node.outputs)]
    made = helper.make_node(node.op, names, outputs, domain=node.domain, **node.attributes)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(ops.ML, ML_OPSET)]
    # Without declared types the outputs are what inference says.
    graph = helper.make_graph([made], "g", infos, [onnx.ValueInfoProto(name=o) for o in outputs], initializers)
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR)


def dtype_of(value):
    value = np.asarray(value)
    return onnx.TensorProto.STRING if value.dtype == object else helper.np_dtype_to_tensor_dtype(value.dtype)


def with_types(model, results):
    """The model with its outputs' types as the results have them, extents left open."""
    typed = onnx.ModelProto()
    typed.CopyFrom(model)
    for info, value in zip(typed.graph.output, results):
        info.CopyFrom(helper.make_tensor_value_info(info.name, dtype_of(value), [None] * np.ndim(value)))
    return typed


def by_onnxruntime(model, feeds):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


# Operators whose result is float whatever they are given: onnx.reference computes in the type of the input.
FLOAT_RESULT = {"LinearRegressor", "SVMRegressor", "TreeEnsembleRegressor"}


def as_float(model):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for info in copy.graph.input:
        info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return copy


def by_onnx_reference(model, feeds):
    from onnx.reference import ReferenceEvaluator

    if model.graph.node[0].op_type in FLOAT_RESULT:
        model, feeds = as_float(model), {name: value.astype(np.float32) for name, value in feeds.items()}
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, feeds)


REFERENCES = {"onnxruntime": by_onnxruntime, "onnx.reference": by_onnx_reference}


def as_array(value):
    value = np.asarray(value)
    return value.astype(object) if value.dtype.kind in "US" else value


def write_case(folder, model, node, results):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(with_types(model, results), folder / "model.onnx")
    given = [(i, v) for i, v in enumerate(node.inputs) if v is not None and i not in node.constants]
    for k, (i, value) in enumerate(given):
        (data / f"input_{k}.pb").write_bytes(numpy_helper.from_array(np.asarray(value), f"x{i}").SerializeToString())
    for k, value in enumerate(results):
        (data / f"output_{k}.pb").write_bytes(numpy_helper.from_array(value, f"y{k}").SerializeToString())


def operators():
    return [(generator, op) for generator, names in ops.FAMILIES for op in names.split()]


def draw(seed, number):
    """Case `number`: operators take turns."""
    table = operators()
    generator, op = table[number % len(table)]
    rng = np.random.default_rng([seed, number])
    node = generator(ops.Draw(op, rng))
    node.inputs = [None if value is None else np.asarray(value) for value in node.inputs]
    return node


def case_name(number, op):
    return f"{number:06d}_{op}"


def make_case(seed, number, folder, references):
    """Writes a case with the first reference that computes it; answers its name, or why there is none."""
    node = draw(seed, number)
    feeds = {f"x{i}": v for i, v in enumerate(node.inputs) if v is not None and i not in node.constants}
    problems = []
    for reference, opset in [(r, o) for r in references for o in OPSETS[: 2 if r == "onnxruntime" else 1]]:
        try:
            model = make_model(node, opset)
            results = [as_array(r) for r in REFERENCES[reference](model, feeds)]
            write_case(folder / case_name(number, node.op), model, node, results)
            return reference, node.op, ""
        except Exception as error:  # a reference may fail in any way it likes
            shutil.rmtree(folder / case_name(number, node.op), ignore_errors=True)
            problems.append(f"{reference}: {str(error).splitlines()[0][:160] if str(error) else type(error).__name__}")
    return "", node.op, "; ".join(problems)


GENERATOR_FAILED = 3


def write_cases(seed, numbers, folder, references, pipe):
    """The child's part of make_cases: a line for each case. Does not return."""
    complaints = os.dup(2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # onnxruntime logs there
    try:
        with os.fdopen(pipe, "w") as out:
            for number in numbers:
                print(json.dumps([number, *make_case(seed, number, folder, references)]), file=out, flush=True)
    except BaseException:
        os.dup2(complaints, 2)
        traceback.print_exc()
        os._exit(GENERATOR_FAILED)
    os._exit(0)


def make_cases(seed, numbers, folder, references):
    """make_case for all numbers, in children: a reference that crashes loses one case."""
    made, left = {}, list(numbers)
    while left:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            write_cases(seed, left, folder, references, write)
        os.close(write)
        with os.fdopen(read) as lines:
            for line in lines:
                number, *answer = json.loads(line)
                made[number] = answer
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == GENERATOR_FAILED:
            sys.exit("differential: a generator of differential_ops.py failed")
        left = [n for n in left if n not in made]
        if left:
            op = operators()[left[0] % len(operators())][1]
            shutil.rmtree(folder / case_name(left[0], op), ignore_errors=True)
            made[left[0]] = ["", op, f"{references[0]} crashed"]
    return made


def run_device(arguments, folder):
    """State and reason by case name."""
    out = folder / "out"
    device = ["--plugin", arguments.plugin] if arguments.plugin else ["--device", arguments.device]
    done = subprocess.run([arguments.conform, "onnx", "--data", str(folder), "--out", str(out), "--json", *device], capture_output=True, text=True)
    if not (out / "journal.jsonl").exists():
        sys.exit(f"differential: {arguments.conform} wrote no journal: {done.stderr.strip()[-300:]}")
    results = [json.loads(line) for line in open(out / "journal.jsonl")]
    cases = sum(1 for _ in folder.iterdir()) - 1
    if len(results) != cases:
        sys.exit(f"differential: {arguments.conform} ran {len(results)} of {cases} cases: {done.stderr.strip()[-300:]}")
    return {r["case"]: (r["state"], r["reason"]) for r in results}


class Report:
    def __init__(self):
        self.counts = collections.defaultdict(collections.Counter)
        self.lines = collections.defaultdict(list)

    def add(self, op, state, line=""):
        self.counts[op][state] += 1
        if line:
            self.lines[op].append(f"  {state}: {line}")

    def show(self, seconds_of_device=None):
        states = ["agree", "differ", "references differ", "no reference"]
        total = collections.Counter()
        for op in sorted(self.counts):
            total += self.counts[op]
            if self.lines[op]:
                print(f"{op}: " + ", ".join(f"{self.counts[op][s]} {s}" for s in states if self.counts[op][s]))
                print("\n".join(self.lines[op][:8]))
        without = [op for op in self.counts if self.counts[op]["agree"] + self.counts[op]["differ"] + self.counts[op]["references differ"] == 0]
        compared = sum(total[s] for s in states[:3])
        print(f"{compared} cases of {len(self.counts) - len(without)} operators compared: " + ", ".join(f"{total[s]} {s}" for s in states))
        if without:
            print("never compared: " + " ".join(sorted(without)))
        return total["differ"]


def run_batch(arguments, numbers, report, folder):
    made = make_cases(arguments.seed, numbers, folder / "first", list(REFERENCES))
    answers = run_device(arguments, folder / "first")
    doubtful = {}
    for number, (reference, op, problem) in made.items():
        if not reference:
            report.add(op, "no reference", problem if arguments.verbose else "")
            continue
        state, reason = answers[case_name(number, op)]
        if state == "pass":
            report.add(op, "agree")
        else:
            doubtful[number] = (reference, op, reason)
    if not doubtful:
        return
    second = {}
    for reference in REFERENCES:
        numbers = [n for n, (first, _, _) in doubtful.items() if first != reference]
        second |= make_cases(arguments.seed, numbers, folder / "second", [reference])
    others = run_device(arguments, folder / "second") if any(r for r, _, _ in second.values()) else {}
    for number, (reference, op, reason) in doubtful.items():
        other = others.get(case_name(number, op), ("", ""))[0]
        line = f"case {number}: {reference}: {reason}"
        report.add(op, "references differ" if other == "pass" else "differ", line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conform", required=True, help="backplane-conform")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--plugin", help="the backend alone, instead of --device")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--filter", default="", help="only operators whose name matches this expression")
    parser.add_argument("--case", type=int, help="only this case; its folder is kept and named")
    parser.add_argument("--verbose", action="store_true", help="say why cases have no reference")
    arguments = parser.parse_args()
    numbers = [n for n in range(arguments.count) if re.search(arguments.filter, operators()[n % len(operators())][1])]
    if arguments.case is not None:
        numbers = [arguments.case]
    report = Report()
    for first in range(0, len(numbers), BATCH):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="differential-"))
        (folder / "first").mkdir()
        (folder / "second").mkdir()
        try:
            run_batch(arguments, numbers[first : first + BATCH], report, folder)
        finally:
            if arguments.case is None:
                shutil.rmtree(folder)
            else:
                print(f"kept in {folder}")
    sys.exit(1 if report.show() else 0)


if __name__ == "__main__":
    main()
