#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The share of the device's peak that the OpenCL backend's kernels reach, and ResNet-50 compared with the CPU backend.
# Arguments are passed to bench_opencl.py.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
BACKPLANE_DATA=$(realpath -m "${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}")
export BACKPLANE_DATA
if [[ ! -x $BACKPLANE_DATA/venv/bin/python || ! -f $BACKPLANE_DATA/light/resnet50/model.onnx ]]; then
    echo "bench_opencl: the models or Python's onnx are missing in $BACKPLANE_DATA; this installs them: scripts/setup.sh" >&2
    exit 1
fi
exec "$BACKPLANE_DATA/venv/bin/python" -B scripts/bench_opencl.py "$@"
