#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# conform_onnx.sh PROGRAM DEVICE MIN_PASS: ONNX's node tests as Debian packages them, on one device.
set -euo pipefail

data=${BACKPLANE_ONNX_NODE_DATA:-/usr/share/libonnx-testdata/data/node}
if [[ ! -d $data ]]; then
    echo "skipped: $data is missing; this fetches it: scripts/setup.sh"
    exit 77
fi
exec "$1" onnx --data "$data" --device "$2" --min-pass "$3"
