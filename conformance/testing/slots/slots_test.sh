#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# slots_test.sh PROGRAM SLOTS ROOT COUNTED…: every slot of the ABI has a user in the tree and is called by a case of the harness, or
# uncalled.txt says why it is not. SLOTS are the lines of slots.awk, ROOT is the tree, each COUNTED a plugin of counted.cpp. Prints the
# table.
set -euo pipefail

here=$(dirname "${BASH_SOURCE[0]}")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
program=$1 slots=$2 root=$3
shift 3

# The groups in which everything that a device may offer is called, and a few cases of the others.
for plugin in "$@"; do
    for cases in 'abi/*' 'programs/*' 'memory/*' 'sync/*' 'cache/*' 'weights/*' 'robustness/*' coverage/Add 'ops/Add/*'; do
        BACKPLANE_SLOT_COUNTS=$out/$(basename "$plugin") "$program" --plugin "$plugin" --filter "$cases" --timeout 60 \
            --out "$out/run" >"$out/log" 2>&1 || true
        rm -rf "$out/run"
    done
done

# users TABLE SLOT: how many files of the tree call it, or read it to call it: of a backend's tables the loader, of the others SDK and
# backends.
users() {
    local folders="$root/api/cpp/backplane $root/backends"
    [[ $1 =~ ^bp_(device|coverage|program|instance|memory|sync|cache|weights)_api_t$|^bp_plugin_t$ ]] && folders=$root/loader
    # shellcheck disable=SC2086
    grep -rlE "(->|\.)$2\b" $folders --include='*.cpp' --include='*.h' --include='*.hpp' | grep -cvE '_test\.cpp|/testing/' || true
}

failed=0 index=0 uncalled=0
while IFS=$'(), \t' read -r _ table slot _; do
    calls=0
    for plugin in "$@"; do
        [[ -f $out/$(basename "$plugin") ]] || { echo "$plugin was not loaded: $(tail -3 "$out/log")"; exit 1; }
        calls=$((calls + $(od -An -t u8 -j $((index * 8)) -N 8 "$out/$(basename "$plugin")")))
    done
    index=$((index + 1))
    used=$(users "$table" "$slot")
    printf '%-20s %-18s %3d files use it, %7d calls by the harness\n' "$table" "$slot" "$used" "$calls"
    listed=$(grep -cE "^$table\.$slot " "$here/uncalled.txt" || true)
    if [[ $used -eq 0 ]]; then echo "  nothing shipped uses it: move it to ext/draft"; failed=1; fi
    if [[ $calls -eq 0 && $listed -eq 0 ]]; then echo "  no case calls it and uncalled.txt does not list it"; failed=1; fi
    if [[ $calls -ne 0 && $listed -ne 0 ]]; then echo "  a case calls it: delete its line in uncalled.txt"; failed=1; fi
    uncalled=$((uncalled + listed))
done <"$slots"
echo "$index slots, $uncalled of them not called by the harness (uncalled.txt)"
exit $failed
