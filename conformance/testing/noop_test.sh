#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# noop_test.sh PROGRAM PLUGIN…: plugins that compute nothing must not pass any case in which something is computed.
set -euo pipefail

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

program=$1
shift
for plugin; do
    for group in ops graph determinism performance; do
        "$program" --plugin "$plugin" --filter "$group/*" --timeout 5 --out "$out/journal" >/dev/null 2>&1 && {
            echo "$plugin: group $group succeeds"
            exit 1
        }
        # If every output is empty, nothing has to be computed. Such a pass counts no nodes.
        passes=$(grep '"state":"pass"' "$out/journal/journal.jsonl" | grep -c '"nodes":[1-9]' || true)
        [[ $passes -eq 0 ]] || { echo "$plugin: $passes cases of group $group pass"; exit 1; }
        rm -r "$out/journal"
    done
done
