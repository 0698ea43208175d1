#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# absent_test.sh BACKPLANE PLUGIN: a machine without NVIDIA's driver lists no CUDA device and says why.
set -euo pipefail
export BACKPLANE_BACKEND_FILES=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work # where the loader stores the probe's results
# A copy of the plugin that opens the driver by a name that no machine has.
sed 's/libcuda\.so\.1/libcudx.so.1/' "$2" >"$work/libbackplane_cuda.so"
export BACKPLANE_BACKEND_FILES=$work/libbackplane_cuda.so
for command in list "why cuda"; do
    status=0
    # shellcheck disable=SC2086 # splits into words
    "$1" $command >"$work/out" 2>"$work/err" || status=$?
    if [[ $status -gt 1 ]] || ! grep -q "driver not found" "$work/out"; then
        echo "exit status $status of '$command', no 'driver not found' in"
        cat "$work/out" "$work/err"
        exit 1
    fi
done
grep -m1 -o "driver not found.*" "$work/out"
