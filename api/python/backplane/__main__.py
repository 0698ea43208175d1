# SPDX-License-Identifier: Apache-2.0
"""`python -m backplane` is the program `backplane`, which takes the place of this process: see docs/reference/cli.md."""

from __future__ import annotations

import os
import pathlib
import signal
import sys

_GET = "a wheel of ./api/python has it; Debian: apt install backplane-tools; in a build: cmake --build BUILD --target backplane"


def program(package: pathlib.Path) -> str:
    """The program that belongs to the package in this folder: of a wheel, of a build, or of an installation below the same prefix."""
    up = package.parents
    prefixes = package, *up[1:2], *up[3:4]  # of the wheel, BUILD/python/backplane, and PREFIX/lib/python3/dist-packages/backplane
    files = [str(prefix / "bin" / "backplane") for prefix in prefixes]
    for file in files:
        if os.path.exists(file):
            return file
    raise FileNotFoundError(f"the program 'backplane' is in none of {', '.join(files)}: {_GET}")


def main() -> int:
    """Runs the program with the arguments of this process. Returns only if that fails."""
    try:
        file = program(pathlib.Path(__file__).absolute().parent)
    except FileNotFoundError as error:
        print(f"backplane: {error}", file=sys.stderr)
        return 1
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these signals, and the program would inherit that
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execv(file, [file, *sys.argv[1:]])
    except OSError as error:
        print(f"backplane: '{file}' cannot be run: {error.strerror}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
