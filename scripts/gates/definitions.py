#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each function is defined in the unit that declares it.

    scripts/gates/definitions.py [--root DIR]

A free function that X.h declares is defined in X.cpp or in X.h, even if there is no X.cpp. EXCEPTIONS names the headers that list functions
of several sources, such as tables of rules; one of them that has no such function any more is a violation too. The header of a class that
is too long for one file names the other files in which its member functions are defined.
Exit status: 0 if there is no violation, 1 if there is one, 77 if universal-ctags is missing.
"""
import argparse
import collections
import pathlib
import shutil
import subprocess
import sys

PARTS = ("api", "backends", "cli", "conformance", "loader", "onnx")
TREE = pathlib.Path(__file__).resolve().parents[2]
# Headers that list functions of several sources. One more function, or one more source, is a line in the header.
EXCEPTIONS = {
    "api/python/src/core.h",  # one function for each file that adds classes to the module
    "backends/cuda/testing/standin/hooks.h",  # what the stand-ins for other libraries call
    "backends/gpu/ops/table.h",  # the rows of each family of operators
    "conformance/cases/network_case.h",  # the hand-written graphs of each family
    "conformance/checks/group.h",  # the cases of each group
    "conformance/report/write.h",  # the formats of a report
    "loader/ops/infer/rules.h",  # the rules of each family of operators, and those that families share
    "loader/ops/upgrade/upgrades.h",  # the functions in upgrade.cpp's table, by source
    "loader/passes/passes.h",  # the passes over a model, in the order in which they run
}


def sources(root: pathlib.Path) -> list[str]:
    try:
        out = subprocess.run(["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"], check=True,
                             capture_output=True, text=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        out = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    return [name for name in out if name.startswith(PARTS) and name.endswith((".h", ".cpp")) and (root / name).is_file()]


def tags(root: pathlib.Path, files: list[str]):
    """(kind, scope, name, file, whether a class is its scope) of each prototype and function outside of unnamed namespaces and functions."""
    out = subprocess.run(["ctags", "-f", "-", "--language-force=C++", "--c++-kinds=pf", "--fields=Ks", "-L", "-"], cwd=root, check=True,
                         input="\n".join(files), capture_output=True, text=True).stdout
    for line in out.splitlines():
        if line.startswith("!"):
            continue
        name, file, *fields = line.split("\t")
        scopes = [field.partition(":")[::2] for field in fields if field.startswith(("namespace:", "class:", "struct:"))]
        kind = "prototype" if "prototype" in fields else "function" if "function" in fields else None
        if scopes and kind is not None and "__anon" not in scopes[0][1]:
            yield kind, scopes[0][1], name, file, scopes[0][0] != "namespace"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=TREE)
    root = parser.parse_args(arguments).root
    ctags = shutil.which("ctags")
    if ctags is None or "Universal" not in subprocess.run([ctags, "--version"], capture_output=True, text=True, check=False).stdout:
        print("skipped: universal-ctags is missing; scripts/setup.sh installs it", file=sys.stderr)
        return 77
    files = sources(root)
    if not files:
        print(f"definitions: {root} has no source")
        return 1
    declared = collections.defaultdict(set)
    defined = collections.defaultdict(set)
    members = set()
    for kind, scope, name, file, is_member in tags(root, files):
        if kind == "prototype" and file.endswith(".h"):
            declared[scope, name].add(file)
            if is_member:
                members.add((scope, name))
        elif kind == "function" and file.endswith(".cpp"):
            defined[scope, name].add(file)
    known = set(files)
    excused = set()
    findings = checked = 0
    for (scope, name), headers in sorted(declared.items()):
        for header in sorted(headers):
            own = header[:-len("h")] + "cpp"
            there = {file for file in defined[scope, name] if file.split("/")[0] == header.split("/")[0]}
            if not there:
                continue
            checked += 1
            if own in there:
                continue
            if header in EXCEPTIONS:
                excused.add(header)
                continue
            is_member = (scope, name) in members
            if is_member:
                text = (root / header).read_text(encoding="utf-8")
                if all(pathlib.PurePath(file).name in text for file in there):
                    continue
            remedy = "name that file in the header" if is_member else "declare it in the header of that file"
            print(f"{header}: {scope}::{name} is defined in {', '.join(sorted(there))}: {remedy}")
            findings += 1
    # Another tree than the gate's own need not have all of the headers.
    for header in sorted(EXCEPTIONS - excused):
        if header in known or root.resolve() == TREE:
            print(f"{header}: each of its functions is defined in its own unit: delete it from EXCEPTIONS in scripts/gates/definitions.py")
            findings += 1
    print(f"definitions: {checked} functions checked" + (f", findings: {findings}" if findings else ", no finding"))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
