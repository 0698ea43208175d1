#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# grow_test.sh INCLUDE: grow.awk grows every struct of the headers in INCLUDE but those that never grow, and fails on what it cannot read.
set -euo pipefail
[[ $# -eq 1 && -d $1 ]] || { echo "usage: grow_test.sh INCLUDE: the folder of the public headers" >&2; exit 2; }
include=$(realpath "$1")
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# wanted NUMBER HEADER…: so many structs get a field.
wanted() {
    local number=$1 grown
    shift
    for header; do awk -f grow.awk "$header"; done >"$work/grown.h"
    grown=$(grep -c 'uint64_t grown;' "$work/grown.h" || true)
    [[ $grown -eq $number ]] || { echo "grow.awk: $grown structs grown, expected $number: $*"; exit 1; }
}

# Counted in another way: a definition is a name and a brace, and each comment that says so excludes one.
structs=$(cat "$include"/backplane/*.h | grep -cE '^(typedef )?struct .*\{')
fixed=$(cat "$include"/backplane/*.h | grep -ciE 'never grows')
wanted $((structs - fixed)) "$include"/backplane/*.h
for name in run host graph; do
    grep -A200 "^struct bp_${name}_t {" "$work/grown.h" | sed '/^};/q' | grep -q 'uint64_t grown;' || { echo "bp_${name}_t is not grown"; exit 1; }
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
