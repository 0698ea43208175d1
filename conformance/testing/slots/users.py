#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""users.py SLOTS ROOT: how many files of the tree use each slot of the ABI.

SLOTS is the output of slots.awk. Prints "struct.slot COUNT" for each slot. A use is a call or a read by the calling side: `x->slot` or
`x.slot`, if the last declaration of `x` above it, or a field or function named `x`, has the struct's type. Names of slots alone would
prove nothing, because many structs have a `run`, a `copy` or an `info`. As a check, members that a struct does not have are searched, too:
if one of them has a user, the search has misread that file, and the status is 1.
"""

import collections
import pathlib
import re
import sys

LOADER = ["loader"]
BACKENDS = ["backends", "api/cpp/backplane/sdk", "api/cpp/backplane/sdk.hpp", "samples"]
FRAMEWORKS = ["api/cpp", "api/python", "samples", "cli", "loader", "conformance/commands"]

# The folders that may call the slots of a struct: those of backends for the host's tables and the callbacks that a
# plugin receives, and LOADER for all structs that are not listed here.
CALLERS = {
    "bp_host_t": BACKENDS,
    "bp_graph_api_t": BACKENDS,
    "bp_container_api_t": BACKENDS,
    "bp_coverage_sink_t": BACKENDS,
    "bp_infer_sink_t": BACKENDS,
    "bp_compile_t": BACKENDS,
    "bp_review_t": BACKENDS,
    "bp_run_t": BACKENDS,
    "bp_external_t": BACKENDS,
}
TEST = re.compile(r"_test\.|_fuzz\.|/testing/|/tests/")


def sources(root, places):
    for place in places:
        path = root / place
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in {".h", ".hpp", ".c", ".cpp"}:
                yield file


class Tree:
    """For each struct and member, the files that use the member."""

    def __init__(self, root, members):
        self.members = members  # for each struct
        structs = sorted(members)
        # Matches const bp_x_t* name, bp_x_t& name(), std::optional<bp_x_t> name_, … and the second name of "bp_x_t *a =
        # …, *b = …".
        name = r"(?:\s*const)?(?:\s+|\s*[*&]+\s*)(?:const\s+)?(\w+)(?=\s*[;,=({):])"
        self.declaration = re.compile(r"\b(" + "|".join(structs) + r")\b>?" + name + r"(?:[^;\n]*,\s*\*(\w+)\s*=)?")
        # A declaration of any type hides an outer declaration of the same name.
        keywords = "return|throw|delete|new|else|case|goto|typename"
        self.any_declaration = re.compile(rf"\b(?!(?:{keywords})\b)[A-Za-z_][\w:]*>?" + name)
        self.fields = collections.defaultdict(set)  # for each field or function of a header, its structs
        for file in (root / "api/include/backplane").glob("*.h"):
            self.add_fields(file.read_text(), members_only=False)
        texts = {}
        for file in sources(root, sorted({place for side in [LOADER, BACKENDS, *CALLERS.values()] for place in side})):
            path = file.relative_to(root).as_posix()
            if TEST.search(path):
                continue
            texts[path] = re.sub(r'//.*|"(?:[^"\\\n]|\\.)*"', "", file.read_text())
            self.add_fields(texts[path], members_only=True)
        self.found = collections.defaultdict(set)  # the files for each (struct, member)
        for path, text in texts.items():
            self.add_uses(path, text)

    def add_fields(self, text, members_only):
        for match in self.declaration.finditer(text):
            name, follows = match[2], text[match.end(2) :]
            if follows.startswith("()"):
                self.fields[name + "()"].add(match[1])
            elif not members_only or re.match(r";| = nullptr;|\{\};", follows):
                self.fields[name].add(match[1])

        if members_only:
            for match in self.any_declaration.finditer(text):
                if text[match.end(1)] == ";":
                    self.fields[match[1]].add(None)  # a field of another type; add_uses ignores it if a struct is known, too

    def add_uses(self, path, text):
        declared = {m.start(2): m[1] for m in self.declaration.finditer(text)}
        events = [(m.start(1), m[1], declared.get(m.start(1))) for m in self.any_declaration.finditer(text)]
        events += [(m.start(3), m[3], m[1]) for m in self.declaration.finditer(text) if m[3]]
        events += [(m.start(), None, None) for m in re.finditer(r"^\}(?!;)", text, re.M)]  # the end of a function
        events.sort(key=lambda event: event[0])
        use = re.compile(r"\b(\w+(?:\(\))?)(?:->|\.)(\w+)\b(?!\s*=[^=])")
        uses = []
        begin = 0
        while match := use.search(text, begin):  # in a->b->c, b->c is a use, too
            uses.append((match.start(), match[1], match[2]))
            begin = match.start(2)
        local = {}  # for each name, the struct of its last declaration above, or None
        position = 0
        for where, name, member in uses:
            while position < len(events) and events[position][0] < where:
                _, declared_name, struct = events[position]
                if declared_name is None:
                    local.clear()
                else:
                    local[declared_name] = struct
                position += 1
            structs = {local[name]} - {None} if name in local else self.fields.get(name, set())
            if len(structs) > 1:  # fields of several structs: keep those that have such a member
                structs = {struct for struct in structs - {None} if member in self.members[struct]}
            if len(structs) == 1 and structs != {None}:
                self.found[next(iter(structs)), member].add(path)

    def users(self, struct, slot):
        return [path for path in self.found[struct, slot] if path.startswith(tuple(CALLERS.get(struct, LOADER)))]


def members_of(root):
    """For each struct of the headers, the names of its members."""
    found = {}
    for file in (root / "api/include/backplane").glob("*.h"):
        for struct, body in re.findall(r"^(?:typedef )?struct (bp_\w+) \{$(.*?)^\}", file.read_text(), re.M | re.S):
            found[struct] = set(re.findall(r"\b(\w+)(?:\[\w+\])?;|\(BP_CALL\* ?(\w+)\)", body))
            found[struct] = {name for names in found[struct] for name in names if name}
    return found


def function_users(root, slots):
    """The users of bp_loader_api_t, through the client's table or as the function bp_NAME."""
    texts = {f: f.read_text() for f in sources(root, FRAMEWORKS) if "loader/c_api/" not in f.as_posix() and not TEST.search(f.as_posix())}
    for slot in slots:
        use = re.compile(rf"\bapi\(\)\.{slot}\b|\bbp_{slot}\s*\(")
        yield slot, [f.relative_to(root).as_posix() for f, text in texts.items() if use.search(text)]


def main(slots, root):
    root = pathlib.Path(root)
    lines = [re.fullmatch(r"(\w+)\((\w+), (\w+)\)\n", line).groups() for line in open(slots)]
    structs = {struct for kind, struct, _ in lines if kind != "FUNCTION"}
    members = {struct: names for struct, names in members_of(root).items() if struct in structs}
    tree = Tree(root, members)
    for kind, struct, slot in lines:
        if kind != "FUNCTION":
            print(f"{struct}.{slot}", len(tree.users(struct, slot)))
    for slot, users in function_users(root, [slot for kind, _, slot in lines if kind == "FUNCTION"]):
        print(f"bp_loader_api_t.{slot}", len(users))
    wrong = 0
    for struct in sorted(structs):
        for slot in sorted({slot for _, _, slot in lines} - members[struct]):
            for path in tree.users(struct, slot):
                print(f"users.py: {path} seems to use {struct}.{slot}, which does not exist: it took a variable for another", file=sys.stderr)
                wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
