#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh BUILD: runs rows on one executor, one of whose workers crashes during the run. Exit status 77 without PySpark
# (scripts/setup.sh --with spark).
set -euo pipefail
build=$1
here=$(cd "$(dirname "$0")" && pwd)
data=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}
skip() { echo "20_spark: skipped: $*"; exit 77; }
[[ -x $data/spark/bin/python ]] || skip "scripts/setup.sh --with spark creates its environment"
command -v java >/dev/null || skip "there is no Java"
compgen -G "$build/python/backplane/_core.*.so" >/dev/null || skip "the Python package is not built"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$data/venv/bin/python" -B "$here/make_model.py" "$work/model.onnx"
PYTHONPATH=$build/python TMPDIR=$work "$data/spark/bin/python" -B "$here/infer.py" "$work/model.onnx" --rows 2000 --kill 2>"$work/log" |
    tee "$work/out" || { tail -20 "$work/log"; exit 1; }
grep -q '"rows": 2000, "errors": 2, .*"survived": true' "$work/out"
