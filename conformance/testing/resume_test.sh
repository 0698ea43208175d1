#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# resume_test.sh PROGRAM PLUGIN: a run in three shards is killed five to ten times at random points and resumed. After
# merging, its results must equal those of an uninterrupted run.
set -euo pipefail

program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cases=(--plugin "$2" --profile core --jobs 2)

# Prints the states of all cases of a run.
verdict() { sed -nE 's/^\{"case":"([^"]*)".*"state":"([^"]*)".*/\1 \2/p' "$1/journal.jsonl" | sort; }

"$program" "${cases[@]}" --out "$work/whole" >"$work/whole.txt" 2>&1 || true
whole=$(grep -c '"state"' "$work/whole/journal.jsonl")

lines_of() { if [[ -f $1 ]]; then wc -l <"$1"; else echo 0; fi; }

# Resumes the shard and kills it when its journal has grown by a random number of lines. Counts the runs that were
# killed before they ended.
killed=0
run_killed() {
    local journal=$work/$1/journal.jsonl lines until
    lines=$(lines_of "$journal")
    until=$((lines + 1 + RANDOM % (whole / 20)))
    "$program" "${cases[@]}" --shard "$1/3" --out "$work/$1" --resume >/dev/null 2>&1 &
    local process=$!
    while kill -0 "$process" 2>/dev/null && [[ $(lines_of "$journal") -lt $until ]]; do sleep 0.01; done
    if kill -KILL "$process" 2>/dev/null; then killed=$((killed + 1)); fi
    wait "$process" 2>/dev/null || true
}
for i in 1 2 3 1 2 3 1 2 3 1; do run_killed "$i"; done
[[ $killed -ge 5 ]] || { echo "only $killed of ten runs could be killed: nothing is tested"; exit 1; }
if "$program" merge "$work"/[123] >/dev/null 2>&1; then echo "shards that did not end are merged"; exit 1; fi
for i in 1 2 3; do "$program" "${cases[@]}" --shard "$i/3" --out "$work/$i" --resume >/dev/null 2>&1 || true; done
"$program" merge "$work"/[123] --out "$work/merged" >"$work/merged.txt" 2>&1 || true

diff <(verdict "$work/whole") <(verdict "$work/merged")
diff <(grep -E '^L[0-3] ' "$work/whole.txt") <(grep -E '^L[0-3] ' "$work/merged.txt")
echo "killed $killed times; $whole results as in one go"
