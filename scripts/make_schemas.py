#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes loader/ops/schema/schemas.txt: every form of every operator that the installed onnx package knows.

Usage: pip install onnx==1.23.2 && scripts/make_schemas.py
"""

import collections
import pathlib

import onnx
from onnx import defs

HEADER = """\
# Every form of every operator of onnx {version}, written by scripts/make_schemas.py. Facts only.
#
#   domain NAME NEWEST         the lines below are of this domain ("ai.onnx" is the empty one), whose newest version is NEWEST
#   op NAME SINCE IN OUT [deprecated] [function] [random]
#                              one form: from version SINCE on, IN and OUT are counts as MIN-MAX ("*": any number);
#                              function: it has a body of other operators; random: the same inputs may give other outputs
#   in NAME TYPE               an input; TYPE is a parameter or a tensor type. NAME? is optional, NAME* is variadic,
#   out NAME TYPE              NAME+ is variadic with a type for each. out: the same for outputs
#   type PARAMETER SET...      the types that it may be: element types of tensors, and kinds of containers
#   attr NAME TYPE [=DEFAULT]  an attribute with its default, if any; NAME! is required
"""

ATTRIBUTE_TYPES = {"TYPE_PROTO": "type", "TYPE_PROTOS": "types"}
# onnx marks functions as non-deterministic if their bodies contain an If or a Loop. These ones are deterministic nevertheless.
FORMULAS = {"AffineGrid", "BlackmanWindow", "DepthToSpace", "HammingWindow", "HannWindow", "Range", "SpaceToDepth"}
# Element types that the ABI does not have.
UNKNOWN_TYPES = {"float6e2m3", "float6e3m2"}
# Forms that no longer allow some types of the previous form. They keep these types here, because the loader rewrites models of older operator
# sets in the newest form.
NARROWED = {("ReduceLogSum", 28), ("ReduceLogSumExp", 28)}
CONTAINERS = {"seq": "sequence", "optional": "optional", "map": "map", "sparse_tensor": "sparse"}


def count(least, most):
    return f"{least}-{'*' if most == 2**31 - 1 else most}"


def type_set(strings):
    """Type strings as words of schemas.txt: tensor(float), seq(tensor(float)) → "float sequence", each word once, in order of appearance."""
    words = []
    for text in strings:
        head, _, rest = text.partition("(")
        if rest.strip("()").rpartition("(")[2] in UNKNOWN_TYPES:
            continue
        word = rest.rstrip(")") if head == "tensor" else CONTAINERS[head]
        if word not in words:
            words.append(word)
    return " ".join(words)


def formal(kind, one):
    option = one.option.name
    mark = {"Single": "", "Optional": "?", "Variadic": "*" if one.is_homogeneous else "+"}[option]
    type_name = one.type_str
    if "(" in type_name:  # tensor(int64)
        type_name = type_set([type_name])
    return f"{kind} {one.name}{mark} {type_name}"


def text_of(value):
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, float):
        return f"{value:.9g}"
    assert " " not in str(value) and "," not in str(value), value
    return str(value)


def attribute(one):
    kind = ATTRIBUTE_TYPES.get(one.type.name, one.type.name.lower())
    line = f"attr {one.name}{'!' if one.required else ''} {kind}"
    if one.default_value.type != onnx.AttributeProto.UNDEFINED:
        value = onnx.helper.get_attribute_value(one.default_value)
        assert kind in ("int", "float", "string", "ints", "floats", "strings"), f"no notation for a default {kind}"
        line += " =" + (",".join(map(text_of, value)) if isinstance(value, list) else text_of(value))
    return line


def allowed(schema):
    """For each type parameter, its type strings."""
    found = {one.type_param_str: list(one.allowed_type_strs) for one in schema.type_constraints}
    if (schema.name, schema.since_version) in NARROWED:
        for one in defs.get_schema(schema.name, schema.since_version - 1, schema.domain).type_constraints:
            found[one.type_param_str] += one.allowed_type_strs
    return found


def form(schema):
    words = ["op", schema.name, str(schema.since_version)]
    words += [count(schema.min_input, schema.max_input), count(schema.min_output, schema.max_output)]
    words += ["deprecated"] * schema.deprecated
    words += ["function"] * (schema.has_function or schema.has_context_dependent_function)
    words += ["random"] * (schema.non_deterministic and schema.name not in FORMULAS)
    lines = [" ".join(words)]
    lines += [formal("in", one) for one in schema.inputs]
    lines += [formal("out", one) for one in schema.outputs]
    lines += [f"type {parameter} {type_set(strings)}" for parameter, strings in allowed(schema).items()]
    lines += [attribute(one) for _, one in sorted(schema.attributes.items())]
    return lines


def main():
    domains = collections.defaultdict(list)
    for schema in defs.get_all_schemas_with_history():
        domains[schema.domain].append(schema)
    newest = {domain: versions[1] for domain, versions in defs.C.schema_version_map().items()}
    lines = [HEADER.format(version=onnx.__version__)]
    for domain, schemas in sorted(domains.items()):
        lines.append(f"domain {domain or 'ai.onnx'} {newest[domain]}")
        for schema in sorted(schemas, key=lambda s: (s.name, s.since_version)):
            lines += form(schema)
    target = pathlib.Path(__file__).resolve().parent.parent / "loader/ops/schema/schemas.txt"
    target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
