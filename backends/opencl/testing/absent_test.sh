#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# absent_test.sh BACKPLANE PLUGIN: a machine without an OpenCL driver, or without OpenCL at all, lists no such device and says why.
set -euo pipefail
program=$1
export BACKPLANE_BACKEND_FILES=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work # of the probe's answers

# says NAME TEXT: `list` ends as where no device is found, `why` too, and both say TEXT.
says() {
    local command status
    for command in list "why opencl"; do
        status=0
        # shellcheck disable=SC2086 # words
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

# The ICD loader by a name that no machine has.
sed 's/libOpenCL\.so\.1/libOpenCX.so.1/' "$2" >"$work/libbackplane_opencl.so"
BACKPLANE_BACKEND_FILES=$work/libbackplane_opencl.so says "without the ICD loader" "libOpenCX.so.1"
