#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# layout_test.sh PROGRAM GOLDEN: what the headers promise now is what was promised.
set -eu
now=$(mktemp)
trap 'rm -f "$now"' EXIT
"$1" >"$now"
if ! diff -u "$2" "$now"; then
    echo "The ABI differs from $2. Before 1.0 is tagged it may, on purpose, with a line in CHANGELOG.md:"
    echo "  $1 > $2"
    exit 1
fi
