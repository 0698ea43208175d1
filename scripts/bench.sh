#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Backplane beside ONNX Runtime on the nine light models, interleaved. Arguments go to bench.py (--help lists them).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
BACKPLANE_DATA=$(realpath -m "${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}")
export BACKPLANE_DATA
if [[ ! -x $BACKPLANE_DATA/venv/bin/python || ! -f $BACKPLANE_DATA/light/resnet50/model.onnx ]]; then
    echo "bench: the models or ONNX Runtime are missing in $BACKPLANE_DATA; this gets them: scripts/setup.sh" >&2
    exit 1
fi
if [[ ! -x build/dev/bin/backplane ]]; then
    echo "bench: build/dev/bin/backplane is missing; this builds it: cmake --preset dev && cmake --build --preset dev" >&2
    exit 1
fi
exec "$BACKPLANE_DATA/venv/bin/python" scripts/bench.py "$@"
