#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every operator in every older form on a device: the loader upgrades it, and the result must be that of the old form.

    $BACKPLANE_DATA/venv/bin/python scripts/upgrades.py --conform build/dev/bin/backplane-conform [--device cpu]

The forms are those of loader/ops/schema/schemas.txt, except the newest of each operator. A form without a case is a failure. Cases come from
upgrade_cases.py, which states their results. For other forms, differential_ops generates nodes until one is valid in the old form; the
expected result is then that of the same node in the newest form. If onnxruntime runs the old form itself, it must agree too, unless
ONNXRUNTIME_DIFFERS says why it does not. Exit status: 0 if every form has a case and all agree, 1 if not, 2 for wrong usage.
"""
import argparse
import collections
import dataclasses
import pathlib
import re
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper

import differential
import differential_ops as ops
import upgrade_cases

DRAWS, TRIES, SEED = 3, 200, 7
SCHEMAS = pathlib.Path(__file__).resolve().parent.parent / "loader/ops/schema/schemas.txt"
# Attributes of old forms on which no result depends, with a function that makes a value for a node.
IDLE = {"consumed_inputs": lambda node: [0] * len(node.inputs), "output_sequence": lambda node: 1}
# Old forms that onnxruntime runs differently, with the reason.
ONNXRUNTIME_DIFFERS = {
    ("Dropout", 7): "the mask of inference is not defined before opset 12: ours is all ones, onnxruntime's all zeros",
    ("Dropout", 10): "as above",
    ("Bernoulli", 15): "it runs ONNX's function body, which draws 1 with probability 1 - x",
}


def old_forms():
    """(domain, operator, form, the last opset in which it holds), for all forms but the newest."""
    forms, domain = collections.defaultdict(list), ""
    for line in SCHEMAS.read_text().splitlines():
        words = line.split()
        if words[:1] == ["domain"]:
            domain = "" if words[1] == "ai.onnx" else words[1]
        elif words[:1] == ["op"]:
            forms[domain, words[1]].append(int(words[2]))
    return [(*key, form, after - 1) for key, versions in forms.items() for form, after in zip(versions, versions[1:])]


def accepts(schema, node):
    """Whether this form has the node's attributes, inputs and types."""
    given = [value is not None for value in node.inputs]
    if not set(node.attributes) <= set(schema.attributes) or not schema.min_input <= len(given) <= schema.max_input:
        return False
    types = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    bound = {}
    for i, value in enumerate(node.inputs):
        formal = schema.inputs[min(i, len(schema.inputs) - 1)]
        if value is None:
            if formal.option == onnx.defs.OpSchema.FormalParameterOption.Single:
                return False
            continue
        if isinstance(value, (list, dict)):
            continue
        name = helper.tensor_dtype_to_string(differential.dtype_of(value)).split(".")[1].lower()
        text = f"tensor({name})"
        if text not in types.get(formal.type_str, {formal.type_str}):
            return False
        if formal.is_homogeneous and bound.setdefault(formal.type_str, text) != text:
            return False
    return True


def drawn(domain, op, schema):
    """Some nodes that are valid in this form, as cases."""
    generators = {name: generator for generator, names in ops.FAMILIES for name in names.split()}
    if op not in generators:
        return
    for attempt in range(TRIES):
        node = generators[op](ops.Draw(op, np.random.default_rng([SEED, schema.since_version, attempt])))
        if node.domain != domain:
            return
        node.attributes = {name: value for name, value in node.attributes.items() if name in schema.attributes}
        while node.inputs and node.inputs[-1] is None:
            node.inputs.pop()
        node.inputs = [None if value is None else differential.as_array(value) for value in node.inputs]
        if not accepts(schema, node):
            continue
        idle = {name: make(node) for name, make in IDLE.items() if name in schema.attributes}
        yield upgrade_cases.Case(op, (schema.since_version,), node.inputs, node, node.attributes | idle, node.outputs, domain, node.constants)


class NoMeaning(Exception):
    pass


def meaning(case, stated):
    """The case's result: stated arrays, or what the references compute for the node that states it. Raises NoMeaning if no reference computes a
    node or if, for a generated node (not `stated`), the references differ."""
    if isinstance(case.result, list):
        return [differential.as_array(value) for value in case.result]
    node = case.result or ops.Node(case.op, case.inputs, case.attributes, case.outputs, case.domain, case.constants)
    feeds = {f"x{i}": differential.plain(v) for i, v in enumerate(node.inputs) if v is not None and i not in node.constants}
    answers = {}
    for reference, opset in (("onnxruntime", 23), ("onnxruntime", 21), ("onnxruntime", 17), ("onnx.reference", 23)):
        if reference in answers:
            continue
        try:
            results = differential.REFERENCES[reference](differential.make_model(node, opset), feeds)
            answers[reference] = [differential.as_array(r) for r in results]
        except Exception as error:  # a reference may raise any exception
            problem = error
    first, *others = answers.values() or [None]
    if first is None:
        raise NoMeaning(f"no reference computes it: {problem}")
    if not stated and not all(agrees(first, other) for other in others):
        raise NoMeaning("the references differ")
    return first


def old_model(case, opset):
    node = ops.Node(case.op, case.inputs, case.attributes, case.outputs, case.domain, case.constants)
    model = differential.make_model(dataclasses.replace(node, attributes={}) if case.before else node, 23)
    if case.before:
        read = [name for made in case.before for name in made.output]
        last = helper.make_node(case.op, read, [f"y{i}" for i in range(case.outputs)], **case.attributes)
        del model.graph.node[:]
        model.graph.node.extend([*case.before, last])
    domains = {"": opset, ops.ML: 1} if not case.domain else {"": 7, case.domain: opset}
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*one) for one in domains.items())
    return model


def agrees(ours, theirs):
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(agrees, ours, theirs))
    if isinstance(ours, dict) or ours.dtype == object:
        return np.array_equal(ours, theirs)
    return ours.shape == np.shape(theirs) and np.allclose(ours, theirs, 1e-3, 1e-6, equal_nan=True)


def write(form, opset, number, case, stated, folder):
    """Writes one case. Returns its name and whether onnxruntime's result for the old form "agrees" or "differs", or it "cannot" run it."""
    op = case.op
    name = f"{op}-{form}_{number}"
    model, results = old_model(case, opset), meaning(case, stated)
    node = ops.Node(op, case.inputs, case.attributes, case.outputs, case.domain, case.constants)
    differential.write_case(folder / name, model, node, results)
    feeds = {f"x{i}": differential.plain(v) for i, v in enumerate(case.inputs) if v is not None and i not in case.constants}
    try:
        theirs = differential.by_onnxruntime(differential.with_types(model, results), feeds)
    except Exception:  # it has kernels for most forms from opset 7 on
        return name, "cannot"
    return name, "agrees" if all(map(agrees, results, theirs)) else "differs"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conform", required=True, help="backplane-conform")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--filter", default="", help="only operators whose name matches this expression")
    parser.add_argument("--keep", type=pathlib.Path, help="write the cases to this new folder and keep it")
    arguments = parser.parse_args()
    arguments.plugin = None
    onnxruntime.set_default_logger_severity(4)
    given = collections.defaultdict(list)
    for case in upgrade_cases.CASES:
        for form in case.forms:
            given[case.domain, case.op, form].append(case)
    # Optional has no case of its own, because cases cannot hold its result: it is in front of the operators that read an optional.
    in_front = {node.op_type for case in upgrade_cases.CASES for node in case.before}
    with tempfile.TemporaryDirectory(prefix="upgrades-") as scratch:
        folder = arguments.keep or pathlib.Path(scratch) / "cases"
        folder.mkdir()
        problems, said = [], collections.Counter()
        forms = [form for form in old_forms() if re.search(arguments.filter, form[1])]
        for domain, op, form, opset in forms:
            schema = onnx.defs.get_schema(op, form, domain)
            written = 0
            stated = given.pop((domain, op, form), None)
            for case in stated or drawn(domain, op, schema):
                try:
                    name, answer = write(form, opset, written, case, bool(stated), folder)
                except NoMeaning as error:
                    if stated:
                        problems.append(f"{op}-{form}: {error}")
                    continue
                written += 1
                said[answer] += 1
                if answer == "differs" and (op, form) not in ONNXRUNTIME_DIFFERS:
                    problems.append(f"{name}: onnxruntime returns another result in opset {opset}")
                if written == DRAWS and not stated:
                    break
            if not written and op not in in_front:
                problems.append(f"{domain or 'ai.onnx'}.{op}-{form}: no case; add one to upgrade_cases.py")
        if not arguments.filter:
            problems += [f"{op}-{form} of upgrade_cases.py is no older form" for _, op, form in given]
        answers = differential.run_device(arguments, folder)
    problems += [f"{name}: {state}: {reason}" for name, (state, reason) in sorted(answers.items()) if state != "pass"]
    print("\n".join(problems))
    print(f"{len(answers)} cases of {len(forms)} older forms: {len(problems)} problems; onnxruntime runs {said['agrees'] + said['differs']} of them "
          f"in the old form, {said['agrees']} agree")
    return 1 if problems or not answers else 0


if __name__ == "__main__":
    sys.exit(main())
