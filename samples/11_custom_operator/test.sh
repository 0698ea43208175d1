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
# y = Shift() over float[2]: a model may call the operator without its input
bare=$(mktemp)
trap 'rm -f "$bare"' EXIT
printf '\010\010:*\012\024\022\001y"\005Shift:\010com.acme\022\001gb\017\012\001y\022\012\012\010\010\001\022\004\012\002\010\002B\004\012\000\020\021B\014\012\010com.acme\020\001' >"$bare"
status=0
output=$("$backplane" explain "$bare" --device acme 2>&1) || status=$?
[[ $status -eq 1 && $output == *"it has 0 inputs; supported: 1"* ]] || { echo "status $status without an input:"; echo "$output"; exit 1; }
echo "11_custom_operator: as expected"
