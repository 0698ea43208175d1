#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up and builds what is needed to read the text in sample pictures, and reads it.
set -euo pipefail

usage() {
    cat <<'END'
scripts/demo.sh

Runs scripts/setup.sh --demo, builds the loader, the CPU backend, the program backplane and the sample read_text (preset dev), lists
the backends that the loader found, and reads sample pictures, naming the device that ran the model. It builds no tests and needs none of their
data; scripts/test.sh continues from this build.
Exit status: 0 if every picture was read correctly.
END
}
case ${1-} in
    "") ;;
    --help | -h) usage; exit 0 ;;
    *) echo "demo.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
esac

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/build.sh
source scripts/build.sh
data=$BACKPLANE_DATA

step "packages and data"
scripts/setup.sh --demo
if [[ ! -f $data/ppocr/rec.onnx || ! -f $data/text/expected.tsv ]]; then
    echo "demo: the recognition model or the sample pictures are missing; see the setup output above" >&2
    exit 1
fi

step "build"
# A build folder that is configured already, perhaps with tests and more backends, is not configured again.
[[ -f build/dev/build.ninja ]] || configure dev -DBACKPLANE_TESTS=OFF "-DBACKPLANE_BACKENDS=cpu;null"
build dev backplane backplane-probe backplane_cpu backplane_null read_text

step "backends"
build/dev/bin/backplane list

step "pictures"
build/dev/bin/read_text "$data/ppocr/rec.onnx" --expect "$data/text/expected.tsv" "$data"/text/*.png
summarize demo "the pictures were read"

echo
echo "Next: build/dev/bin/backplane explain $data/ppocr/rec.onnx, a model of your own, or scripts/test.sh"
