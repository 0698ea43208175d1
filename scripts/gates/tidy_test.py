#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tidy.py's fingerprints depend on: a source that passed is checked again whenever its result could differ."""
import os
import pathlib
import tempfile
import unittest

import tidy

# What `ninja -t deps` prints, with the folder of the test in place of %.
DEPENDENCIES = """\
pch/cmake_pch.hxx.gch: #deps 2, deps mtime 1 (VALID)
    %/pch.cxx
    %/common.h

a.cpp.o: #deps 2, deps mtime 1 (VALID)
    %/a.cpp
    %/a.h

b.cpp.o: #deps 1, deps mtime 1 (VALID)
    %/b.cpp

"""


class Fingerprints(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("tool", ".clang-tidy", "pch.cxx", "common.h", "a.cpp", "a.h", "b.cpp"):
            (self.root / name).write_text(name, encoding="utf-8")
        ninja = self.root / "bin/ninja"
        ninja.parent.mkdir()
        ninja.write_text("#!/bin/sh\ncat <<'END'\n" + DEPENDENCIES.replace("%", str(self.root)) + "END\n", encoding="utf-8")
        ninja.chmod(0o755)
        path, root = os.environ["PATH"], tidy.ROOT
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        self.addCleanup(setattr, tidy, "ROOT", root)
        os.environ["PATH"] = f"{ninja.parent}:{path}"
        tidy.ROOT = self.root

    def read(self, flags: str = "-O2", checks: str = "") -> dict[str, str]:
        tidy.digest.cache_clear()
        return tidy.read_fingerprints(self.root, self.root / "tool", {"a.cpp": ["c++", flags], "b.cpp": ["c++"], "new.cpp": ["c++"]}, checks)

    def changed(self, name: str) -> set[str]:
        """The sources whose fingerprints change with a file."""
        before = self.read()
        with open(self.root / name, "a", encoding="utf-8") as file:
            file.write("!")
        after = self.read()
        return {source for source in before if before[source] != after[source]}

    def test_nothing_changes_by_itself(self) -> None:
        self.assertEqual(self.read(), self.read())

    def test_a_source_that_was_not_built_has_none(self) -> None:
        self.assertEqual(set(self.read()), {"a.cpp", "b.cpp"})

    def test_files_change_the_sources_that_include_them(self) -> None:
        self.assertEqual(self.changed("a.cpp"), {"a.cpp"})
        self.assertEqual(self.changed("a.h"), {"a.cpp"})
        self.assertEqual(self.changed("b.cpp"), {"b.cpp"})

    def test_precompiled_headers_checks_and_tool_change_all(self) -> None:
        for name in ("common.h", ".clang-tidy", "tool"):
            self.assertEqual(self.changed(name), {"a.cpp", "b.cpp"}, name)
        self.assertNotEqual(self.read()["b.cpp"], self.read(checks="-*")["b.cpp"])

    def test_flags_change_their_source(self) -> None:
        before, after = self.read(), self.read(flags="-O3")
        self.assertNotEqual(before["a.cpp"], after["a.cpp"])
        self.assertEqual(before["b.cpp"], after["b.cpp"])


if __name__ == "__main__":
    unittest.main()
