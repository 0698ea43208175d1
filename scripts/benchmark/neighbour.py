# SPDX-License-Identifier: Apache-2.0
"""Runs neighbour.c: a load on another core that disturbs a measurement on purpose, and the peak rate of one core for a vector width."""
import contextlib
import functools
import os
import pathlib
import subprocess
import tempfile

BITS = {"SSE41": 128, "AVX2": 256, "AVX512": 512, "AVX512_AMX": 512}


@functools.cache
def program():
    folder = tempfile.TemporaryDirectory()
    path = pathlib.Path(folder.name) / "neighbour"
    subprocess.run(["cc", "-O2", "-o", path, pathlib.Path(__file__).with_suffix(".c")], check=True)
    return folder, path  # the folder lives as long as this process


def peak(instructions):
    """Multiply-adds of fp32 per second of one core. SSE4.1 has no such instruction: the rate is that of multiply-adds on vectors of 128 bits."""
    done = subprocess.run([program()[1], "peak", str(BITS[instructions]), "1"], capture_output=True, text=True, check=True)
    return float(done.stdout)


@contextlib.contextmanager
def busy(what):
    """Runs the load `what` ("fma" or "l1") on the last core that this process may use; does nothing if `what` is None."""
    if what is None:
        yield
        return
    other = subprocess.Popen([program()[1], what, str(max(os.sched_getaffinity(0)))])
    try:
        yield
    finally:
        other.kill()
        other.wait()
