# SPDX-License-Identifier: Apache-2.0
"""neighbour.c: what disturbs a measurement on purpose, and the peak rate of one core by the width of its vectors."""
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
    """Multiply-adds of floats a second of one core; SSE4.1 has none, its vectors of 128 bits count as if."""
    done = subprocess.run([program()[1], "peak", str(BITS[instructions]), "1"], capture_output=True, text=True, check=True)
    return float(done.stdout)


@contextlib.contextmanager
def busy(what):
    """`what` on the last core that we may use, or nothing where it is None."""
    if what is None:
        yield
        return
    other = subprocess.Popen([program()[1], what, str(max(os.sched_getaffinity(0)))])
    try:
        yield
    finally:
        other.kill()
        other.wait()
