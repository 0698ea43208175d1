#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# grown_test.sh OLD NEW [CTEST ARGUMENTS…]
#
# Binaries built against one header version work with those built against another. OLD and NEW are build folders of the presets
# dev and grown; in grown, every struct that may grow has one more field. Runs the tests of each build with the libraries and plugins of
# the other, without building again: old programs and hosts on a new loader and new plugins, and the reverse. The CTEST ARGUMENTS must
# exclude abi.layout.
set -euo pipefail
if [[ $# -lt 2 || ! -f $1/CTestTestfile.cmake || ! -f $2/CTestTestfile.cmake ]]; then
    echo "usage: grown_test.sh OLD NEW [CTEST ARGUMENTS…]: two folders in which the presets dev and grown were built" >&2
    exit 2
fi
# shellcheck source=scripts/build.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/build.sh"
old=$(realpath "$1") new=$(realpath "$2")
shift 2
# The libraries that the tests of a build folder load at run time.
loaded=(lib tests/plugins tests/liars bin/backplane-isolated) # backplane-isolated is a part of the loader
work=$(mktemp -d "$new/exchange-XXXXXX")
own= # the build folder whose libraries are moved away, or empty

restore() {
    local folder
    if [[ -n $own ]]; then
        for folder in "${loaded[@]}"; do
            if [[ -e $work/own/$folder ]]; then rm -rf "${own:?}/$folder" && mv "$work/own/$folder" "$own/$folder"; fi
        done
        own=
    fi
}
trap 'restore; rm -rf "$work"' EXIT

# exchanged HOST FROM CTEST ARGUMENTS…: runs the tests of HOST with the libraries of FROM.
exchanged() {
    local host=$1 from=$2 folder
    shift 2
    mkdir -p "$work/own/tests" "$work/own/bin"
    for folder in "${loaded[@]}"; do
        [[ -e $from/$folder ]] || { echo "grown: $from/$folder is missing: build it"; exit 1; }
        cp -a "$from/$folder" "$work/given"
        mv "$host/$folder" "$work/own/$folder"
        own=$host
        mv "$work/given" "$host/$folder"
    done
    ctest --test-dir "$host" -LE gate --no-tests=error --output-on-failure "$@" | tee "$work/tests.txt" |
        grep -vE '^ *(Start|[0-9]+/[0-9]+ .* Passed )' || true
    restore
    summary="$summary; $(basename "$host") with the libraries of $(basename "$from"): $(sed -nE 's/^([0-9]+% tests passed, .*)/\1/p' "$work/tests.txt")$(in_programs "$host/Testing/Temporary/LastTest.log")"
    grep -q '^100% tests passed' "$work/tests.txt" || failed=1
}

# Binaries of a build folder look for libraries in that folder, so isolated backends must be able to read it.
export BACKPLANE_ISOLATE_PATHS=$old:$new
summary="" failed=0
exchanged "$old" "$new" "$@"
exchanged "$new" "$old" "$@"
echo "grown: ${summary#; }"
exit "$failed"
