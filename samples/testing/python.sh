#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# python.sh BUILD PROGRAM WORD…: runs a Python program with the package of a build, in the environment of the test data.
# Exit status 77 if either is missing.
set -u
build=$1
shift
data=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}
for file in "$build"/python/backplane/_core.*; do [ -e "$file" ] || { echo "$1: skipped: the Python package is not built"; exit 77; }; done
[ -x "$data/venv/bin/python" ] || { echo "$1: skipped: scripts/setup.sh creates the Python environment"; exit 77; }
PYTHONPATH=$build/python exec "$data/venv/bin/python" -B "$@"
