#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests in situations that occur on other machines. Each situation takes about as long as an ordinary run of the tests.
set -euo pipefail

usage() {
    cat <<'END'
scripts/situations.sh [--all] [SITUATION…]

Builds the preset dev and runs its tests, without the gates and, without --all, without those of scripts/long_tests.txt, in these
situations, or only in those named:

  avx2      the CPU backend and oneDNN limited to AVX2
  sse41     the CPU backend and oneDNN limited to SSE4.1
  opencl    PoCL with one thread and work-groups of at most 64
  one_core  one core
  busy      next to a busy process for each core
  memory    at most 4 GB of data in each process
  home      a home and caches that cannot be written
  plain     LC_ALL=C
  turkish   a Turkish locale, where the lower case of I is not i

The last lines have the counts of each, and the tests that failed. Exit status: 0 if none failed, 1 if one did, 2 for wrong usage.
END
}

all=(avx2 sse41 opencl one_core busy memory home plain turkish)
chosen=() with_long=
for word in "$@"; do
    case $word in
        --help | -h) usage; exit 0 ;;
        --all) with_long=yes ;;
        *)
            [[ " ${all[*]} " == *" $word "* ]] || { echo "situations.sh: there is no situation '$word'; there are: ${all[*]}" >&2; exit 2; }
            chosen+=("$word")
            ;;
    esac
done
[[ ${#chosen[@]} -gt 0 ]] || chosen=("${all[@]}")

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/build.sh
source scripts/build.sh

step "packages and data"
scripts/setup.sh
step "build"
configure dev
build dev
folder=$PWD/build/situations
mkdir -p "$folder"

export BACKPLANE_WHOLE_PROGRAMS=1 # each program of unit tests runs once, with all its tests
left_out=()
if [[ -z $with_long ]]; then
    left_out=(-E "$(long_tests)")
    GTEST_FILTER=$(long_tests_in_programs)
    export GTEST_FILTER
fi
tests() { "$@" ctest --preset dev -j "$(($(cores) + 1))" -LE gate --no-tests=error "${left_out[@]}"; }

busy=()
trap '[[ ${#busy[@]} -eq 0 ]] || kill "${busy[@]}"' EXIT

run_in() {
    case $1 in
        avx2) tests env ONEDNN_MAX_CPU_ISA=AVX2 ;;
        sse41) tests env ONEDNN_MAX_CPU_ISA=SSE41 ;;
        opencl) tests env POCL_DEVICES=pthread POCL_MAX_PTHREAD_COUNT=1 POCL_CPU_MAX_CU_COUNT=1 POCL_MAX_WORK_GROUP_SIZE=64 ;;
        one_core) tests taskset -c "$(taskset -cp $$ | grep -oE '[0-9]+' | sed -n 2p)" ;; # the first that this process may use
        memory) (ulimit -d $((4 << 20)) && tests env) ;;
        home) tests env -u XDG_CACHE_HOME HOME=/proc/self ;; # cannot be written to even by root, unlike other folders
        plain) tests env LC_ALL=C ;;
        turkish)
            local locale=$folder/locale/tr_TR.UTF-8
            # Without the locale, programs would run in the locale C, and nothing would be tested.
            [[ -d $locale ]] || { mkdir -p "$folder/locale" && localedef -i tr_TR -f UTF-8 "$locale"; } || return 1
            tests env LOCPATH="$folder/locale" LC_ALL=tr_TR.UTF-8
            ;;
        busy)
            local status=0
            for ((core = 0; core < $(cores); ++core)); do
                (while :; do :; done) &
                busy+=($!)
            done
            tests env || status=$?
            kill "${busy[@]}"
            busy=()
            return "$status"
            ;;
    esac
}

results=()
failed=0
for situation in "${chosen[@]}"; do
    step "$situation"
    log=$folder/$situation.txt
    start=$SECONDS
    status=0
    run_in "$situation" >"$log" 2>&1 || status=$?
    [[ $status -eq 0 ]] || failed=1
    skipped=$(grep -c '\*\*\*Skipped' "$log" || true)
    results+=("$(printf '%-9s %s: %s, %s skipped%s' "$situation" "$(minutes $((SECONDS - start)))" \
        "$(grep -E '^[0-9]+% tests passed' "$log" || echo 'ctest did not run')" "$skipped" "$(in_programs build/dev/Testing/Temporary/LastTest.log)")")
    while IFS= read -r name; do results+=("          $name"); done < <(sed -nE 's/^\t *[0-9]+ - (.*\((Failed|Timeout|SEGFAULT|Subprocess aborted|Not Run)\))$/\1/p' "$log")
done
printf '\n'
printf '%s\n' "${results[@]}"
exit "$failed"
