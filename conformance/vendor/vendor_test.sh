#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# vendor_test.sh PROGRAM LIAR PLUGIN: a failure of the liar is minimized into a vendor's own case. The plugin must pass
# this case, and the liar must fail it, except with a wider tolerance.
set -euo pipefail
program=$1 liar=$2 plugin=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# expect STATUS COMMAND...: the command must exit with this status.
expect() {
    local wanted=$1 status=0
    shift
    "$@" >"$work/out" 2>&1 || status=$?
    [[ $status -eq $wanted ]] || { cat "$work/out"; echo "exit status $status, expected $wanted: $*"; exit 1; }
}

expect 1 "$program" repro ops/Sigmoid/float/block/0 --plugin "$liar" --minimize "$work/cases/sigmoid"
grep -q "1 of 1 nodes left (Sigmoid)" "$work/out"
expect 0 "$program" vendor --data "$work/cases" --plugin "$plugin" --out "$work/good"
grep -q '"case":"vendor/sigmoid".*"state":"pass"' "$work/good/journal.jsonl"

# A resumed run must use the same library, also if only the device is named.
mkdir "$work/installed"
cp "$plugin" "$work/installed/"
library=$work/installed/$(basename "$plugin")
by_device=(env "BACKPLANE_BACKEND_FILES=$library" "$program" vendor --data "$work/cases" --device cpu --out "$work/by_device")
expect 0 "${by_device[@]}"
expect 0 "${by_device[@]}" --resume
echo >>"$library"
expect 1 "${by_device[@]}" --resume
grep -q "belongs to another run: plugin_sha256 is" "$work/out"

echo '{"relative": 1e-6, "cases": {"sig*": {"relative": 1e-5}}}' >"$work/cases/tolerance.json"
expect 1 "$program" vendor --data "$work/cases" --plugin "$liar"
echo '{"relative": 1e-6, "cases": {"sig*": {"relative": 1e-2}}}' >"$work/cases/tolerance.json"
expect 0 "$program" vendor --data "$work/cases" --plugin "$liar"
echo '{"cases": {"relu": {"relative": 1e-2}}}' >"$work/cases/tolerance.json"
expect 2 "$program" vendor --data "$work/cases" --plugin "$plugin"
grep -q "'relu' matches no case" "$work/out"

expect 0 "$program" report "$work/good"
expect 0 "$program" compare "$work/good" "$work/good"
