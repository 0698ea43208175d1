#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# models_test.sh BACKPLANE NAME…: `backplane run` on real models agrees with the stored results of ONNX Runtime.
# A name is a folder of the test data: light/resnet50, ppocr/rec, magika. MODELS_TEST_OPTIONS: options of `backplane run`, by
# default "--device cpu".
set -euo pipefail
program=$1
shift
data=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}
compare=$(dirname "$0")/../../scripts/data/compare.py
out=$(mktemp -d)
read -ra options <<<"${MODELS_TEST_OPTIONS:---device cpu}"

# names inputs|outputs MODEL: prints one name per line.
names() {
    "$program" info "$2" --json | "$data/venv/bin/python" -c \
        'import json, sys; print("\n".join(value["name"] for value in json.load(sys.stdin)[sys.argv[1]]))' "$1"
}
trap 'rm -rf "$out"' EXIT
for name in "$@"; do
    model=$data/$name/model.onnx
    [[ -f $model ]] || model=$data/$name.onnx
    if [[ ! -f $model || ! -f $data/$name/output_0.npy || ! -x $data/venv/bin/python ]]; then
        echo "skipped: $name is not in $data; scripts/setup.sh fetches it"
        exit 77
    fi
    # Files are numbered in the order of the model's inputs and outputs.
    mapfile -t inputs < <(names inputs "$model")
    mapfile -t outputs < <(names outputs "$model")
    arguments=()
    for i in "${!inputs[@]}"; do
        [[ ! -f $data/$name/input_$i.npy ]] || arguments+=(--input "${inputs[i]}=$data/$name/input_$i.npy")
    done
    rm -rf "${out:?}"/*
    "$program" run "$model" "${options[@]}" "${arguments[@]}" --output "$out" >/dev/null
    for i in "${!outputs[@]}"; do
        [[ -f $data/$name/output_$i.npy ]] || continue
        printf '%-20s %-20s ' "$name" "${outputs[i]}"
        "$data/venv/bin/python" "$compare" "$out/${outputs[i]//[^[:alnum:]._-]/_}.npy" "$data/$name/output_$i.npy"
    done
done
