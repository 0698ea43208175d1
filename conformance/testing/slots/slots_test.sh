#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# slots_test.sh PROGRAM SLOTS ROOT OFFERED SHIPPED… -- COUNTED…: every slot and callback of the ABI must have a user in
# the tree. A case of the harness that passes must call it; for a callback of the loader's structs, framework.txt names
# the test that does. A shipped plugin must offer it, unless unoffered.txt gives the reason. SLOTS holds the output of
# slots.awk, ROOT is the tree, and OFFERED is the program built from offered.cpp. Each SHIPPED is a plugin, and each
# COUNTED a plugin built from counted.cpp. Prints the table.
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

failed=0 index=0 framework=0 unoffered=0
complain() {
    echo "  $1"
    failed=1
}

# Runs the groups that call everything a device may offer, and a few cases of other groups. Only abi/identity may fail:
# the name of the plugin's file differs from its id.
bad='^(fail|crash|timeout|mistrusted|infra_error) +'
for plugin in "$@"; do
    for cases in 'abi/*' 'programs/*' 'memory/*' 'sync/*' 'cache/*' 'weights/*' 'robustness/*' coverage/Add 'ops/Add/*'; do
        BACKPLANE_SLOT_COUNTS=$out/$(basename "$plugin") "$program" --plugin "$plugin" --filter "$cases" --timeout 60 \
            --out "$out/run" >"$out/log" 2>&1 || true
        grep -qE '[1-9][0-9]* of [0-9]+ passed|[1-9][0-9]* pass' "$out/log" || complain "$(basename "$plugin"): no case of $cases passed"
        while read -r line; do complain "$(basename "$plugin"): $line"; done < <(grep -E "$bad" "$out/log" | grep -v abi/identity || true)
        rm -rf "$out/run"
    done
    [[ -f $out/$(basename "$plugin") ]] || { echo "$plugin was not loaded: $(tail -3 "$out/log")"; exit 1; }
done

while IFS=$'(), \t' read -r kind table slot _; do
    used=$(awk -v name="$table.$slot" '$1 == name { print $2 }' "$out/users")
    printf '%-20s %-22s %3d files use it' "$table" "$slot" "$used"
    by_framework=0 no_plugin=0 calls=0 plugins=-
    if [[ $kind != FUNCTION ]]; then
        for plugin in "$@"; do
            calls=$((calls + $(od -An -t u8 -j $((index * 8)) -N 8 "$out/$(basename "$plugin")")))
        done
        index=$((index + 1))
        by_framework=$(grep -cE "^$table\.$slot " "$here/framework.txt" || true)
        printf ', %7d calls by the harness' "$calls"
    fi
    if [[ $table =~ ^bp_(device|coverage|program|instance|memory|sync|cache|weights)_api_t$|^bp_plugin_t$ ]]; then
        plugins=$(grep -cx "$table\.$slot" "$out/offered" || true)
        no_plugin=$(grep -cE "^$table\.$slot " "$here/unoffered.txt" || true)
        printf ', %d shipped plugins offer it' "$plugins"
    fi
    echo
    if [[ $used -eq 0 ]]; then complain "nothing uses it: move it to ext/draft"; fi
    if [[ $kind != FUNCTION && $calls -eq 0 && $by_framework -eq 0 ]]; then complain "no case of the harness calls it"; fi
    if [[ $plugins == 0 && $no_plugin -eq 0 ]]; then complain "no shipped plugin offers it and unoffered.txt does not list it"; fi
    if [[ $plugins != [-0] && $no_plugin -ne 0 ]]; then complain "a shipped plugin offers it: delete its line in unoffered.txt"; fi
    framework=$((framework + by_framework)) unoffered=$((unoffered + no_plugin))
done <"$slots"
for list in framework unoffered; do
    while read -r name _; do
        grep -q "(${name%.*}, ${name##*.})" "$slots" || complain "$list.txt lists $name, which does not exist"
    done < <(grep -v '^#' "$here/$list.txt")
done
while read -r name test; do
    grep -q "struct ${name%.*} {" "$root/api/include/backplane/loader.h" || complain "framework.txt lists $name, which is not of loader.h"
    file=$(grep -rlE "^TEST(_F|_P)?\(${test%.*}, ${test##*.}\)" "$root/loader" "$root/api" --include='*_test.cpp' | head -1 || true)
    if [[ -z $file ]]; then
        complain "$name: there is no test $test"
    elif ! grep -q "\.${name##*.} = " "$file"; then
        complain "$name: nothing in $file sets it"
    fi
done < <(grep -v '^#' "$here/framework.txt")
echo "$(wc -l <"$slots") slots, callbacks and functions: $framework for frameworks alone, $unoffered offered by no shipped plugin"
exit $failed
