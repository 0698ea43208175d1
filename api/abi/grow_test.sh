#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# grow_test.sh INCLUDE: grow.awk adds a field to every struct of the headers in INCLUDE except those that never grow, and fails on
# structs that it cannot parse.
set -euo pipefail
export LC_ALL=C # in other locales, a-z has more or fewer letters
[[ $# -eq 1 && -d $1 ]] || { echo "usage: grow_test.sh INCLUDE: the folder of the public headers" >&2; exit 2; }
include=$(realpath "$1")
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Both sides of the ABI read these structs without a size or a stride.
fixed="buffer bytes chain dim inplace option point range shape text use"

for header in "$include"/backplane/*.h; do awk -f grow.awk "$header"; done >"$work/grown.h"
mapfile -t structs < <(sed -nE 's/^(typedef )?struct bp_([a-z_0-9]+)_t \{$/\2/p' "$work/grown.h")
[[ ${#structs[@]} -gt 0 && ${#structs[@]} -eq $(cat "$include"/backplane/*.h | grep -cE '^(typedef )?struct .*\{') ]] ||
    { echo "grow.awk: ${#structs[@]} structs are read, but the headers have another number of structs"; exit 1; }
for name in "${structs[@]}"; do
    is_grown=$(sed -nE "/^(typedef )?struct bp_${name}_t \{/,/^\}/p" "$work/grown.h" | grep -c 'uint64_t grown;' || true)
    is_fixed=$([[ " $fixed " == *" $name "* ]] && echo 1 || echo 0)
    [[ $((is_grown + is_fixed)) -eq 1 ]] ||
        { echo "bp_${name}_t: grown $is_grown times, listed as fixed $is_fixed times; the sum must be 1"; exit 1; }
done

refused() {
    printf '%s\n' "$1" >"$work/odd.h"
    if awk -f grow.awk "$work/odd.h" >/dev/null 2>&1; then echo "grow.awk accepts: $1"; exit 1; fi
}
refused 'typedef struct {
  int x;
} bp_odd_t;'
refused 'typedef struct bp_odd_t
{
  int x;
} bp_odd_t;'
refused 'struct bp_odd_t { int x; };'
refused 'typedef struct bp_odd_t {
  int x;
}
bp_odd_t;'
