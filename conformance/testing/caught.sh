#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# caught.sh PROGRAM HONEST LIAR FILTER: the cases of FILTER must find no fault in the honest plugin and at least one in
# the liar. Prints the liar's row of the table of bad backends, which README.md must contain, and the first fault found.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# shellcheck source=conformance/testing/time_limit.sh
source "$here/time_limit.sh"

# Counts the results of plugin $2 whose state matches $3. The honest plugin gets plenty of time; the time it took limits
# the liar.
count() {
    local limit=60
    if [[ ! -f $out/$1/journal.jsonl ]]; then
        [[ $1 == honest ]] || limit=$(time_limit 5 "$out/honest/journal.jsonl")
        "$program" --plugin "$2" --filter "$filter" --timeout "$limit" --out "$out/$1" >"$out/$1.txt" 2>&1 || true
        cat "$out/$1.txt" >&2
    fi
    grep -cE "\"state\":\"($3)\"" "$out/$1/journal.jsonl" || true
}

program=$1 filter=$4
bad='fail|crash|timeout|mistrusted|infra_error'
[[ $(count honest "$2" pass) -gt 0 || $filter == determinism/* ]] || { echo "the honest plugin passes nothing here"; exit 1; }
[[ $(count honest "$2" "$bad") -eq 0 ]] || { echo "the honest plugin fails too: the filter proves nothing"; exit 1; }
[[ $(count liar "$3" "$bad") -gt 0 ]] || { echo "the lie is not found"; exit 1; }

lie=$(basename "$3" .so)
lie=${lie#libbackplane_}
row="| \`$lie\` | $(sed -n '2s|^// ||p' "$here/lies/$lie.cpp") | ${filter%%/*} |"
echo "$row"
reported=$(sed -n '3s|^// Reported: ||p' "$here/lies/$lie.cpp")
faults=$(grep -E "^($bad) " "$out/liar.txt")
grep -m1 -F -- "$reported" <<<"$faults" ||
    { echo "the lie is found, but not reported as: $reported"; exit 1; }
grep -qxF "$row" "$here/README.md" || { echo "conformance/testing/README.md lacks this row"; exit 1; }
