#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs includes.py on small trees, each with one violation."""
import contextlib
import io
import os
import pathlib
import subprocess
import tempfile
import unittest

import includes

# Git sets variables for its hooks that name the repository; here they would make git use that one instead of the trees of the tests.
for variable in [name for name in os.environ if name.startswith("GIT_")]:
    del os.environ[variable]

# api <- lib/base <- lib/top, and lib/view, part of the folder lib/top.
TABLE = """\
roots *: api
roots lib: lib
generated lib/base: made.h
files api: api/*
files lib/view: lib/top/view
api:
lib/base: api
lib/top: lib/base api
lib/view: lib/top
lib/tests: lib/* api   # a comment
"""
FILES = {
    "api/backplane/types.h": "#include <stdint.h>\n",
    "lib/base/name.h": "#pragma once\n#include <backplane/types.h>\n",
    "lib/base/name.cpp": '#include "base/name.h"\n#  include "made.h"\n',
    "lib/base/other.c": '#include "../../api/backplane/types.h"\n',
    "lib/top/tree.h": '#include "base/name.h"\n#include "backplane/types.h"\n',
    "lib/top/view.h": '#include "tree.h"\n',
    "lib/top/tree_test.cpp": '#include <gtest/gtest.h>\n#include "testing/maker.h"\n#include "top/view.h"\n',
    "lib/testing/maker.h": '#include "base/name.h"\n',
    "lib/build/copied.cpp": '#include "no/such.h"\n',
}


class IncludesTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("table.txt", TABLE)
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def edit(self, old: str, new: str) -> None:
        self.assertIn(old, TABLE)
        self.write("table.txt", TABLE.replace(old, new))

    def check(self, status: int, *texts: str, root: str = ".") -> None:
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            try:
                result = includes.main(["--root", str(self.root / root), "--table", str(self.root / "table.txt")])
            except SystemExit as exit_:  # argparse
                result = exit_.code
        self.assertEqual(result, status, output.getvalue())
        for text in [*texts, *([", findings: 1\n"] if status == 1 else [])]:  # nothing but what the test made wrong
            self.assertIn(text, output.getvalue())

    def test_right_tree_passes(self) -> None:
        self.check(0, "includes: 8 files, 5 rooms, 7 includes between rooms checked\n")

    def test_ignored_files_do_not_count_and_new_ones_do(self) -> None:
        self.write("lib/scratch/a.h", '#include "top/tree.h"\n')
        self.write(".gitignore", "build/\nscratch/\n")
        subprocess.run(["git", "init", "-q", self.root], check=True)
        subprocess.run(["git", "-C", self.root, "add", "."], check=True)
        self.check(0, "includes: 8 files,")
        self.write("lib/base/new.h", '#include "top/tree.h"\n')  # not added to git
        self.check(1, "lib/base/new.h:1 includes lib/top/tree.h")

    def test_other_spellings_of_an_include_count(self) -> None:
        for line in '#include_next "top/view.h"', '#import "top/view.h"', '%:include "top/view.h"', '/* why */ #include "top/view.h"':
            self.write("lib/top/tree.cpp", '#include "tree.h"\n' + line + "\n")
            self.check(1, "lib/top/tree.cpp:2 includes lib/top/view.h: lib/top may not include lib/view: move the code")

    def test_forbidden_arrow(self) -> None:
        self.write("lib/top/tree.cpp", '#include "tree.h"\n\n#include "top/view.h"\n')
        self.check(1, "lib/top/tree.cpp:3 includes lib/top/view.h: lib/top may not include lib/view: move the code")

    def test_production_code_may_not_include_a_test(self) -> None:
        self.write("lib/top/tree.cpp", '#include "testing/maker.h"\n')
        self.check(1, "lib/top/tree.cpp:1 includes lib/testing/maker.h: lib/top may not include lib/tests")

    def test_cycle_in_the_rules(self) -> None:
        self.write("lib/base/name.cpp", '#include "base/name.h"\n#include "top/tree.h"\n#  include "made.h"\n')
        self.edit("lib/base: api\n", "lib/base: api lib/top\n")
        self.check(1, "table.txt: the rules have a cycle, ")

    def test_arrow_that_no_include_uses(self) -> None:
        self.edit("lib/view: lib/top\n", "lib/view: lib/top api\n")
        self.check(1, "table.txt:9: no file of lib/view includes one of api: delete the arrow")

    def test_unresolved_include(self) -> None:
        self.write("lib/top/tree.cpp", '#include "top/trees.h"\n')
        self.check(1, "lib/top/tree.cpp:1: 'top/trees.h' is not in the tree")

    def test_unresolved_api_header(self) -> None:
        self.write("lib/top/tree.cpp", "#include <string>\n#include <backplane/no.h>\n")
        self.check(1, "lib/top/tree.cpp:2: 'backplane/no.h' is not in the tree")

    def test_generated_header_of_another_room(self) -> None:
        self.write("lib/top/tree.cpp", '#include "made.h"\n')
        self.check(1, "lib/top/tree.cpp:1: lib/top may not include the generated 'made.h', which belongs to lib/base: move the code")

    def test_include_of_a_macro(self) -> None:
        self.write("lib/top/tree.cpp", "#include CONFIGURED\n")
        self.check(1, "lib/top/tree.cpp:1: 'CONFIGURED' is not in the tree")

    def test_folder_without_a_room(self) -> None:
        self.write("lib/new/a.h", '#include "top/tree.h"\n')
        self.check(1, "lib/new/a.h: its room lib/new is not in the table: add a line 'lib/new: …' or 'files ROOM: lib/new/a'")

    def test_new_part_of_the_tree(self) -> None:
        self.write("new/a.h", "#pragma once\n")
        self.write("scripts/helper.c", "")  # not a part of what is built
        self.check(1, "new/a.h: its room new is not in the table")

    def test_stale_lines(self) -> None:
        for line in "room lib/old", "pattern lib/top/old", "generated header lib/top: old.h":
            with self.subTest(line):
                new = {"room": "lib/old: api", "pattern": "files lib/view: lib/top/old", "generated": "generated lib/top: old.h"}
                self.edit("# a comment", "\n" + new[line.split(" ")[0]])
                self.check(1, f"table.txt:11: {line} is stale")

    def test_malformed_table(self) -> None:
        lines = {
            "lib/top lib/base": "cannot read 'lib/top lib/base': write 'ROOM: ROOM …'",
            "files lib/no: lib/top/tree": "'lib/no' is not a room of this table",
            "generated lib/no: made.h": "'lib/no' is not a room of this table",
            "generated lib/base: made.h": "lib/base: made.h is already in line 3",
            "lib/more: lib/no": "'lib/no' is not another room of this table",
            "lib/top: api": "lib/top is already in line 8",
        }
        for line, text in lines.items():
            with self.subTest(line):
                self.edit("# a comment", "\n" + line)
                self.check(2, f"table.txt:11: {text}")

    def test_wrong_usage(self) -> None:
        self.check(2, "is not a folder: pass the root of the tree with --root", root="no/such")
        (self.root / "table.txt").unlink()
        self.check(2, "No such file")


if __name__ == "__main__":
    unittest.main()
