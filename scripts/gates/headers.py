#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every header compiles alone: it includes what it uses.

    scripts/gates/headers.py BUILD [HEADER…]

BUILD is a build folder that was configured and built (headers that the build generates must exist). A header is compiled with the
flags of the source that is nearest to it. Exit status: 0 if all compile, 1 if one does not, 2 for wrong usage.
"""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys

import compile_database


def complaints(header: str, flags: list[str]) -> str:
    """What the compiler says of a source with nothing but the header."""
    done = subprocess.run([*flags, "-fsyntax-only", "-x", "c++", "-"], input=f'#include "{compile_database.ROOT / header}"\n', capture_output=True,
                          text=True, check=False)
    return "" if done.returncode == 0 else done.stderr


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Checks that every header compiles alone.")
    parser.add_argument("build", type=pathlib.Path, help="a build folder")
    parser.add_argument("headers", nargs="*", help="these headers; without them all of the tree")
    options = parser.parse_args(arguments)
    if not (options.build / "compile_commands.json").is_file():
        parser.error(f"{options.build} has no compile_commands.json: configure it with cmake --preset dev")
    sources = compile_database.read_sources(options.build)
    headers = options.headers or compile_database.list_files((".h", ".hpp"))
    if not sources or not headers:
        parser.error("there is no source or no header to look at: configure with cmake --preset dev")
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = {header: pool.submit(complaints, header, sources[compile_database.nearest(header, sources)])
                   for header in headers}
        for header, result in results.items():
            if text := result.result():
                print(f"{header} does not compile alone:\n{text}", file=sys.stderr)
                bad += 1
    print(f"headers: {len(headers)} compiled alone, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
