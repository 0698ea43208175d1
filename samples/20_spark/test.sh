#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh BUILD: runs the model on 2000 rows, two of which must fail, on one executor: once while one of its workers crashes, once as
# pandas data frames. Then tests worker.py by itself, with a stand-in for the model that refuses some rows. Exit status 77 without PySpark
# (scripts/setup.sh --with spark), Java or the Python package.
set -euo pipefail
build=$1
# shellcheck source=samples/20_spark/environment.sh
source "$(dirname "$0")/environment.sh"
infer --rows 2000 --kill
grep -q '"rows": 2000, "errors": 2, .*"survived": true' "$work/out"
infer --rows 2000 --pandas
grep -q '"rows": 2000, "errors": 2, ' "$work/out"
PYTHONPATH=$build/python:$here "$data/spark/bin/python" -B "$here/worker_test.py"
