#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpu_check_test.sh BUILD: scripts/gpu_check.sh and all that it packs, on the stand-in for a GPU, with small models and few cases. Only what needs the
# driver's own tools is skipped. Prints the report.
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/gpu_check.sh --build "$build" --tiny --out "$work/bundle.tar.xz"
tar -C "$work" -xf "$work/bundle.tar.xz"
LD_LIBRARY_PATH=$build/tests/standin "$work/backplane-gpu-check/check.py" --report "$work/report.md" --cases 'ops/Relu/*' --suite 'test_relu*' \
    --batches 1 2 --bench 3 --runs 20 >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cat "$work/report.md"
for step in machine core fp16 suite agree leaks speed; do
    grep -q "^| $step | passed |" "$work/report.md" || { echo "gpu_check_test: the step $step did not pass"; exit 1; }
done
rows=$(grep -cE '^\| (resnet50|bert_base|vit_b16|decoder_step)_fp(32|16) \| [12] \| [0-9.]+ ' "$work/report.md")
[[ $rows == 16 ]] || { echo "gpu_check_test: $rows rows were measured, not 16"; exit 1; }
