#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh BUILD: runs rows on one executor, one of whose workers crashes during the run, then as data frames, then rows
# that a model refuses. Exit status 77 without PySpark
# (scripts/setup.sh --with spark).
set -euo pipefail
build=$1
# shellcheck source=samples/20_spark/environment.sh
source "$(dirname "$0")/environment.sh"
infer --rows 2000 --kill
grep -q '"rows": 2000, "errors": 2, .*"survived": true' "$work/out"
infer --rows 2000 --pandas
grep -q '"rows": 2000, "errors": 2, ' "$work/out"
PYTHONPATH=$build/python:$here "$data/spark/bin/python" -B "$here/worker_test.py"
