# SPDX-License-Identifier: Apache-2.0
"""What the tests share. They use the package that is importable: in ctest the one of the build, otherwise what is installed."""

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
