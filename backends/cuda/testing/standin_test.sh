#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# standin_test.sh CONFORM PLUGIN STANDIN SOURCES: the backend reaches level 3 of the core profile on the stand-in for a GPU.
# The folder SOURCES then has every kernel that was compiled, for nvrtc_check.
set -euo pipefail
rm -rf "$4"
mkdir -p "$4"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$3 STANDIN_SOURCES=$4 BACKPLANE_CACHE_DIR=$work
"$1" --plugin "$2" --profile core --require-level L3 --timeout 120
echo "$(find "$4" -name '*.cu' | wc -l) kernels"
