#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy, with the tree's .clang-tidy, over changed sources or over all.

    scripts/gates/tidy.py BUILD [--checks CHECKS] [--all | FILE…]

BUILD is a build folder that was configured and built. Without FILE it checks changed sources: those of uncommitted changes, of the last
commit, and of commits that are not on origin's main; at most LIMIT of them, and it prints how many are left. For a header it checks the
nearest source. --all checks every source. Exit status: 0 if there is no finding, 1 if there is one, 2 for wrong usage, 77 without clang-tidy.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import compile_database
from compile_database import ROOT

LIMIT = 12  # changed sources that are checked, so that a test run stays short; scripts/gates.sh passes --all
FINDING = re.compile(r"^(.+?):\d+:\d+: (?:warning|error): .*$", re.MULTILINE)


def find_tool() -> pathlib.Path:
    """The path of the clang-tidy that setup.sh installs: the release that .clang-tidy was written for. Older ones check system headers too,
    and take five times as long."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return pathlib.Path(os.environ.get("BACKPLANE_DATA") or cache / "backplane") / "tools/bin/clang-tidy"


def git(*words: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout.split("\n") if done.returncode == 0 else []


def changed_files() -> list[str]:
    """The changed files: those of uncommitted changes, then those of commits that are not on origin's main and of the last commit."""
    names = git("diff", "--name-only", "HEAD") + git("ls-files", "--others", "--exclude-standard")
    names += git("diff", "--name-only", "origin/main...HEAD") + git("diff", "--name-only", "HEAD~1")
    return list(dict.fromkeys(name for name in names if name))


def write_database(folder: pathlib.Path, sources: dict[str, list[str]]) -> None:
    """Writes a compile database for Clang, with flags by source. Compiler warnings are off, because builds report them."""
    entries = [{"directory": str(ROOT), "file": str(ROOT / name), "arguments": ["clang++", *flags[1:], "-w", "-c", str(ROOT / name)]}
               for name, flags in sources.items()]
    (folder / "compile_commands.json").write_text(json.dumps(entries), encoding="utf-8")


def run_tidy(tool: pathlib.Path, database: str, source: str, checks: str) -> str:
    words = [tool, "-p", database, "--quiet", *([f"--checks={checks}"] if checks else [])]
    if source.startswith(os.pardir):  # outside the tree, where clang-tidy would not find the tree's .clang-tidy
        words.append(f"--config-file={ROOT / '.clang-tidy'}")
    done = subprocess.run([*words, str(ROOT / source)], capture_output=True, text=True, check=False)
    if done.returncode and not FINDING.search(done.stdout):
        return f"{source}:1:1: error: clang-tidy ends with {done.returncode}: {done.stderr.strip()[-300:]!r}"
    return done.stdout


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Runs clang-tidy over changed sources.")
    parser.add_argument("build", type=pathlib.Path, help="a build folder")
    parser.add_argument("--all", action="store_true", help="every source")
    parser.add_argument("--checks", default="", help="checks instead of those of .clang-tidy, in clang-tidy's syntax")
    parser.add_argument("files", nargs="*", help="these sources or headers")
    options = parser.parse_intermixed_args(arguments)
    tool = find_tool()
    if not tool.is_file():
        print(f"skipped: {tool} is missing; scripts/setup.sh installs it")
        return 77
    if not (options.build / "compile_commands.json").is_file():
        parser.error(f"{options.build} has no compile_commands.json: configure it with cmake --preset dev")
    sources = compile_database.read_sources(options.build)
    if not sources:
        parser.error(f"{options.build}/compile_commands.json has no source of this tree: configure it with cmake --preset dev")
    if not options.all and not options.files and not git("rev-parse", "--verify", "HEAD~1"):
        print("skipped: there is no history to compare with")
        return 77
    changed = [os.path.relpath(name, ROOT) for name in options.files] or changed_files()
    for name in options.files:  # a file may not be built in this build folder
        if name.endswith(".cpp"):
            sources.setdefault(os.path.relpath(name, ROOT), sources[compile_database.nearest(name, sources)])
    named = [name if name in sources else compile_database.nearest(name, sources)
             for name in changed if name.endswith((".cpp", ".h", ".hpp"))]
    chosen = sorted(sources) if options.all else list(dict.fromkeys(named))
    checked = chosen if options.all or options.files else chosen[:LIMIT]
    findings = {}  # line: its text, once for each header
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        write_database(pathlib.Path(folder), sources)
        for done, text in enumerate(pool.map(lambda name: run_tidy(tool, folder, name, options.checks), checked), 1):
            for finding in FINDING.finditer(text):
                if finding.group() not in findings:
                    findings[finding.group()] = True
                    print(finding.group().replace(f"{ROOT}/", ""), flush=True)
            if options.all and done % 25 == 0:
                print(f"tidy: {done} of {len(checked)}", flush=True)
    rest = f"; {len(chosen) - len(checked)} more changed: scripts/gates.sh checks all" if len(checked) < len(chosen) else ""
    print(f"tidy: {len(checked)} sources, {len(findings)} findings{rest}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
