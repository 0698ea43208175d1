#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which folder includes which: every #include of a header of this tree must be allowed by a table.

    scripts/gates/includes.py [--root DIR] [--table FILE]

The table (scripts/gates/includes.txt) explains its format. Exit status: 0 if every include is allowed, 1 if not, 2 for wrong usage or
a malformed table. Includes are found line by line, so one inside a block comment or a raw string counts too.
"""
import argparse
import collections
import fnmatch
import graphlib
import os
import pathlib
import re
import subprocess
import sys

SOURCE = re.compile(r"\.(c|cc|cpp|cxx|cu|cuh|h|hh|hpp|hxx|inc|inl)$")
TEST = re.compile(r"_(test|bench|fuzz)\.\w+$|(^|/)testing[/.]")
INCLUDE = re.compile(r"^(?:[ \t]|/\*.*?\*/)*(?:#|%:)[ \t]*(?:include|include_next|import)\b[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
HEADER = re.compile(r'(["<])([^">]+)[">]')
RULE = re.compile(r"(?:(roots|files|generated) +)?([^\s:!]+):\s*(.*)")
FORMS = "'ROOM: ROOM …', 'files ROOM: PATTERN …', 'roots FOLDER: FOLDER …' or 'generated ROOM: HEADER …'"


class Table:
    """The table of rules. Values of its dictionaries begin with the line number of the rule. Raises ValueError if the file is malformed."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.rooms: dict[str, tuple[int, list[str]]] = {}  # room: the rooms that it may include
        self.written: dict[str, list[str]] = {}  # room: those of them that the table names, without patterns
        self.files: dict[str, tuple[int, str]] = {}  # pattern of paths without extension: room
        self.roots: dict[str, tuple[int, list[str]]] = {}  # folder: where its files' includes are looked up
        self.generated: dict[tuple[str, str], tuple[int, None]] = {}  # room, header
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line := line.split("#")[0].strip():
                self.read(line, number)
        for room, (line, names) in self.rooms.items():
            self.written[room] = [name for name in names if name in self.rooms]
            self.rooms[room] = line, [other for name in names for other in self.expand(room, name, line)]
        self.check()

    def error(self, line: int, text: str) -> ValueError:
        return ValueError(f"{self.path}:{line}: {text}")

    def add(self, target: dict, key: str | tuple[str, str], line: int, value: object) -> None:
        if key in target:
            name = key if isinstance(key, str) else ": ".join(key)
            raise self.error(line, f"{name} is already in line {target[key][0]}: merge the two lines")
        target[key] = line, value

    def read(self, text: str, line: int) -> None:
        rule = RULE.fullmatch(text)
        if not rule:
            raise self.error(line, f"cannot read '{text}': write {FORMS}")
        elif rule[1] == "roots":
            self.add(self.roots, rule[2], line, rule[3].split())
        elif rule[1] == "files":
            for name in rule[3].split():
                self.add(self.files, name, line, rule[2])
        elif rule[1] == "generated":
            for name in rule[3].split():
                self.add(self.generated, (rule[2], name), line, None)
        else:
            self.add(self.rooms, rule[2], line, rule[3].split())

    def expand(self, room: str, name: str, line: int) -> list[str]:
        """'loader/*' means every other room below loader/."""
        found = [other for other in self.rooms if other != room and fnmatch.fnmatchcase(other, name)]
        if not found:
            raise self.error(line, f"'{name}' is not another room of this table: correct the name or delete it")
        return found

    def check(self) -> None:
        used = list(self.files.values()) + [(line, room) for (room, _), (line, _) in self.generated.items()]
        for line, room in used:
            if room not in self.rooms:
                raise self.error(line, f"'{room}' is not a room of this table: add a line '{room}: …' or correct the name")


def list_sources(root: pathlib.Path) -> list[str]:
    """The sources that git tracks or would add, other than those of scripts; where git is not available, every one outside of build folders and
    hidden ones."""
    names = []
    if (root / ".git").exists():
        done = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True, check=False)
        names = done.stdout.split("\0") if done.returncode == 0 else []
    for folder, below, files in os.walk(root) if not names else []:
        below[:] = [name for name in below if not name.startswith((".", "build"))]
        names += [os.path.relpath(os.path.join(folder, name), root) for name in files]
    return sorted(name for name in names if SOURCE.search(name) and not name.startswith("scripts/") and (root / name).is_file())


def parents(name: str) -> list[str]:
    """The folders above a file, innermost first: 'a/b' and 'a' for 'a/b/c.h'."""
    return [str(folder) for folder in pathlib.PurePosixPath(name).parents][:-1]


class Check:
    def __init__(self, root: pathlib.Path, table: Table) -> None:
        self.root, self.table = root, table
        self.findings: list[str] = []
        self.used: set[str | tuple[str, str]] = set()  # patterns that match a file, and generated headers that a file includes
        self.arrows: dict[tuple[str, str], list[str]] = collections.defaultdict(list)  # from, to: "file:line includes file"
        names = list_sources(root)
        self.rooms = {name: self.find_room(name) for name in names}  # by file
        for name in names:
            self.read(name)

    def find_room(self, name: str) -> str:
        """The room of a file: for a test, the nearest room of tests; otherwise that of the first 'files' line that matches, or the folder."""
        folders, stem = parents(name), os.path.splitext(name)[0]
        if TEST.search(name):
            rooms = [f"{folder}/tests" for folder in folders]
            return next((room for room in rooms if room in self.table.rooms), rooms[-1])
        if pattern := next((pattern for pattern in self.table.files if fnmatch.fnmatchcase(stem, pattern)), None):
            self.used.add(pattern)
            return self.table.files[pattern][1]
        return folders[0]

    def read(self, name: str) -> None:
        text = (self.root / name).read_text(encoding="utf-8", errors="replace")
        for include in INCLUDE.finditer(text):
            place = f"{name}:{text.count(chr(10), 0, include.start()) + 1}"
            header = HEADER.match(include[1])
            self.read_include(name, place, *(header.groups() if header else ('"', include[1])))

    def read_include(self, name: str, place: str, quote: str, header: str) -> None:
        target = self.resolve(name, quote, header)
        if target and self.rooms[target] != self.rooms[name]:
            self.arrows[self.rooms[name], self.rooms[target]].append(f"{place} includes {target}")
        elif not target and (self.rooms[name], header) in self.table.generated:
            self.used.add((self.rooms[name], header))
        elif not target and (rooms := [room for room, generated in self.table.generated if generated == header]):
            self.findings.append(f"{place}: {self.rooms[name]} may not include the generated '{header}', which belongs to "
                                 f"{' and '.join(rooms)}: move the code")
        elif not target and (quote == '"' or header.startswith("backplane/")):
            self.findings.append(f"{place}: '{header}' is not in the tree: correct the path, add the file to git, write <…> for a "
                                 f"system header, or add a 'roots' or 'generated' line to {self.table.path}")

    def resolve(self, name: str, quote: str, header: str) -> str | None:
        """The file that an include refers to: searched in the including file's folder, then in the roots of the folders above, innermost first."""
        places = parents(name)[:1] if quote == '"' else []
        for folder in [*parents(name), "*"]:
            places += self.table.roots.get(folder, (0, []))[1]
        paths = (os.path.normpath(os.path.join(place, header)) for place in places)
        return next((path for path in paths if path in self.rooms), None)

    def check_arrows(self) -> None:
        rooms, filled = self.table.rooms, set(self.rooms.values())
        for (source, target), places in sorted(self.arrows.items()):
            known = source in rooms and target in rooms  # check_table reports the others
            if known and target not in rooms[source][1]:
                self.findings += [f"{place}: {source} may not include {target}: move the code, or include only what line "
                                  f"{rooms[source][0]} of {self.table.path} allows" for place in places]
        for source, (line, _) in rooms.items():  # an arrow that no include uses, except of tests, for which one rule holds
            self.findings += [f"{self.table.path}:{line}: no file of {source} includes one of {target}: delete the arrow"
                              for target in self.table.written[source]
                              if (source, target) not in self.arrows and source in filled and not source.endswith("/tests")]

    def check_table(self) -> None:
        path, filled = self.table.path, {room: name for name, room in self.rooms.items()}
        try:
            graphlib.TopologicalSorter({room: names for room, (_, names) in self.table.rooms.items()}).prepare()
        except graphlib.CycleError as error:
            self.findings.append(f"{path}: the rules have a cycle, {' <- '.join(error.args[1])}: delete one of these arrows")
        self.findings += [
            f"{name}: its room {room} is not in the table: add a line '{room}: …' or 'files ROOM: {os.path.splitext(name)[0]}' to {path}"
            for room, name in filled.items() if room not in self.table.rooms]
        for what, names in ("room", self.table.rooms), ("pattern", self.table.files), ("generated header", self.table.generated):
            self.findings += [f"{path}:{line}: {what} {name if isinstance(name, str) else ': '.join(name)} is stale: "
                              "no file uses it; delete it or correct the name"
                              for name, (line, _) in names.items() if name not in (filled if what == "room" else self.used)]


def main(arguments: list[str]) -> int:
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Checks which folder includes which.")
    parser.add_argument("--root", type=pathlib.Path, default=here.parent.parent, help="the tree to check (default: this one)")
    parser.add_argument("--table", type=pathlib.Path, default=here / "includes.txt", help="the table of allowed includes (default: includes.txt)")
    options = parser.parse_args(arguments)
    if not options.root.is_dir():
        parser.error(f"{options.root} is not a folder: pass the root of the tree with --root")
    try:
        check = Check(options.root, Table(options.table))
    except (ValueError, OSError) as error:
        print(f"includes: {error}", file=sys.stderr)
        return 2
    check.check_arrows()
    check.check_table()
    print(*check.findings, sep="\n", end="\n" if check.findings else "", file=sys.stderr)
    count = sum(len(places) for places in check.arrows.values())
    print(f"includes: {len(check.rooms):,} files, {len(check.table.rooms)} rooms, {count:,} includes between rooms checked"
          + (f", findings: {len(check.findings)}" if check.findings else ""))
    return 1 if check.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
