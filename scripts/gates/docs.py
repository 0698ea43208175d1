#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs.py [--root DIR]: the pages agree with the sources, and their links lead somewhere.

- Each link in a Markdown file to a file of the tree has a target, and a fragment names one of its headings.
- docs/reference/codes.md has a line with a text for each code of the headers, and no other.
- docs/guides/operations.md has each BACKPLANE_* variable that the programs and libraries read, and no other. None of them, nor NO_COLOR, is
  read by a process with elevated privileges.
"""
import argparse
import pathlib
import re
import subprocess
import sys

HEADERS = "api/include/backplane"
CODES = "docs/reference/codes.md"
VARIABLES = "docs/guides/operations.md"
# Variables that are read only by the scripts that build and test this tree, and need not be in operations.md.
OF_SCRIPTS = {"BACKPLANE_DATA", "BACKPLANE_NO_BROWSER"}


def without_code(text):
    """The text without fenced blocks and code spans, with the same number of lines."""
    text = re.sub(r"^```.*?^```", lambda block: "\n" * block.group().count("\n"), text, flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path):
    """The fragments of a page's headings, as forges make them."""
    found = set()
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.S | re.M)
    for heading in re.findall(r"^#+ +(.*)$", text, flags=re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        count = 0
        while (name := f"{anchor}-{count}" if count else anchor) in found:
            count += 1
        found.add(name)
    return found


def links(root, pages):
    for page in pages:
        for number, line in enumerate(without_code(page.read_text()).splitlines(), 1):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, fragment = target.partition("#")
                file = (page.parent / name).resolve() if name else page.resolve()
                where = f"{page.relative_to(root)}:{number}"
                if not file.exists():
                    yield f"{where}: there is no '{target}'"
                elif fragment and file.suffix == ".md" and fragment not in anchors(file):
                    yield f"{where}: {name or 'this page'} has no heading for '#{fragment}'"


def codes(root):
    wanted = set()
    for header in sorted((root / HEADERS).glob("*.h")):
        text = header.read_text()
        wanted |= set(re.findall(r"^#define (BP_(?:REFUSED|REASON|CLASS)_\w+) ", text, flags=re.M))
        if header.name == "status.h":
            wanted |= set(re.findall(r"^#define (BP_\w+) 0x0[0-9a-f]{3}u", text, flags=re.M))
    page = root / CODES
    if not page.exists():
        if wanted:
            yield f"{CODES}: it is missing"
        return
    seen = {}
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if match := re.match(r"\| `(BP_\w+)` \|(.*)\|$", line):
            seen[match[1]] = number
            cells = [cell.strip() for cell in match[2].split(" | ")]
            if not any(len(cell) > 3 for cell in cells if not cell.startswith("`")):
                yield f"{CODES}:{number}: '{match[1]}' has no text"
    for code in sorted(wanted - set(seen)):
        yield f"{CODES}: there is no line about '{code}'"
    for code in sorted(set(seen) - wanted):
        yield f"{CODES}:{seen[code]}: the headers have no '{code}'"


def variables(root, sources):
    page = root / VARIABLES
    if not page.exists():
        return
    read = set()
    for path in sources:
        if re.search(r"(_test|_fuzz|_bench)\.|/testing/|/tests/", str(path)) or path.suffix not in (".c", ".cpp", ".h", ".hpp", ".py"):
            continue
        text = path.read_text(errors="replace")
        read |= set(re.findall(r"(?:getenv|variable|setting|absolute|pair|environ(?:\.get)?)[(\[]\"(BACKPLANE_\w+)\"", text))
        for name in re.findall(r"\b(?:std::)?getenv\(\"(BACKPLANE_\w+|NO_COLOR)\"", text):
            yield f"{path.relative_to(root)}: '{name}' is read where privileges are elevated too: use secure_getenv"
    listed = {name: number for number, line in enumerate(page.read_text().splitlines(), 1)
              if line.startswith("| `") for name in re.findall(r"`(BACKPLANE_\w+)`", line.split(" | ")[0])}
    for name in sorted(read - set(listed)):
        yield f"{VARIABLES}: there is no line about '{name}'"
    for name in sorted(set(listed) - read - OF_SCRIPTS):
        yield f"{VARIABLES}:{listed[name]}: no source reads '{name}'"


def tracked(root):
    try:
        names = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"], check=True, capture_output=True,
                               text=True).stdout.splitlines()
        return [root / name for name in names if (root / name).is_file()]
    except (subprocess.CalledProcessError, FileNotFoundError):
        return [path for path in root.rglob("*") if path.is_file() and "build" not in path.relative_to(root).parts]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    root = parser.parse_args().root.resolve()
    files = tracked(root)
    pages = [path for path in files if path.suffix == ".md"]
    sources = [path for path in files if path.relative_to(root).parts[0] in ("api", "backends", "cli", "conformance", "loader", "onnx")]
    if not pages:
        print(f"docs: {root} has no page")
        return 1
    found = [*links(root, pages), *codes(root), *variables(root, sources)]
    print(*found, sep="\n", end="\n" if found else "")
    print(f"docs: {len(pages)} pages, " + ("links, codes and variables are right" if not found else f"{len(found)} mistakes"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
