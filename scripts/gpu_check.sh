#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

usage() {
    cat <<'END'
scripts/gpu_check.sh [--build FOLDER] [--out FILE] [--tiny]

Packs what checks and measures the CUDA backend on a machine with a GPU, where nothing but a driver and Python is needed: the programs, the
backends, the libraries that they load, NVRTC, ONNX's node cases and models without weights. There:

  tar xf backplane-gpu-check.tar.xz && backplane-gpu-check/check.py

  --build FOLDER  the build that is packed (build/dev)
  --out FILE      the archive (build/backplane-gpu-check.tar.xz)
  --tiny          small models, for the stand-in for a GPU

Exit status: 0, or 1 if something is missing or the archive is above its limit of 60 MB, 2 for wrong usage.
END
}

build=build/dev out=build/backplane-gpu-check.tar.xz tiny=() limit=60000000
cd "$(dirname "${BASH_SOURCE[0]}")/.."
while [[ $# -gt 0 ]]; do
    case $1 in
        --build) build=${2:?--build needs a folder}; shift 2 ;;
        --out) out=${2:?--out needs a file}; shift 2 ;;
        --tiny) tiny=(--tiny); shift ;;
        --help | -h) usage; exit 0 ;;
        *) echo "gpu_check.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
    esac
done
data=$(realpath -m "${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}")
complain() { echo "gpu_check.sh: $1" >&2; exit 1; }
[[ -e $build/lib/backplane/libbackplane_cuda.so ]] || complain "$build has no CUDA backend: scripts/setup.sh --cuda, then build"
command -v xz >/dev/null || complain "xz is missing: scripts/setup.sh --gates installs it"
[[ -d $data/onnx/node ]] || complain "$data/onnx/node is missing: scripts/setup.sh makes it"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=$work/backplane-gpu-check
cmake --install "$build" --prefix "$bundle" --strip >/dev/null
rm -rf "$bundle"/{include,share/doc,share/man,lib/cmake,lib/pkgconfig} "$bundle"/lib/libonnxifi* "$bundle"/lib/backplane/libbackplane_onnxifi.so "$bundle"/share/backplane/backends.d/onnxifi.json

# The libraries that the programs and backends load, except the C library.
mapfile -t needed < <(ldd "$bundle"/bin/* "$bundle"/lib/backplane/*.so 2>/dev/null | awk '/=> \// { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*|libbackplane[^/]*)\.so' )
cp -L "${needed[@]}" "$bundle/lib/"
nvrtc=$(for folder in "${CUDA_PATH:-/usr/local/cuda}/lib64" "$data/cuda/nvidia/cu13/lib"; do ls -d "$folder"/libnvrtc.so.1[23] 2>/dev/null || true; done | head -1)
[[ -n $nvrtc ]] || complain "NVRTC is missing: scripts/setup.sh --cuda"
cp -L "$nvrtc" "$(dirname "$nvrtc")"/libnvrtc-builtins.so.1[23].* "$bundle/lib/"
strip --strip-unneeded "$bundle"/lib/*.so* 2>/dev/null || true

cp -r "$data/onnx/node" "$bundle/node"
"$data/venv/bin/python" -B scripts/gpu_check/make_models.py "${tiny[@]}" "$bundle/models"
cp scripts/gpu_check/{check,peer,make_weights}.py "$bundle/"

mkdir -p "$(dirname "$out")"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -c backplane-gpu-check | xz -T0 -6 >"$out"
bytes=$(stat -c %s "$out")
echo "$out: $((bytes / 1000000)) MB"
[[ $bytes -le $limit ]] || complain "the archive has $bytes bytes, more than $limit"
