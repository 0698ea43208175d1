#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the share of each folder's lines that the tests execute.

    scripts/gates/coverage.py BUILD [FLOORS]

BUILD is a build folder of the preset asan whose tests have run. FLOORS (scripts/gates/coverage.txt) has lines 'FOLDER PERCENT', and
'other PERCENT' for folders without one: a folder below its floor is reported. Tests themselves are not counted. Exit status: 0 if no folder
is below its floor, 1 if one is or if FLOORS names a folder without lines, 2 for wrong usage, 77 without llvm-cov.
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

from compile_database import ROOT

TEST = re.compile(r"_(test|bench|fuzz)\.\w+$|(^|/)testing/")


def read_lines(build: pathlib.Path) -> dict[str, tuple[int, int]]:
    """The numbers of lines and of executed lines of each file, by its path below the root."""
    profiles = list((build / "profiles").glob("*.profraw"))
    if not profiles:
        raise SystemExit(f"coverage: {build}/profiles has no .profraw files: run the tests of the preset asan first: scripts/gates.sh asan")
    merged = build / "profiles" / "all.profdata"
    subprocess.run(["llvm-profdata", "merge", "-sparse", "-o", str(merged), *map(str, profiles)], check=True)
    objects = [path for folder in ("bin", "lib", "lib/backplane", "tests") for path in (build / folder).iterdir()
               if path.is_file() and not path.is_symlink() and os.access(path, os.X_OK) and path.open("rb").read(4) == b"\x7fELF"]
    words = ["llvm-cov", "export", "-summary-only", f"-instr-profile={merged}", str(objects[0])]
    done = subprocess.run([*words, *(f"-object={path}" for path in objects[1:])], capture_output=True, text=True, check=True)
    lines = {}
    for file in json.loads(done.stdout)["data"][0]["files"]:
        name = os.path.relpath(file["filename"], ROOT)
        if not name.startswith((os.pardir, "build")) and not TEST.search(name):
            lines[name] = file["summary"]["lines"]["count"], file["summary"]["lines"]["covered"]
    return lines


def read_floors(path: pathlib.Path) -> dict[str, float]:
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {folder: float(percent) for folder, percent in lines}


def report(lines: dict[str, tuple[int, int]], floors: dict[str, float], path: pathlib.Path) -> int:
    """Prints each folder's share of executed lines. Returns the number of findings."""
    folders = collections.defaultdict(lambda: [0, 0])
    for name, (count, covered) in lines.items():
        for folder in (os.path.dirname(name), "all"):
            folders[folder][0] += count
            folders[folder][1] += covered
    below = 0
    for folder, (count, covered) in sorted(folders.items()):
        if count == 0:
            continue
        percent, floor = 100 * covered / max(count, 1), floors.get(folder, floors["other"])
        below += percent < floor
        print(f"{percent:5.1f}% of {count:6} lines  {folder}" + (f"  BELOW ITS FLOOR of {floor}%" if percent < floor else ""))
    for folder in sorted(floors.keys() - folders.keys() - {"other"}):
        below += 1
        print(f"{folder} has a floor and no lines: correct the name in {path}")
    print(f"coverage: {100 * folders['all'][1] / max(folders['all'][0], 1):.1f}% of {folders['all'][0]} lines, {below} folders below their floors")
    return below


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Prints which share of each folder's lines the tests execute.")
    parser.add_argument("build", type=pathlib.Path, help="a build folder of the preset asan")
    parser.add_argument("floors", type=pathlib.Path, nargs="?", default=ROOT / "scripts/gates/coverage.txt", help="FOLDER PERCENT …")
    options = parser.parse_args(arguments)
    if not shutil.which("llvm-cov"):
        print("skipped: llvm-cov is missing; scripts/setup.sh --gates installs it")
        return 77
    floors = read_floors(options.floors)
    return 1 if report(read_lines(options.build), floors, options.floors) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
