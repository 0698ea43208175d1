#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh BUILD: classifies files of this repository. Exit status 77 without Magika's model (scripts/setup.sh) or the Python package.
set -euo pipefail
tree=$(cd "$(dirname "$0")/../.." && pwd)
python=("$tree/samples/testing/python.sh" "$1")
data=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}
wheel=$(find "$data/wheels" -name 'magika-*.whl' 2>/dev/null | head -1)
if [[ -z $wheel || ! -s $data/magika/model.onnx ]]; then echo "13_classify_files: skipped: scripts/setup.sh fetches the model"; exit 77; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/extract.py" <<'END'
import sys, zipfile
sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read("magika/models/standard_v3_3/config.min.json"))
END
"${python[@]}" "$work/extract.py" "$wheel" >"$work/config.json" || { cat "$work/config.json"; exit 77; }
for i in $(seq 16); do cp "$tree/scripts/test.sh" "$work/$i.sh"; done # more than a batch
"${python[@]}" "$tree/samples/13_classify_files/classify.py" "$data/magika/model.onnx" "$work/config.json" "$tree/README.md" "$work"/*.sh \
    "$tree/loader/tools/run.cpp" "$tree/scripts/sbom.py" "$tree/CMakePresets.json" | tee "$work/out"
for row in 'README.md +markdown ' '16.sh +shell ' 'run.cpp +cpp ' 'sbom.py +python ' 'CMakePresets.json +json '; do
    grep -qE "^$row" "$work/out" || { echo "13_classify_files: no row $row"; exit 1; }
done
