#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a device with ONNX Runtime, or where that lacks the operator with onnx.reference, on random nodes.

    $BACKPLANE_DATA/venv/bin/python scripts/differential.py --conform build/dev/bin/backplane-conform [--device cpu] [--count 20200]

Each case is a model of one node (differential_ops draws it) in a folder as ONNX's own test data has them; backplane-conform runs them
and compares by its own rule, ONNX's 1e-3 relative and 1e-7 absolute, exact for integers. A case that differs is shown to the other
reference too, and to onnx.reference in double: only what differs from all counts as a disagreement, the rest is listed as
"references differ". The same seed draws the same cases. Exit status: 0 if all agree, 1 if some do not, 2 for wrong usage.
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
            infos.append(helper.make_value_info(f"x{i}", type_of(value, np.shape(value))))
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


def type_of(value, extents):
    """The type of a tensor of these extents, of a dict (a map), or of a list (a sequence)."""
    if isinstance(value, list):
        return helper.make_sequence_type_proto(type_of(value[0], [None] * np.ndim(value[0])))
    if isinstance(value, dict):
        key, entry = next(iter(value.items()))
        key_type = onnx.TensorProto.STRING if isinstance(key, str) else onnx.TensorProto.INT64
        return helper.make_map_type_proto(key_type, helper.make_tensor_type_proto(dtype_of(entry), []))
    return helper.make_tensor_type_proto(dtype_of(value), list(extents))


def to_message(value, name):
    if isinstance(value, list):
        maps = isinstance(value[0], dict)
        message = onnx.SequenceProto(name=name, elem_type=onnx.SequenceProto.MAP if maps else onnx.SequenceProto.TENSOR)
        (message.map_values if maps else message.tensor_values).extend(to_message(v, "") for v in value)
        return message
    if isinstance(value, dict):
        message = onnx.MapProto(name=name)
        texts = isinstance(next(iter(value)), str)
        message.key_type = onnx.TensorProto.STRING if texts else onnx.TensorProto.INT64
        if texts:
            message.string_keys.extend(k.encode() for k in value)
        else:
            message.keys.extend(value)
        message.values.elem_type = onnx.SequenceProto.TENSOR
        message.values.tensor_values.extend(numpy_helper.from_array(as_array(v)) for v in value.values())
        return message
    return numpy_helper.from_array(value, name)


def with_types(model, results):
    """The model with its outputs' types as the results have them, extents left open."""
    typed = onnx.ModelProto()
    typed.CopyFrom(model)
    for info, value in zip(typed.graph.output, results):
        info.CopyFrom(helper.make_value_info(info.name, type_of(value, () if isinstance(value, list) else [None] * np.ndim(value))))
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


def with_inputs_as(model, change):
    """The model with its inputs' element types as `change` maps them."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for info in copy.graph.input:
        tensor = info.type.tensor_type
        tensor.elem_type = change(tensor.elem_type)
    return copy


def by_onnx_reference(model, feeds):
    from onnx.reference import ReferenceEvaluator

    if model.graph.node[0].op_type in FLOAT_RESULT:
        model, feeds = with_inputs_as(model, lambda _: onnx.TensorProto.FLOAT), {name: value.astype(np.float32) for name, value in feeds.items()}
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, feeds)


def by_onnx_reference_in_double(model, feeds):
    """What float32 would be without its rounding: where terms cancel, the references' own error is what differs."""
    if not any(value.dtype == np.float32 for value in feeds.values()) or model.graph.initializer:
        raise ValueError("no float inputs, or constants")
    double = with_inputs_as(model, lambda t: onnx.TensorProto.DOUBLE if t == onnx.TensorProto.FLOAT else t)
    results = by_onnx_reference(double, {n: v.astype(np.float64) if v.dtype == np.float32 else v for n, v in feeds.items()})
    return [np.asarray(r).astype(np.float32) if np.asarray(r).dtype == np.float64 else r for r in results]


REFERENCES = {"onnxruntime": by_onnxruntime, "onnx.reference": by_onnx_reference, "double": by_onnx_reference_in_double}
FIRST = ["onnxruntime", "onnx.reference"]


def as_array(value):
    """Arrays as they are written; containers stay."""
    if isinstance(value, dict):
        return {k: np.asarray(v, None if isinstance(v, (str, int)) else np.float32) for k, v in value.items()}
    if isinstance(value, list):
        return [as_array(v) for v in value]
    value = np.asarray(value)
    return value.astype(object) if value.dtype.kind in "US" else value


def plain(value):
    """As the references take it: a dict of Python's own numbers and texts."""
    return {k: v.item() for k, v in value.items()} if isinstance(value, dict) else value


def write_case(folder, model, node, results):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(with_types(model, results), folder / "model.onnx")
    given = [(i, v) for i, v in enumerate(node.inputs) if v is not None and i not in node.constants]
    for k, (i, value) in enumerate(given):
        (data / f"input_{k}.pb").write_bytes(to_message(value, f"x{i}").SerializeToString())
    for k, value in enumerate(results):
        (data / f"output_{k}.pb").write_bytes(to_message(value, f"y{k}").SerializeToString())


def operators():
    return [(generator, op) for generator, names in ops.FAMILIES for op in names.split()]


def draw(seed, number):
    """Case `number`: operators take turns."""
    table = operators()
    generator, op = table[number % len(table)]
    rng = np.random.default_rng([seed, number])
    node = generator(ops.Draw(op, rng))
    node.inputs = [None if value is None else as_array(value) for value in node.inputs]
    return node


def case_name(number, op):
    return f"{number:06d}_{op}"


def make_case(seed, number, folder, references):
    """Writes a case with the first reference that computes it; answers its name, or why there is none."""
    node = draw(seed, number)
    feeds = {f"x{i}": plain(v) for i, v in enumerate(node.inputs) if v is not None and i not in node.constants}
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
            sys.exit("differential: a generator of differential_ops failed")
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
    results = [record for record in map(json.loads, open(out / "journal.jsonl")) if "case" in record]
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
    made = make_cases(arguments.seed, numbers, folder / "first", FIRST)
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
    settled = set()
    for other in REFERENCES:
        left = [n for n, (first, _, _) in doubtful.items() if first != other and n not in settled]
        (folder / other).mkdir()
        made = make_cases(arguments.seed, left, folder / other, [other])
        if not any(reference for reference, _, _ in made.values()):
            continue
        answers = run_device(arguments, folder / other)
        settled |= {n for n, (_, op, _) in made.items() if answers.get(case_name(n, op), ("", ""))[0] == "pass"}
    for number, (reference, op, reason) in doubtful.items():
        report.add(op, "references differ" if number in settled else "differ", f"case {number}: {reference}: {reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conform", required=True, help="backplane-conform")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--plugin", help="the backend alone, instead of --device")
    parser.add_argument("--count", type=int, default=20200)
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
