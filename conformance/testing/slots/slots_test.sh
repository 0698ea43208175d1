#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# slots_test.sh PROGRAM SLOTS ROOT OFFERED SHIPPED… -- COUNTED…: every slot and callback of the ABI must have a user in
# the tree. A case of the harness must call it and a shipped plugin must offer it, unless uncalled.txt or unoffered.txt
# gives the reason. SLOTS holds the output of slots.awk, ROOT is the tree, and OFFERED is the program built from
# offered.cpp. Each SHIPPED is a plugin, and each COUNTED a plugin built from counted.cpp. Prints the table.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
program=$1 slots=$2 root=$3 offered=$4
shift 4
shipped=()
while [[ $1 != -- ]]; do shipped+=("$1") && shift; done
shift

"$here/users.py" "$slots" "$root" >"$out/users"
"$offered" "${shipped[@]}" >"$out/offered"

failed=0 index=0 uncalled=0 unoffered=0
complain() {
    echo "  $1"
    failed=1
}

# Runs the groups that call everything a device may offer, and a few cases of other groups. Failures are ignored: other
# tests check them, and here the name of the plugin's file differs from its id.
for plugin in "$@"; do
    for cases in 'abi/*' 'programs/*' 'memory/*' 'sync/*' 'cache/*' 'weights/*' 'robustness/*' coverage/Add 'ops/Add/*'; do
        BACKPLANE_SLOT_COUNTS=$out/$(basename "$plugin") "$program" --plugin "$plugin" --filter "$cases" --timeout 60 \
            --out "$out/run" >"$out/log" 2>&1 || true
        rm -rf "$out/run"
    done
    [[ -f $out/$(basename "$plugin") ]] || { echo "$plugin was not loaded: $(tail -3 "$out/log")"; exit 1; }
done

while IFS=$'(), \t' read -r kind table slot _; do
    used=$(awk -v name="$table.$slot" '$1 == name { print $2 }' "$out/users")
    printf '%-20s %-22s %3d files use it' "$table" "$slot" "$used"
    no_case=0 no_plugin=0 calls=0 plugins=-
    if [[ $kind != FUNCTION ]]; then
        for plugin in "$@"; do
            calls=$((calls + $(od -An -t u8 -j $((index * 8)) -N 8 "$out/$(basename "$plugin")")))
        done
        index=$((index + 1))
        no_case=$(grep -cE "^$table\.$slot " "$here/uncalled.txt" || true)
        printf ', %7d calls by the harness' "$calls"
    fi
    if [[ $table =~ ^bp_(device|coverage|program|instance|memory|sync|cache|weights)_api_t$|^bp_plugin_t$ ]]; then
        plugins=$(grep -cx "$table\.$slot" "$out/offered" || true)
        no_plugin=$(grep -cE "^$table\.$slot " "$here/unoffered.txt" || true)
        printf ', %d shipped plugins offer it' "$plugins"
    fi
    echo
    if [[ $used -eq 0 ]]; then complain "nothing uses it: move it to ext/draft"; fi
    if [[ $kind != FUNCTION && $calls -eq 0 && $no_case -eq 0 ]]; then complain "no case calls it and uncalled.txt does not list it"; fi
    if [[ $calls -ne 0 && $no_case -ne 0 ]]; then complain "a case calls it: delete its line in uncalled.txt"; fi
    if [[ $plugins == 0 && $no_plugin -eq 0 ]]; then complain "no shipped plugin offers it and unoffered.txt does not list it"; fi
    if [[ $plugins != [-0] && $no_plugin -ne 0 ]]; then complain "a shipped plugin offers it: delete its line in unoffered.txt"; fi
    if [[ $no_case -ne 0 && $no_plugin -ne 0 ]]; then complain "neither a case nor a shipped plugin: move it to ext/draft"; fi
    uncalled=$((uncalled + no_case)) unoffered=$((unoffered + no_plugin))
done <"$slots"
for list in uncalled unoffered; do
    while read -r name _; do
        grep -q "(${name%.*}, ${name##*.})" "$slots" || complain "$list.txt lists $name, which does not exist"
    done < <(grep -v '^#' "$here/$list.txt")
done
echo "$(wc -l <"$slots") slots, callbacks and functions: $uncalled not called by the harness, $unoffered offered by no shipped plugin"
exit $failed
