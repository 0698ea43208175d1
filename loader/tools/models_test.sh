#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# models_test.sh BACKPLANE NAME…: `backplane run` on real models agrees with the stored results of ONNX Runtime.
# A name is a folder of the test data: light/resnet50, ppocr/rec, magika.
set -euo pipefail
program=$1
shift
data=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}
compare=$(dirname "$0")/../../scripts/data/compare.py
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for name in "$@"; do
    model=$data/$name/model.onnx
    [[ -f $model ]] || model=$data/$name.onnx
    if [[ ! -f $model || ! -f $data/$name/output_0.npy || ! -x $data/venv/bin/python ]]; then
        echo "skipped: $name is not in $data; scripts/setup.sh fetches it"
        exit 77
    fi
    input=$("$program" info "$model" --json | "$data/venv/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["inputs"][0]["name"])')
    rm -rf "$out"/*
    "$program" run "$model" --device cpu --input "$input=$data/$name/input_0.npy" --output "$out" >/dev/null
    printf '%-20s ' "$name"
    "$data/venv/bin/python" "$compare" "$out"/*.npy "$data/$name/output_0.npy"
done
