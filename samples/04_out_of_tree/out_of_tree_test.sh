#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# out_of_tree_test.sh BUILD SOURCE MODEL: installs a build into a fresh folder. With only that folder, builds a copy of
# backends/null, on its own and inside another project, and runs a model on both.
set -eu
export CMAKE_GENERATOR="${CMAKE_GENERATOR:-Ninja}" # which scripts/setup.sh installs; make may be missing
build=$1 source=$2 model=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -z "${SANITIZER-}" ] || export CXXFLAGS="-fsanitize=$SANITIZER"
unset BACKPLANE_BACKEND_FILES BACKPLANE_ADD_BACKEND_FILES

cmake --install "$build" --prefix "$work/prefix" >/dev/null
export CMAKE_PREFIX_PATH="$work/prefix"

cp -r "$source/backends/null" "$work/null"
cmake -S "$work/null" -B "$work/null/build" >/dev/null
cmake --build "$work/null/build"
"$source/api/abi/exports_test.sh" plugin "$work/null/build/libbackplane_null.so"

mkdir "$work/project"
cp "$source/samples/04_out_of_tree/CMakeLists.txt" "$source/samples/04_out_of_tree/run_on.cpp" "$work/project"
cp -r "$source/backends/null" "$work/project/backend"
cmake -S "$work/project" -B "$work/project/build" >/dev/null
cmake --build "$work/project/build"

library_folder=$(dirname "$(find "$work/prefix" -name 'libbackplane.so.1')")
export LD_LIBRARY_PATH="$library_folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
if [ -x "$work/prefix/bin/backplane" ]; then # the installed program finds the installed backends next to it
    "$work/prefix/bin/backplane" list
fi
PKG_CONFIG_PATH="$library_folder/pkgconfig" pkg-config --exists --print-errors backplane
for manifest in "$work/null/build/null.json" "$work/project/build/backend/null.json"; do
    "$source/samples/testing/expect.sh" 0 "on null: 0 0 0 2 4 6" "$work/project/build/run_on" "$manifest" "$model"
done
