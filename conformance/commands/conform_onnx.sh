#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# conform_onnx.sh PROGRAM DEVICE SUITE MIN_PASS: runs ONNX's test data on one device. SUITE is a folder of Debian's
# package (node, simple, …), or "newest" for the node tests of the onnx package.
set -euo pipefail

data=/usr/share/libonnx-testdata/data/$3
[[ $3 != newest ]] || data=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}/onnx/node
if [[ ! -d $data ]]; then
    echo "skipped: $data is missing; run scripts/setup.sh to fetch it"
    exit 77
fi
exec "$1" onnx --data "$data" --device "$2" --min-pass "$4"
