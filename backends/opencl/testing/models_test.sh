#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# models_test.sh BACKPLANE LEAST NAME [OPTION…]: checks that the model NAME of the test data runs on OpenCL and agrees with the stored
# results. Nodes that OpenCL does not support run on the CPU backend; at least LEAST percent of the arithmetic must run on OpenCL.
set -euo pipefail
program=$1 least=$2 name=$3
shift 3
data=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}
model=$data/$name/model.onnx
[[ -f $model ]] || model=$data/$name.onnx

if [[ ! -f $model || ! -x $data/venv/bin/python ]]; then
    echo "skipped: $name is not in $data; scripts/setup.sh fetches it"
    exit 77
fi
listed=$("$program" list --json) || { echo "backplane list fails"; exit 1; }
if [[ $listed != *'"backend": "opencl"'* ]]; then
    echo "skipped: this machine has no OpenCL device; scripts/setup.sh installs one for the processor"
    exit 77
fi
# Does not store kernel binaries: PoCL compiles a kernel a second time when its binary is queried, and each model starts only once.
options="--device opencl,cpu --fallback prefer --set opencl.binaries=driver $*"
# shellcheck disable=SC2086
"$program" explain "$model" $options --json | "$data/venv/bin/python" -c '
import json, sys
share = 100 * json.load(sys.stdin)["arithmetic"]["opencl"]
print(f"{share:.2f}% of the arithmetic is on OpenCL")
sys.exit(share < float(sys.argv[1]))' "$least"
MODELS_TEST_OPTIONS=$options "$(dirname "$0")/../../../loader/tools/models_test.sh" "$program" "$name"
