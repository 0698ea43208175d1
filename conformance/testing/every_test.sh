#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# every_test.sh PROGRAM MARKER LIAR STATE: LIAR crashes or hangs in exactly the cases in which MARKER returns wrong
# results. The run must finish, with STATE in these cases and in no others.
set -euo pipefail

# shellcheck source=conformance/testing/time_limit.sh
source "$(dirname "${BASH_SOURCE[0]}")/time_limit.sh"
program=$1 state=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Writes the states of all cases of a run with plugin $2 and $3 seconds per case to $work/$1.txt.
states() {
    "$program" --plugin "$2" --profile core --filter 'ops/*' --timeout "$3" --out "$work/$1" >/dev/null 2>&1 || true
    sed -nE 's/^\{"case":"([^"]*)".*"state":"([^"]*)".*/\1 \2/p' "$work/$1/journal.jsonl" | LC_ALL=C sort >"$work/$1.txt"
}
states marked "$2" 60
states seen "$3" "$(time_limit 2 "$work/marked/journal.jsonl")"

total=$(grep -c . "$work/marked.txt")
expected=$(grep -c ' fail$' "$work/marked.txt" || true)
[[ $total -gt 1000 && $expected -gt 2 && $expected -lt $((total / 20)) ]] || { echo "$expected of $total: too few or too many"; exit 1; }
sed -i "s/ fail\$/ $state/" "$work/marked.txt"
diff "$work/marked.txt" "$work/seen.txt"
echo "$expected of $total cases end in $state, all others as they should"
