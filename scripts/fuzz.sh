#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzzers with Clang and runs each for a while.
set -euo pipefail

usage() {
    cat <<'END'
scripts/fuzz.sh [--seconds N] [--list] [FUZZER…]

Builds all fuzzers, or those named, in build/fuzz with the address sanitizer, and runs each for N seconds (60). Inputs that cover
new code are kept in $BACKPLANE_DATA/fuzz/FUZZER, so that the next run continues where this one ended; crashes are kept in
$BACKPLANE_DATA/fuzz/crashes/FUZZER, and every later run tries them first. Exit status: 0 if nothing was found, 1 if something was, 2 for
wrong usage.
END
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
data=$(realpath -m "${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}")/fuzz
mapfile -t all < <(git grep -hoE 'backplane_add_fuzzer\([a-z_]+' -- '*CMakeLists.txt' | sed 's/.*(//' | sort)
[[ ${#all[@]} -gt 0 ]] || { echo "fuzz.sh: git lists no fuzzer here: run it in a clone of the repository that git trusts" >&2; exit 1; }
seconds=60
chosen=()
while [[ $# -gt 0 ]]; do
    case $1 in
        --help | -h) usage; exit 0 ;;
        --list) printf '%s\n' "${all[@]}"; exit 0 ;;
        --seconds)
            [[ ${2-} =~ ^[0-9]+$ ]] || { echo "fuzz.sh: --seconds is '${2-}': it needs a whole number" >&2; exit 2; }
            seconds=$2
            shift
            ;;
        *)
            [[ " ${all[*]} " == *" $1 "* ]] || { echo "fuzz.sh: there is no fuzzer '$1'; there are: ${all[*]}" >&2; exit 2; }
            chosen+=("$1")
            ;;
    esac
    shift
done
[[ ${#chosen[@]} -gt 0 ]] || chosen=("${all[@]}")

# Seed corpus of a fuzzer, in addition to its earlier findings.
seeds() {
    case $1 in
        manifest_fuzz) find build/*/share/backplane/backends.d -name '*.json' 2>/dev/null ;;
        elf_fuzz) find build/*/tests/plugins -name 'bad_no_*.so' 2>/dev/null ;;
        parse_fuzz)
            find build/*/samples -name '*.onnx' -size -64k 2>/dev/null
            mkdir -p build/fuzz/seeds
            python3 loader/testing/hostile/corpus.py build/fuzz/seeds '^(memory|depth|terminal|sizes|bytes)' --seeds
            find build/fuzz/seeds -name '*.onnx'
            ;;
    esac
}

cmake -S . -B build/fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DBACKPLANE_FUZZ=ON \
    -DBACKPLANE_SANITIZER=address -DCMAKE_BUILD_TYPE=Dev >/dev/null
ninja -C build/fuzz "${chosen[@]}"

# Runs one fuzzer and prints one line about it. Fails if it found something.
run() {
    local fuzzer=$1 corpus=$data/$1 crashes=$data/crashes/$1 log=build/fuzz/$1.log status=0
    mkdir -p "$corpus" "$crashes"
    seeds "$fuzzer" | while IFS= read -r seed; do cp -u "$seed" "$corpus/seed_$(basename "$seed")"; done
    # Runs the inputs of earlier crashes first, each of which must pass now.
    find "$crashes" -type f -print0 | xargs -0r "build/fuzz/fuzz/$fuzzer" -timeout=10 -rss_limit_mb=2048 >"$log" 2>&1 || status=$?
    [[ $status -ne 0 ]] || "build/fuzz/fuzz/$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
        -artifact_prefix="$crashes/" "$corpus" >>"$log" 2>&1 || status=$?
    if [[ $status -eq 0 ]]; then
        echo "$fuzzer: nothing found; $(grep -oE 'Done [0-9]+ runs' "$log" | tail -1), $(find "$corpus" -type f | wc -l) inputs kept"
    else
        echo "$fuzzer: FOUND something, see $log and $crashes"
        return 1
    fi
}

# Runs as many fuzzers at a time as there are processors.
found=0 running=0
for fuzzer in "${chosen[@]}"; do
    if [[ $running -ge $(nproc) ]]; then
        wait -n || found=1
        running=$((running - 1))
    fi
    run "$fuzzer" &
    running=$((running + 1))
done
while [[ $running -gt 0 ]]; do
    wait -n || found=1
    running=$((running - 1))
done
exit $found
