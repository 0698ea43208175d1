#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# models_test.sh BACKPLANE BACKEND LEAST NAME [OPTION…]: checks that the model NAME of the test data runs on a GPU backend, opencl or cuda, and
# agrees with the stored results. Nodes that BACKEND does not support run on the CPU backend; at least LEAST percent of the arithmetic must run
# on BACKEND.
set -euo pipefail
program=$1 backend=$2 least=$3 name=$4
shift 4
data=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}
model=$data/$name/model.onnx
[[ -f $model ]] || model=$data/$name.onnx

if [[ ! -f $model || ! -x $data/venv/bin/python ]]; then
    echo "skipped: $name is not in $data; scripts/setup.sh fetches it"
    exit 77
fi
listed=$("$program" list --json) || { echo "backplane list fails"; exit 1; }
if [[ $listed != *"\"backend\": \"$backend\""* ]]; then
    echo "skipped: there is no device of the backend $backend"
    exit 77
fi
options="--device $backend,cpu --fallback prefer $*"
# Does not store kernel binaries: PoCL compiles a kernel a second time when its binary is queried, and each model starts only once.
[[ $backend != opencl ]] || options+=" --set opencl.binaries=driver"
# shellcheck disable=SC2086
"$program" explain "$model" $options --json | "$data/venv/bin/python" -c '
import json, sys
share = 100 * json.load(sys.stdin)["arithmetic"][sys.argv[1]]
print(f"{share:.2f}% of the arithmetic is on {sys.argv[1]}")
sys.exit(share < float(sys.argv[2]))' "$backend" "$least"
MODELS_TEST_OPTIONS=$options "$(dirname "$0")/../../../loader/tools/models_test.sh" "$program" "$name"
