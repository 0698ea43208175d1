#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every header compiles on its own: it includes what it uses.

    scripts/gates/headers.py BUILD [HEADER…]

BUILD is a build folder that was configured and built (headers that the build generates must exist). A header is compiled with the
flags of the nearest source, if possible of those that include it. Without HEADER, a header that its own source includes first is skipped, because
scripts/gates/tidy.py compiles that source without precompiled headers. Exit status: 0 if all compile, 1 if one does not, 2 for wrong usage.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

import compile_database


def complaints(header: str, flags: list[str]) -> str:
    """The compiler's diagnostics for a source with nothing but the header."""
    done = subprocess.run([*flags, "-fsyntax-only", "-x", "c++", "-"], input=f'#include "{compile_database.ROOT / header}"\n', capture_output=True,
                          text=True, check=False)
    return "" if done.returncode == 0 else done.stderr


def is_first_in_its_source(header: str) -> bool:
    """Whether the source of the same name, in the same folder, includes the header first."""
    source = compile_database.ROOT / (os.path.splitext(header)[0] + ".cpp")
    first = re.search(r'^#include [<"](.+)[>"]', source.read_text(encoding="utf-8"), re.MULTILINE) if source.is_file() else None
    return first is not None and ("/" + header).endswith("/" + first.group(1))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Checks that every header compiles alone.")
    parser.add_argument("build", type=pathlib.Path, help="a build folder")
    parser.add_argument("headers", nargs="*", help="these headers; default: all of the tree")
    options = parser.parse_args(arguments)
    if not (options.build / "compile_commands.json").is_file():
        parser.error(f"{options.build} has no compile_commands.json: configure it with cmake --preset dev")
    sources = compile_database.read_sources(options.build)
    headers = options.headers or compile_database.list_files((".h", ".hpp"))
    if not sources or not headers:
        parser.error("there is no source or no header to look at: configure with cmake --preset dev")
    first = [] if options.headers else [header for header in headers if is_first_in_its_source(header)]
    headers = sorted(set(headers) - set(first))
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        includers = compile_database.read_includers(options.build, sources)
        results = {header: pool.submit(complaints, header, sources[compile_database.nearest(header, includers.get(header) or sources)])
                   for header in headers}
        for header, result in results.items():
            if text := result.result():
                print(f"{header} does not compile alone:\n{text}", file=sys.stderr)
                bad += 1
    print(f"headers: {len(headers)} compiled alone, {bad} failed" + (f"; {len(first)} are first in their sources" if first else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
