#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts which operators the models of the test data use, as a table in Markdown: count_operators.py BACKPLANE [--top N]

BACKPLANE is the program of that name: `backplane info` counts the nodes after they are rewritten in the newest forms, including those in bodies.
ONNX's own test cases, of one operator each, are left out.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess

FOLDERS = ("light", "models", "exports", "ppocr", "magika", "sentences")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backplane")
    parser.add_argument("--top", type=int, default=24, help="how many operators the table has (24)")
    options = parser.parse_args()
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    data = pathlib.Path(os.environ.get("BACKPLANE_DATA") or cache + "/backplane")
    found = sorted(path for folder in FOLDERS for path in (data / folder).rglob("*.onnx"))
    if not found:
        raise SystemExit(f"count_operators.py: there is no model in {data}: scripts/setup.sh makes them")
    models, nodes = collections.Counter(), collections.Counter()
    for path in found:
        info = json.loads(subprocess.run([options.backplane, "info", path, "--json"], check=True, stdout=subprocess.PIPE).stdout)
        models.update(info["operators"].keys())
        nodes.update(info["operators"])
    print(f"| operator | models, of {len(found)} | nodes, of {nodes.total():,} |\n|---|---|---|")
    order = sorted(nodes, key=lambda name: (-models[name], -nodes[name], name))
    for name in order[: options.top]:
        print(f"| `{name}` | {models[name]} | {nodes[name]:,} |")
    rest = order[options.top :]
    print(f"| {len(rest)} others | | {sum(nodes[name] for name in rest):,} |")


if __name__ == "__main__":
    main()
