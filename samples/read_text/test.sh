#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reads every sample picture; all texts must be right. A file that is not a picture must lead to a clear error.
set -euo pipefail
program=$1
data=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}
if [[ ! -f $data/ppocr/rec.onnx || ! -f $data/text/expected.tsv ]]; then
    echo "skipped: no $data/ppocr/rec.onnx or $data/text/; scripts/setup.sh fetches them"
    exit 77
fi
"$program" "$data/ppocr/rec.onnx" --expect "$data/text/expected.tsv" "$data"/text/*.png

bad=$(mktemp)
trap 'rm -f "$bad"' EXIT
echo "no picture" >"$bad"
status=0
message=$("$program" "$data/ppocr/rec.onnx" "$bad" 2>&1) || status=$?
echo "$message"
[[ $status == 1 && $message == *"$bad"* ]]
