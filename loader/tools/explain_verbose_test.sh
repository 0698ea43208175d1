#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# explain_verbose_test.sh BACKPLANE CPU_MANIFEST: `explain --verbose` logs the implementation that each node of a real model gets, and why
# the implementations before it in the operator's list refused the node.
set -euo pipefail
program=$1
export BACKPLANE_BACKEND_FILES=$2
model=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}/light/squeezenet/model.onnx
if [[ ! -f $model ]]; then
    echo "skipped: $model is not there; scripts/setup.sh fetches it"
    exit 77
fi
log=$("$program" explain "$model" --device cpu --verbose 2>&1 >/dev/null)
chosen=$(LC_ALL=C grep -cE "debug: cpu: Conv '.+': conv=[a-z0-9_]+" <<<"$log" || true)
refused=$(LC_ALL=C grep -cE "debug: cpu: Conv '.+': conv=[a-z0-9_]+ \([a-z0-9_]+: .+\)$" <<<"$log" || true)
echo "$chosen of 26 convolutions with an implementation, $refused with a refusal"
[[ $chosen -eq 26 && $refused -gt 0 ]]
