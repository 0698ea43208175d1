# SPDX-License-Identifier: Apache-2.0
"""The sources of a build folder and the flags they are compiled with, for the gates that compile them in other ways.

    scripts/gates/compile_database.py BUILD SOURCE FILE    compiles FILE with the flags of SOURCE, without writing an object
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def plain_flags(command: str) -> list[str]:
    """The words of a compiler's command line without source, outputs and precompiled headers."""
    words, flags = shlex.split(command), []
    if not words[1].startswith("-"):
        words = words[1:]  # the compiler after a launcher such as ccache
    skip = False
    for word, following in zip(words, words[1:] + [""]):
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MT", "-MQ", "-c") or (word == "-include" and "cmake_pch" in following):
            skip = True
        elif word not in ("-MD", "-Winvalid-pch"):
            flags.append(word)
    return flags


def compiled_files(file: str) -> list[str]:
    """The sources that are compiled as `file`: itself, or those that a file of a unity build includes."""
    if os.path.basename(os.path.dirname(file)) != "Unity":
        return [file]
    return re.findall(r'^#include "(.+)"$', pathlib.Path(file).read_text(encoding="utf-8"), re.MULTILINE)


def read_sources(build: pathlib.Path) -> dict[str, list[str]]:
    """The compiler flags of every C++ source that the build folder was configured to compile, by its path below the root."""
    sources = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        for file in compiled_files(entry["file"]):
            name = os.path.relpath(file, ROOT)
            if name.endswith(".cpp") and not name.startswith((os.pardir, "build" + os.sep)):
                sources.setdefault(name, plain_flags(entry["command"]))
    return sources


def list_files(endings: tuple[str, ...]) -> list[str]:
    """The files that git tracks or would add; where git is not available, every file outside of build folders and hidden ones."""
    done = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True, check=False)
    names = done.stdout.split("\0") if done.returncode == 0 and (ROOT / ".git").exists() else []
    if not names:
        for folder, below, files in os.walk(ROOT):
            below[:] = [name for name in below if not name.startswith((".", "build"))]
            names += [os.path.relpath(os.path.join(folder, name), ROOT) for name in files]
    return sorted(name for name in names if name.endswith(endings) and (ROOT / name).is_file())


def read_includers(build: pathlib.Path, sources: dict[str, list[str]]) -> dict[str, set[str]]:
    """The sources that include a header, by the header, as far as the build compiled them. In a unity build, all sources of the file count."""
    done = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=False)
    includers: dict[str, set[str]] = {}
    for output in done.stdout.split("\n\n"):
        names = [os.path.relpath(line.strip(), ROOT) for line in output.splitlines()[1:]]
        compiled = {name for name in names if name in sources}
        for name in names:
            includers.setdefault(name, set()).update(compiled)
    return includers


def nearest(header: str, sources: Iterable[str]) -> str:
    """The source that belongs to a header: of the same name, or else the one whose folder has most in common with the header's."""
    stem, folder = os.path.splitext(header)[0], header.split("/")[:-1]

    def rank(source: str) -> tuple[bool, int, int, str]:
        other = source.split("/")[:-1]
        common = len(os.path.commonprefix([folder, other]))
        return source == stem + ".cpp", common, -len(other), source

    return max(sources, key=rank)


if __name__ == "__main__":
    flags = read_sources(pathlib.Path(sys.argv[1]))[sys.argv[2]]
    if "-Werror" not in flags:
        print("skipped: warnings are not errors with this compiler: see cmake/Settings.cmake")
        sys.exit(77)
    sys.exit(subprocess.run([*flags, "-fsyntax-only", sys.argv[3]], check=False).returncode)
