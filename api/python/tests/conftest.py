# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests. They use the importable package: in ctest the one of the build, otherwise the installed one."""

from __future__ import annotations

import pytest

import backplane


@pytest.fixture(scope="session")
def env() -> backplane.Environment:
    return backplane.environment()


@pytest.fixture(scope="session")
def opencl(env: backplane.Environment) -> str:
    """The name of an OpenCL device."""
    for device in env.devices:
        if device.name.startswith("opencl"):
            return device.name
    pytest.skip("there is no OpenCL device")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints why a whole file is skipped, in the form that scripts/test.sh reads."""
    stats = terminalreporter.stats
    if not stats.get("passed") and not stats.get("failed"):
        for report in stats.get("skipped", [])[:1]:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            terminalreporter.write_line(f"python: skipped: {str(reason).removeprefix('Skipped: ')}")
