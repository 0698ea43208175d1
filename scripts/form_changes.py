#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how the descriptions of operators in the installed onnx package changed from form to form, for the forms that reach backends: the
newest form of each operator, and the older ones after the last rewrite in loader/ops/upgrade/upgrade.cpp.

Schemas state types, inputs and attributes; only the descriptions state allowed values, shapes and changes of meaning. Each such change
belongs in the table in loader/view/form_limits.cpp; a form with a row there is marked "limit" in the output. Read the output after an update
of onnx.

Usage: $BACKPLANE_DATA/venv/bin/python scripts/form_changes.py [OPERATOR...]
"""
import collections
import difflib
import pathlib
import re
import sys

import onnx

LOADER = pathlib.Path(__file__).resolve().parent.parent / "loader"
ML = {'""': "", "kMl": "ai.onnx.ml", '"ai.onnx.ml"': "ai.onnx.ml"}


def rows(path):
    """(domain, operator, version) → function, for the rows of a table such as {"", "Pad", 19, does_not_wrap}."""
    found = re.findall(r'\{(""|kMl|"ai\.onnx\.ml"), "(\w+)", (\d+), ([\w<>-]+)[,}]', (LOADER / path).read_text())
    return {(ML[domain], op, int(version)): function for domain, op, version, function in found}


def words(schema):
    """The texts of a form by what they describe, as lists of words."""
    texts = {"": schema.doc or ""}
    for kind, formals in (("input", schema.inputs), ("output", schema.outputs)):
        texts |= {f"{kind} {one.name}": f"[{one.option.name} {one.type_str}] {one.description}" for one in formals}
    texts |= {f"attribute {name}": one.description for name, one in schema.attributes.items()}
    return {what: text.split() for what, text in texts.items()}


def changes(older, newer):
    """The words that differ, by what they describe. Differences of letter case and punctuation are ignored."""
    plain = lambda part: re.sub(r"[^a-z0-9<>=+-]", "", " ".join(part).lower())
    before, after = words(older), words(newer)
    for what in dict.fromkeys([*before, *after]):
        old, new = before.get(what, []), after.get(what, [])
        for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag != "equal" and plain(old[i1:i2]) != plain(new[j1:j2]):
                yield what, " ".join(old[i1:i2]), " ".join(new[j1:j2])


def main():
    upgrades, limits = rows("ops/upgrade/upgrade.cpp"), rows("view/form_limits.cpp")
    forms = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        forms[schema.domain, schema.name].append(schema)
    for key, chain in sorted(forms.items()):
        if sys.argv[1:] and key[1] not in sys.argv[1:]:
            continue
        chain.sort(key=lambda schema: schema.since_version, reverse=True)
        for newer, older in zip(chain, chain[1:]):
            step = (*key, newer.since_version)
            if upgrades.get(step, "unchanged") != "unchanged":
                break  # nodes in forms before a rewrite never reach a backend
            found = list(changes(older, newer))
            mark = f", limit {limits[step]}" if step in limits else ""
            if found:
                print(f"{key[0] or 'ai.onnx'} {key[1]} {older.since_version} → {newer.since_version}{mark}")
            for what, old, new in found:
                print(f"    {what}: '{old}' became '{new}'")


if __name__ == "__main__":
    main()
