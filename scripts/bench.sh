#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares Backplane with ONNX Runtime, interleaved. Arguments are passed to bench.py (--help lists them).
# The first call generates the larger models.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
BACKPLANE_DATA=$(realpath -m "${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}")
export BACKPLANE_DATA
if [[ ! -x $BACKPLANE_DATA/venv/bin/python || ! -f $BACKPLANE_DATA/light/resnet50/model.onnx ]]; then
    echo "bench: the models or ONNX Runtime are missing in $BACKPLANE_DATA; this installs them: scripts/setup.sh" >&2
    exit 1
fi
if [[ ! -x build/dev/bin/backplane || ! -x build/dev/tests/session_bench ]]; then
    echo "bench: build/dev/bin/backplane is missing; this builds it: cmake --preset dev && cmake --build --preset dev" >&2
    exit 1
fi
for model in bert_base minilm6 resnet50_int8 mobilenet_int8; do
    [[ " $* " != *" --help "* && " $* " != *" -h "* ]] || break
    [[ -f $BACKPLANE_DATA/bench/$model/output_0.npy ]] && continue
    echo "bench: making $model"
    "$BACKPLANE_DATA/venv/bin/python" -B scripts/data/make_bench.py "$BACKPLANE_DATA" "$model" 2>/dev/null
done
exec "$BACKPLANE_DATA/venv/bin/python" -B scripts/bench.py "$@"
