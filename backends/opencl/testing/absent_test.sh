#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# absent_test.sh BACKPLANE PLUGIN: a machine without an OpenCL driver, or without OpenCL at all, lists no OpenCL device and says why.
set -euo pipefail
program=$1
export BACKPLANE_BACKEND_FILES=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work # where the loader stores the probe's results

# says NAME TEXT: checks that `list` and `why opencl` exit with status 0 or 1 and print TEXT. NAME names the check in messages.
says() {
    local command status
    for command in list "why opencl"; do
        status=0
        # shellcheck disable=SC2086 # splits into words
        "$program" $command >"$work/out" 2>"$work/err" || status=$?
        if [[ $status -gt 1 ]] || ! grep -q "$2" "$work/out"; then
            echo "$1: exit status $status of '$command', no '$2' in"
            cat "$work/out" "$work/err"
            exit 1
        fi
    done
    echo "$1: $(grep -m1 -o "$2.*" "$work/out")"
}

OCL_ICD_VENDORS=/nonexistent OCL_ICD_FILENAMES='' says "without a driver" "no OpenCL platform is installed"

# A copy of the plugin that opens the ICD loader by a name that no machine has.
sed 's/libOpenCL\.so\.1/libOpenCX.so.1/' "$2" >"$work/libbackplane_opencl.so"
BACKPLANE_BACKEND_FILES=$work/libbackplane_opencl.so says "without the ICD loader" "libOpenCX.so.1"
