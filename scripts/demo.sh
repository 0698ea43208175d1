#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds, reads the text out of the sample pictures on whatever backends the loader finds, and shows how the CPU backend
# conforms.
set -euo pipefail

usage() {
    cat <<'END'
scripts/demo.sh

Runs scripts/setup.sh, builds the preset dev, lists the backends that the loader found, reads sample pictures, and runs the quick
conformance cases of profile core on the CPU backend: the report is in build/dev/demo.
Exit status: 0 if every picture was read right and no case failed.
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

echo
out=build/dev/demo
rm -rf "$out"
build/dev/bin/backplane conform --plugin build/dev/lib/backplane/libbackplane_cpu.so --profile core --quick --out "$out"
build/dev/bin/backplane conform report "$out"

# A picture of the report, for those who read this over a terminal.
for browser in chromium chromium-browser google-chrome ""; do
    ! command -v "$browser" >/dev/null || break
done
if [[ -z $browser ]]; then
    echo "demo: no Chromium here, so no picture of $out/report.html"
elif timeout 60 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,2000 \
    --screenshot="$PWD/$out/report.png" "file://$PWD/$out/report.html" >"$out/browser.log" 2>&1 && [[ -s $out/report.png ]]; then
    echo "$out/report.png"
else
    echo "demo: $browser made no picture of $out/report.html; $out/browser.log says why" >&2
    exit 1
fi
