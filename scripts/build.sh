# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by other scripts, in the root of the tree: steps with their times, and the build.

script_start=$SECONDS
compile_seconds=0 # processor time of the builds that this script started

# shellcheck source=scripts/data_folder.sh
source scripts/data_folder.sh

# step NAME: a heading with the time since the start.
step() { printf '\n=== %s (after %s)\n' "$1" "$(minutes $((SECONDS - script_start)))"; }

# minutes SECONDS: "3:07".
minutes() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# cores: how many of the machine's processors this process may use.
cores() { nproc; }

# configure PRESET OPTION…: shows what CMake prints only if it fails.
configure() {
    local preset=$1 log=build/configure.txt
    shift
    mkdir -p build
    cmake --preset "$preset" "$@" >"$log" 2>&1 || { cat "$log" >&2; return 1; }
}

# Sets child_seconds: the processor time of all children of this shell that have ended.
read_child_seconds() {
    local file
    file=$(mktemp)
    times >"$file" # within $(…), `times` would report the children of that subshell
    child_seconds=$(LC_ALL=C awk 'NR == 2 { split($0, t, /[ms ]+/); printf "%d", t[1] * 60 + t[2] + t[3] * 60 + t[4] }' "$file")
    rm -f "$file"
}

# build PRESET [TARGET…]: builds, and adds the processor time that this took to compile_seconds. ninja shows a line for each step.
build() {
    local preset=$1 before status=0
    shift
    read_child_seconds
    before=$child_seconds
    cmake --build "build/$preset" --parallel "$(cores)" ${1:+--target "$@"} || status=$?
    read_child_seconds
    compile_seconds=$((compile_seconds + child_seconds - before))
    return "$status"
}

# summarize SCRIPT WHAT: prints the time from the start of the script until WHAT, and the processor time of compiling.
summarize() {
    printf '\n%s: %s after %s; compiling took %s minutes of processor time\n' "$1" "$2" "$(minutes $((SECONDS - script_start)))" \
        "$(LC_ALL=C awk -v s="$compile_seconds" 'BEGIN { printf "%.1f", s / 60 }')"
}

# long_tests: a regular expression that matches the names of the tests of long_tests.txt, and those of programs of which it lists all tests.
long_tests() { sed -nE '/^(#|$)/d; s/^(\w+)\\\.\.\*$/^\1$|&/; s/[^|]*$/^&$/; p' scripts/long_tests.txt | paste -sd '|'; }
# long_tests_in_programs: a filter of GoogleTest without the tests in long_tests.txt, for programs that run whole.
long_tests_in_programs() { sed -nE '/^\w+_test\\\.[^.]/ { s/^\w+\\\.//; s/\.\*/*/g; s/\\\././g; p }' scripts/long_tests.txt | paste -sd ':' | sed 's/^/-/'; }

# gate_lines JUNIT: the state and name of each test that is a gate, with the last line that it printed.
gate_lines() {
    awk '
        /^\t<testcase / {
            name = $0; sub(/.*<testcase name="/, "", name); sub(/" classname=.*/, "", name); last = ""
            state = / status="run"/ ? "passed " : / status="fail"/ ? "FAILED " : "skipped"
        }
        /^\t<\/testcase>/ { if (name ~ /^(gate|architecture)\./) print "  " state "  " name ": " last }
        /<\/?system-out>/ { gsub(/\t*<\/?system-out>/, "") }
        /^[a-z]+: / { last = $0; sub(/^[a-z]+: /, "", last) }
        /^OK$/ { last = $0 }' "$1"
}

# in_programs LOG: with BACKPLANE_WHOLE_PROGRAMS (cmake/Testing.cmake), how many tests of GoogleTest the programs ran and skipped.
in_programs() {
    [[ -n ${BACKPLANE_WHOLE_PROGRAMS-} && -f $1 ]] || return 0
    awk '/^\[==========\] [0-9]+ tests? from .* ran/ { tests += $2; programs++ }
        /^\[  SKIPPED \] [0-9]+ tests?, listed below/ { skipped += $4 }
        END { printf "; %d of them run %d tests and skip %d more", programs, tests - skipped, skipped }' "$1"
}
