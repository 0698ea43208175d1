#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# standin_test.sh CONFORM PLUGIN STANDIN SOURCES [CASES…]: checks that the backend passes these cases on the stand-in for a GPU, which
# is in the folder STANDIN. Without CASES, checks that it reaches level 3 of the core profile; this takes a quarter of an hour, as the
# host's compiler compiles every kernel. The source of each compiled kernel is left in the folder SOURCES, for nvrtc_check.
set -euo pipefail
conform=$1 plugin=$2 standin=$3 sources=$4
shift 4
rm -rf "$sources"
mkdir -p "$sources"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$standin STANDIN_SOURCES=$sources BACKPLANE_CACHE_DIR=$work
if [[ $# -eq 0 ]]; then
    "$conform" --plugin "$plugin" --profile core --require-level L3 --timeout 120 --out "$work/run"
fi
for cases in "$@"; do
    "$conform" --plugin "$plugin" --filter "$cases" --timeout 120 --out "$work/run"
    rm -rf "$work/run"
done
echo "$(find "$sources" -name '*.cu' | wc -l) kernels"
