#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# aarch64.sh: builds api, the loader and the CPU backend for 64-bit Arm, without precompiled headers, and runs their unit tests in QEMU.
# The libraries come as packages of this system's release, unpacked below $BACKPLANE_DATA. Exit status: 0 if all tests pass, 1 if one
# does not or nothing can be built, 77 if the cross compiler, mmdebstrap or QEMU are missing.
set -euo pipefail
[[ $# -eq 0 ]] || { echo "aarch64.sh: unknown argument '$1': it takes none" >&2; exit 2; }
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=scripts/build.sh
source scripts/build.sh
data=$(realpath -m "${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}")
export BACKPLANE_SYSROOT=$data/aarch64
for tool in aarch64-linux-gnu-g++ mmdebstrap qemu-aarch64; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is missing; scripts/setup.sh --gates installs it"; exit 77; }
done

packages=libc6-dev,libstdc++-12-dev,libdnnl-dev,libre2-dev,libtbb-dev,libhwloc-dev,libboost-dev,libboost-filesystem-dev,libfmt-dev
packages+=,nlohmann-json3-dev,libcli11-dev,libprotozero-dev,libprotobuf-dev,libsodium-dev,libjpeg-dev,libopenjp2-7-dev,libpng-dev
packages+=,libtiff-dev,libwebp-dev,libgtest-dev,libgmock-dev,libbenchmark-dev
if [[ $(cat "$BACKPLANE_SYSROOT/packages" 2>/dev/null) != "$packages" ]]; then
    # shellcheck disable=SC1091
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    echo "aarch64: unpacking the libraries for $release"
    rm -rf "$BACKPLANE_SYSROOT"
    mmdebstrap --quiet --arch=arm64 --variant=extract --include="$packages" "$release" "$BACKPLANE_SYSROOT" ||
        { echo "aarch64: the packages of $release for arm64 are not available"; exit 1; }
    echo "$packages" >"$BACKPLANE_SYSROOT/packages"
fi

mkdir -p build
cmake --preset aarch64 >build/configure.txt 2>&1 || { cat build/configure.txt; exit 1; }
folders='(api|loader|backends)-unit-tests'
# The programs that an earlier run replaced, see below: the build runs some of them.
for program in build/aarch64/emulated/*; do [[ ! -f $program ]] || mv "$program" build/aarch64/bin/; done
cmake --build build/aarch64 --parallel "$(nproc)" --target api-unit-tests loader-unit-tests backends-unit-tests

# The system cannot execute the programs that tests start themselves, such as backplane-probe. Each is replaced by a script that starts it
# in QEMU.
mkdir -p build/aarch64/emulated
for program in build/aarch64/bin/*; do
    [[ $(head -c 4 "$program" | tail -c 3) == ELF ]] || continue
    emulated=$PWD/build/aarch64/emulated/$(basename "$program")
    mv "$program" "$emulated"
    printf '#!/bin/sh\nexec qemu-aarch64 -L "%s" "%s" "$@"\n' "$BACKPLANE_SYSROOT" "$emulated" >"$program"
    chmod +x "$program"
done
export XDG_CACHE_HOME=$PWD/build/aarch64/cache BACKPLANE_DATA=$data # an empty cache, so that plugins are probed again
rm -rf "$XDG_CACHE_HOME"
export BACKPLANE_WHOLE_PROGRAMS=1 # QEMU translates a program again at each start
export BACKPLANE_EMULATED=1 # a few tests are skipped: see loader/testing/emulated.h
ctest --test-dir build/aarch64 -L "^$folders\$" --output-on-failure -j "$(nproc)" --timeout 1200 | tee build/aarch64/tests.txt | grep -v '  Passed  ' || true
summary=$(sed -nE 's/^([0-9]+% tests passed, .*)/\1/p' build/aarch64/tests.txt)
echo "aarch64: $summary$(in_programs build/aarch64/Testing/Temporary/LastTest.log)"
[[ $summary == *" 0 tests failed out of"* ]]
