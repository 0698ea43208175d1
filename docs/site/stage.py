#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stage.py TREE FOLDER: the tree's pages and what they link to, for MkDocs.

Pages keep their places, so that links between them hold. A link to a folder becomes one to its README.md, or to a list of its files; a link to
another file becomes one to a page with its text; pictures are copied. The comments that scripts/readme.py reads are left out.
"""
import html
import os
import pathlib
import re
import shutil
import subprocess
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")


def main():
    tree, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    names = subprocess.run(["git", "-C", tree, "ls-files", "--cached", "--others", "--exclude-standard"], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    tracked = {name for name in names if (tree / name).is_file()}
    folders = {str(parent) for name in tracked for parent in pathlib.PurePath(name).parents}
    pages, shown = sorted(name for name in tracked if name.endswith(".md")), {}

    def target(page, link):
        """The link as the site has it."""
        if re.match(r"[a-z]+:|#", link):
            return link
        path, _, fragment = link.partition("#")
        fragment = "#" + fragment if fragment else ""
        place = os.path.normpath(os.path.join(os.path.dirname(page), path))
        if place in tracked and place.endswith(".md"):
            new = place
        elif place.endswith(".png") and place in tracked:
            new = place
            (out / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(tree / place, out / place)
        elif place in tracked:
            new = place + ".md"
            shown[new] = place
            fragment = ""
        elif f"{place}/README.md" in tracked or (place == "." and "README.md" in tracked):
            new = os.path.normpath(f"{place}/README.md")
        elif place in folders:
            new = f"{place}/FILES.md"
            shown[new] = place
        else:
            sys.exit(f"{page}: there is no '{link}'")
        return os.path.relpath(new, os.path.dirname(page) or ".") + fragment

    def write(name, text):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text)

    for page in pages:
        text = re.sub(r"^ *<!-- (run:|conformance/).*-->\n", "", (tree / page).read_text(), flags=re.M)
        parts = re.split(r"(^```.*?^```|`[^`\n]*`)", text, flags=re.S | re.M)
        parts[::2] = [LINK.sub(lambda link: f"]({target(page, link[1])})", part) for part in parts[::2]]
        # MkDocs would show the backslash of code in a table.
        parts[1::2] = [part if part.startswith("```") or "\\|" not in part else
                       f"<code>{html.escape(part[1:-1]).replace(chr(92) + '|', '&#124;')}</code>" for part in parts[1::2]]
        write(page, "".join(parts))
    write("headers.md", "# Headers\n\nThe C ABI, the C++ client and the vendor SDK, <a href=\"headers/files.html\">by file</a> and "
          "<a href=\"headers/annotated.html\">by type</a>.\n")
    for name in ("site.css", "site.js"):
        shutil.copyfile(tree / "docs/site" / name, out / name)
    for new, place in shown.items():
        if place in tracked:
            write(new, f"# {place}\n\n<pre><code>{html.escape((tree / place).read_text(errors='replace'))}</code></pre>\n")
        else:
            files = sorted(name for name in tracked if name.startswith(place + "/"))
            write(new, f"# {place}\n\n" + "".join(f"- `{name}`\n" for name in files))
    print(f"site: {len(pages)} pages, {len(shown)} files and folders that they link to")


if __name__ == "__main__":
    main()
