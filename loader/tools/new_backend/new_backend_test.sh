#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# new_backend_test.sh BUILD SOURCE: a project written by `backplane new-backend` builds with only an installed Backplane, passes its own
# test, is listed, and no longer contains the template's name, null.
set -eu
export CMAKE_GENERATOR="${CMAKE_GENERATOR:-Ninja}" # which scripts/setup.sh installs; make may be missing
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -z "${SANITIZER-}" ] || export CXXFLAGS="-fsanitize=$SANITIZER"
unset BACKPLANE_BACKEND_FILES BACKPLANE_ADD_BACKEND_FILES

cmake --install "$build" --prefix "$work/prefix" >/dev/null
backplane=$work/prefix/bin/backplane
expect="$source/samples/testing/expect.sh"

"$expect" 2 "'Acme'" "$backplane" new-backend Acme "$work/bad"
"$expect" 2 "taken" "$backplane" new-backend loader "$work/bad"
for plugin in "$source"/backends/*/plugin.cpp; do
    "$expect" 2 "taken" "$backplane" new-backend "$(basename "$(dirname "$plugin")")" "$work/bad"
done
"$expect" 1 "not empty" "$backplane" new-backend acme "$work/prefix"
"$expect" 1 "is a file" "$backplane" new-backend acme "$backplane"
[ ! -e "$work/bad" ]

# project ID [OPTION…]: writes, builds, tests and lists a project of that name; the harness must find no fault.
project() {
    id=$1
    shift
    "$backplane" new-backend "$id" "$work/$id" "$@"
    if grep -rniw "null" "$work/$id" --include=* | grep -v "NULL"; then echo "the skeleton's name is left"; exit 1; fi
    if grep -rn "null_\|_null\|Apache" "$work/$id"; then echo "the skeleton's names are left"; exit 1; fi
    cmake -S "$work/$id" -B "$work/$id/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_INSTALL_PREFIX="$work/prefix" >/dev/null
    cmake --build "$work/$id/build" -j2
    ctest --test-dir "$work/$id/build" --output-on-failure
    BACKPLANE_BACKEND_FILES=$work/$id/build/$id.json "$expect" 0 "device" "$backplane" list
    "$work/prefix/bin/backplane-conform" --plugin "$work/$id/build/libbackplane_$id.so" --require-level L1
    cmake --install "$work/$id/build" >/dev/null
    "$expect" 0 "accepted" "$backplane" why "$id"
}
project acme
project corp --compiler
