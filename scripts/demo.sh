#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds, and reads the text out of the sample pictures on whatever backends the loader finds.
set -euo pipefail

usage() {
    cat <<'END'
scripts/demo.sh

Runs scripts/setup.sh, builds the preset dev, lists the backends that the loader found, and reads sample pictures.
Exit status: 0 if every picture was read right.
END
}
case ${1-} in
    "") ;;
    --help | -h) usage; exit 0 ;;
    *) echo "demo.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
esac

cd "$(dirname "${BASH_SOURCE[0]}")/.."
data=$(realpath -m "${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}")
export BACKPLANE_DATA=$data

scripts/setup.sh
cmake --preset dev
cmake --build build/dev --parallel "$(nproc)"

if [[ ! -f $data/ppocr/rec.onnx || ! -f $data/text/expected.tsv ]]; then
    echo "demo: the model or the pictures are missing (see setup's lines above); the build itself is in build/dev/bin" >&2
    exit 1
fi

echo
build/dev/bin/backplane list
echo
build/dev/bin/read_text "$data/ppocr/rec.onnx" --expect "$data/text/expected.tsv" "$data"/text/*.png
