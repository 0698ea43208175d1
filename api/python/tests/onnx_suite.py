# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX's own backend test suite (onnx.backend.test) on a device and prints how many cases passed.

    onnx_suite.py --device cpu [--include REGEX] [--part I/N] [--failures FILE]

On `cpu` a case that is not supported fails. On other devices it is skipped, and a summary of the reasons is printed; a model that
the loader refuses, for example because its version is newer, fails there too.
Exit status: 0 if no case failed and at least one passed, 77 if there is no such device, otherwise 1.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import sys
import tempfile
import time
import unittest
import warnings
from typing import Any

import onnx
import onnx.backend.test

import backplane
from backplane import onnx_backend

# Cases that no implementation can pass, by regular expression: docs/conformance-exceptions.md has the proof of each.
EXCEPTIONS = {
    r"test_bernoulli.*": "compares with the random numbers of one generator",
    r"test_training_dropout(_default)?(_mask)?": "compares with the random numbers of one generator",
    r"test_dft_inverse(_opset19)?": "the exact result is 0, the data have 1.9e-7 of rounding and the tolerance is 1e-7",
    r"test_attention_4d_causal_fp16_expanded": "every node rounds to FLOAT16; the data are farther from the exact result, and the tolerance is too narrow",
    r"test_loop16_seq_none": "the suite cannot compare sequences of scalars",
}


def backend_of(device: str) -> type[onnx_backend.BackplaneBackend]:
    class Suite(onnx_backend.Backend(device)):  # type: ignore[misc]
        @classmethod
        def is_compatible(cls, model: onnx.ModelProto, device: str | None = None, **options: Any) -> bool:
            return True  # otherwise the suite skips models without the reason, even those that the device must support

        @classmethod
        def prepare(cls, model: onnx.ModelProto, device: str | None = None, **options: Any) -> onnx_backend.BackplaneRep:
            try:
                return super().prepare(model, device, **options)
            except backplane.Unsupported as reason:
                if cls.default_device == "cpu":
                    raise
                backplane.load(model)  # raises again if it was the loader that refused the model, for every device
                raise unittest.SkipTest(str(reason)) from None

    return Suite


def cases_of(device: str, include: str, part: str) -> unittest.TestSuite:
    test = onnx.backend.test.BackendTest(backend_of(device), __name__)
    test.exclude("_cuda$")
    found = list(test.test_suite)
    names = re.compile(include)
    wanted = [case for case in found if names.search(case.id()) and not case.id().endswith("_cuda")]
    wanted.sort(key=lambda case: case.id())
    first, _, count = part.partition("/")
    return unittest.TestSuite(wanted[int(first) - 1 :: int(count)])


class Result(unittest.TestResult):
    """Shows progress on a terminal, and records the names of the cases that passed."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self.total = total
        self.passed: list[str] = []

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{self.testsRun}/{self.total} {name_of(test)[:60]:60}")

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        self.passed.append(name_of(test))


def name_of(test: unittest.TestCase) -> str:
    return test.id().rsplit(".", 1)[-1].removesuffix("_cpu")


def why_excepted(name: str) -> str | None:
    return next((why for pattern, why in EXCEPTIONS.items() if re.fullmatch(pattern, name)), None)


def kind_of(reason: str) -> str:
    """The part of a device's reason that is the same for similar cases: its code if it names one."""
    match = re.search(r"\((operator|opset|dtype|shape|attribute|constant|memory|precision|subgraph|cost|policy|other)\)", reason)
    return match[1] if match else re.sub(r"['\"#].*", "…", reason)[:60]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", required=True)
    parser.add_argument("--include", default="", help="cases whose names match this regular expression")
    parser.add_argument("--part", default="1/1", help="3/8: the third of eight parts")
    parser.add_argument("--failures", help="a file for the whole text of each failure and skip")
    options = parser.parse_args()
    if not any(device.name == options.device for device in backplane.devices()):
        print(f"onnx_suite: skipped: there is no device '{options.device}'")
        return 77
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as home:
        os.environ["ONNX_HOME"] = home
        suite = cases_of(options.device, options.include, options.part)
        result = Result(suite.countTestCases())
        start = time.monotonic()
        suite.run(result)
    failed = [(name_of(test), text) for test, text in result.failures + result.errors]
    excepted = [name for name, _ in failed if why_excepted(name)]
    failed = [(name, text) for name, text in failed if not why_excepted(name)]
    for name in excepted:
        print(f"excepted {name}: {why_excepted(name)}")
    for name, text in failed[:40]:
        print(f"FAILED {name}: {text.strip().splitlines()[-1][:200]}")
    kinds = collections.Counter(kind_of(reason) for _, reason in result.skipped)
    for kind, count in kinds.most_common():
        print(f"skipped {count}: {kind}")
    if options.failures:
        with open(options.failures, "w", encoding="utf-8") as file:
            file.writelines(f"== {name}\n{text}\n" for name, text in failed)
            file.writelines(f"skipped {name_of(test)}: {reason}\n" for test, reason in result.skipped)
    print(
        f"onnx {onnx.__version__} on {options.device}: {len(result.passed)} passed, {len(failed)} failed, "
        f"{len(result.skipped)} skipped, {len(excepted)} excepted, in {time.monotonic() - start:.0f} s"
    )
    return 0 if result.passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
