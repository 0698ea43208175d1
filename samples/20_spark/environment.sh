# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by test.sh and measure.sh, with the build folder in $build: makes the model in a scratch folder, and defines `infer`. Exit status 77
# without PySpark (scripts/setup.sh --with spark), Java or the Python package.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
data=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}
skip() { echo "20_spark: skipped: $*"; exit 77; }
[[ -x $data/spark/bin/python ]] || skip "scripts/setup.sh --with spark creates its environment"
command -v java >/dev/null || skip "there is no Java"
compgen -G "${build:?}/python/backplane/_core.*.so" >/dev/null || skip "the Python package is not built"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$data/venv/bin/python" -B "$here/make_model.py" "$work/model.onnx"

# infer OPTION…: runs infer.py on the model, and shows the end of Spark's log only if that fails. Its output is kept in $work/out.
infer() {
    PYTHONPATH=$build/python TMPDIR=$work "$data/spark/bin/python" -B "$here/infer.py" "$work/model.onnx" "$@" 2>"$work/log" |
        tee "$work/out" || { tail -20 "$work/log"; return 1; }
}
