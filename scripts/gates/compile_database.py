# SPDX-License-Identifier: Apache-2.0
"""The sources of a build folder and the flags they are compiled with, for the gates that compile them in other ways.

    scripts/gates/compile_database.py BUILD SOURCE FILE    compiles FILE with the flags of SOURCE, and writes nothing
"""
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def plain_flags(command: str) -> list[str]:
    """A command line without source, outputs and precompiled headers."""
    words, flags = shlex.split(command), []
    if not words[1].startswith("-"):
        words = words[1:]  # the compiler behind a launcher such as ccache
    skip = False
    for word, following in zip(words, words[1:] + [""]):
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MT", "-MQ", "-c") or (word == "-include" and "cmake_pch" in following):
            skip = True
        elif word not in ("-MD", "-Winvalid-pch"):
            flags.append(word)
    return flags


def read_sources(build: pathlib.Path) -> dict[str, list[str]]:
    """Path below the root: flags, of every C++ source that a folder was configured to compile."""
    sources = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        name = os.path.relpath(entry["file"], ROOT)
        if name.endswith(".cpp") and not name.startswith((os.pardir, "build" + os.sep)):
            sources.setdefault(name, plain_flags(entry["command"]))
    return sources


def nearest(header: str, sources: dict[str, list[str]]) -> str:
    """The source that belongs to a header: of the same name, or else the one whose folder has most in common with the header's."""
    stem, folder = os.path.splitext(header)[0], header.split("/")[:-1]

    def rank(source: str) -> tuple[bool, int, int, str]:
        other = source.split("/")[:-1]
        common = len(os.path.commonprefix([folder, other]))
        return source == stem + ".cpp", common, -len(other), source

    return max(sources, key=rank)


if __name__ == "__main__":
    flags = read_sources(pathlib.Path(sys.argv[1]))[sys.argv[2]]
    sys.exit(subprocess.run([*flags, "-fsyntax-only", sys.argv[3]], check=False).returncode)
