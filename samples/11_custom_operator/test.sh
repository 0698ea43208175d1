#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh BACKPLANE PLUGIN CPU_MANIFEST MODEL: the plugin's device runs Shift, and Twice as one node. No other device runs Shift.
set -euo pipefail
backplane=$1 plugin=$2 cpu=$3 model=$4
export BACKPLANE_BACKEND_FILES=$cpu:$plugin

# expect TEXT WORD…: the program's output has the text.
expect() {
    local text=$1 output
    shift
    output=$("$backplane" "$@" 2>&1) || { echo "$output"; exit 1; }
    [[ $output == *"$text"* ]] || { echo "no '$text' from $*:"; echo "$output"; exit 1; }
}
expect "Twice/Add  acme  island 0, within node 'Twice' (com.acme.Twice)" explain "$model"
# 2 * a + 3, then Relu
values=2x3xf32=-4,-3,-2,-1,0,1
expect "  0  0  0  1  3  5" run "$model" --input "a=$values"
# If the user forbids Twice on this device, the nodes of its body run elsewhere.
expect "  0  0  0  1  3  5" run "$model" --input "a=$values" --pin op=Twice=cpu
if BACKPLANE_BACKEND_FILES=$cpu "$backplane" run "$model" 2>/dev/null; then echo "Shift ran without its backend"; exit 1; fi
echo "11_custom_operator: as expected"
