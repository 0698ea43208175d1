#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

usage() {
    cat <<'END'
samples/20_spark/measure.sh [--build FOLDER] [--rows N] [--rounds N] [--at-least RATIO]

Runs the rows on 1, 2 and 4 executors, and then on 2 executors, one of whose workers crashes. Compares each result with that of a
single process. Prints the rows per second of each run, and their ratio to one executor.

  --build FOLDER    the build whose Python package runs (build/dev)
  --rows N          how many rows (100000: a job of 20,000 takes about as long to start as to run)
  --rounds N        how often to run on 1, 2 and 4 executors in turn; the fastest run on each number counts (1)
  --at-least RATIO  fail if 2 executors are not RATIO times as fast as 1; needs two idle cores

Exit status: 0 if every row was right and the ratio, if one was given, was reached; 77 without PySpark (scripts/setup.sh --with spark).
END
}

build=$(dirname "$0")/../../build/dev rows=100000 rounds=1 least=0
while [[ $# -gt 0 ]]; do
    case $1 in
        --build) build=${2:?--build needs a folder}; shift 2 ;;
        --rows) rows=${2:?--rows needs a number}; shift 2 ;;
        --rounds) rounds=${2:?--rounds needs a number}; shift 2 ;;
        --at-least) least=${2:?--at-least needs a ratio}; shift 2 ;;
        --help | -h) usage; exit 0 ;;
        *) echo "measure.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
    esac
done
for number in "$rows" "$rounds"; do
    [[ $number =~ ^[1-9][0-9]*$ ]] || { echo "measure.sh: '$number' is not a number of at least 1" >&2; exit 2; }
done
# shellcheck source=samples/20_spark/environment.sh
source "$(dirname "$0")/environment.sh"

declare -A rate=([1]=0 [2]=0 [4]=0)
for ((round = 0; round < rounds; round++)); do
    for executors in 1 2 4; do
        infer --rows "$rows" --executors "$executors" --passes 3
        found=$(sed -nE 's/.*"rows_per_second": ([0-9]+).*/\1/p' "$work/out")
        if [[ $found -gt ${rate[$executors]} ]]; then rate[$executors]=$found; fi
    done
done
infer --rows "$rows" --executors 2 --kill

ratio() { LC_ALL=C awk -v a="${rate[$1]}" -v b="${rate[1]}" 'BEGIN { printf "%.2f", a / b }'; }
echo "20_spark: $rows rows on $(nproc) processors: ${rate[1]} rows/s on 1 executor, ${rate[2]} on 2 ($(ratio 2) times), ${rate[4]} on 4 ($(ratio 4) times)"
LC_ALL=C awk -v ratio="$(ratio 2)" -v least="$least" 'BEGIN { exit ratio < least }' || {
    echo "20_spark: 2 executors are $(ratio 2) times as fast as 1, less than --at-least $least"
    exit 1
}
