#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy, with the tree's .clang-tidy, over changed sources or over all.

    scripts/gates/tidy.py BUILD [--checks CHECKS] [--all | FILE…]

BUILD is a build folder that was configured and built. Without FILE it checks changed sources: those of uncommitted changes, of the last
commit, and of commits that are not on origin's main; at most LIMIT of them, and it prints how many are left. For a header it checks the
nearest source, if possible of those that include it. --all checks every source; one that BUILD does not compile, such as a fuzzer, is checked
with the flags of the nearest one. A source that passed before is not checked again until it, a file that it includes, its flags or
.clang-tidy change; $BACKPLANE_DATA/tidy_passed.txt has a fingerprint of each. Exit status: 0 if there is no finding, 1 if there is one, 2 for
wrong usage, 77 without clang-tidy.
"""
import argparse
import concurrent.futures
import contextlib
import functools
import hashlib
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


def data_folder() -> pathlib.Path:
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return pathlib.Path(os.environ.get("BACKPLANE_DATA") or cache / "backplane")


def find_tool() -> pathlib.Path:
    """The path of the clang-tidy that setup.sh installs: the release that .clang-tidy was written for. Older ones check system headers too,
    and take five times as long."""
    return data_folder() / "tools/bin/clang-tidy"


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


@functools.cache
def digest(name: str) -> str:
    """A digest of a file's content, or of its absence."""
    try:
        return hashlib.blake2b(pathlib.Path(name).read_bytes()).hexdigest()
    except OSError:
        return "missing"


def read_fingerprints(build: pathlib.Path, tool: pathlib.Path, sources: dict[str, list[str]], checks: str) -> dict[str, str]:
    """A digest of all that a source's result depends on, by source. Ninja knows which files a source includes, and in a unity build those of
    the sources that are compiled with it; those of a precompiled header count for every source. A source that was not built yet has none."""
    done = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=False)
    precompiled, included, files = [], {}, []
    for line in done.stdout.splitlines():
        if not line.startswith(" "):
            files = precompiled if ".gch: #deps" in line else []
        elif name := line.strip():
            if files is not precompiled and (source := os.path.relpath(name, ROOT)) in sources:
                included.setdefault(source, files)
            files.append(name)
    rules = compile_database.list_files((".clang-tidy", "scripts/gates/requirements.txt"))  # the checks, and clang-tidy's release
    tools = [str(tool), *(str(ROOT / name) for name in rules)]
    common = hashlib.blake2b("\n".join([checks, *map(digest, tools), *map(digest, precompiled)]).encode())
    fingerprints = {}
    for source, flags in sources.items():
        if source in included:
            whole = common.copy()
            words = [word.replace(str(ROOT), "") for word in flags]
            whole.update("\n".join([source, *words, *map(digest, included[source])]).encode())
            fingerprints[source] = whole.hexdigest()
    return fingerprints


def write_passed(record: pathlib.Path, passed: set[str]) -> None:
    """Replaces the record of fingerprints. Without it, for example in a folder that cannot be written, everything is checked again."""
    new = record.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(OSError):
        new.write_text("".join(f"{each}\n" for each in sorted(passed)), encoding="ascii")
        new.replace(record)


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
    compiled = dict(sources)
    for name in [*compile_database.list_files((".cpp",)), *(name for name in changed if name.endswith(".cpp") and (ROOT / name).is_file())]:
        sources.setdefault(name, compiled[compile_database.nearest(name, compiled)])
    includers = compile_database.read_includers(options.build, compiled)
    named = [name if name in sources else compile_database.nearest(name, includers.get(name) or compiled)
             for name in changed if name in sources or name.endswith((".h", ".hpp"))]
    chosen = sorted(sources) if options.all else list(dict.fromkeys(named))
    record = data_folder() / "tidy_passed.txt"
    passed = set(record.read_text(encoding="ascii", errors="replace").split()) if record.is_file() else set()
    fingerprints = read_fingerprints(options.build, tool, sources, options.checks)
    unknown = [name for name in chosen if fingerprints.get(name) not in passed]
    checked = unknown if options.all or options.files else unknown[:LIMIT]
    findings = {}  # line: its text, once for each header
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        write_database(pathlib.Path(folder), sources)
        for done, text in enumerate(pool.map(lambda name: run_tidy(tool, folder, name, options.checks), checked), 1):
            if not FINDING.search(text) and checked[done - 1] in fingerprints:
                passed.add(fingerprints[checked[done - 1]])
            for finding in FINDING.finditer(text):
                if finding.group() not in findings:
                    findings[finding.group()] = True
                    print(finding.group().replace(f"{ROOT}/", ""), flush=True)
            if options.all and done % 25 == 0:
                write_passed(record, passed)  # so that a run that is stopped need not begin again
                print(f"tidy: {done} of {len(checked)}", flush=True)
    write_passed(record, passed & set(fingerprints.values()) if options.all else passed)
    rest = f"; {len(unknown) - len(checked)} more changed: scripts/gates.sh checks all" if len(checked) < len(unknown) else ""
    before = f"; {len(chosen) - len(unknown)} passed before" if len(unknown) < len(chosen) else ""
    print(f"tidy: {len(checked)} sources, {len(findings)} findings{before}{rest}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
