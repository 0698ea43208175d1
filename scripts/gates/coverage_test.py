#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coverage.py reports a folder below its floor, below that of other folders, and a floor without a folder."""
import contextlib
import io
import pathlib
import unittest

import coverage

LINES = {"a/x.cpp": (100, 90), "a/y.cpp": (100, 70), "b/z.cpp": (10, 6)}


class CoverageTest(unittest.TestCase):
    def check(self, findings: int, floors: dict[str, float], text: str) -> None:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            self.assertEqual(coverage.report(LINES, floors, pathlib.Path("floors.txt")), findings)
        self.assertIn(text, output.getvalue())

    def test_folders_at_their_floors(self) -> None:
        self.check(0, {"all": 79, "a": 80, "other": 60}, "coverage: 79.0% of 210 lines, 0 folders below their floors")

    def test_folder_below_its_floor(self) -> None:
        self.check(1, {"a": 81, "other": 60}, " 80.0% of    200 lines  a  BELOW ITS FLOOR of 81%")

    def test_folder_without_a_floor(self) -> None:
        self.check(1, {"a": 80, "other": 61}, " 60.0% of     10 lines  b  BELOW ITS FLOOR of 61%")

    def test_floor_without_a_folder(self) -> None:
        self.check(1, {"c": 1, "other": 60}, "c has a floor and no lines: correct the name in floors.txt")


if __name__ == "__main__":
    unittest.main()
