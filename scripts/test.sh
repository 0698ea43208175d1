#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds and tests. The last line reads "N passed, N failed, N skipped".
set -euo pipefail

usage() {
    cat <<'END'
scripts/test.sh [--preset dev|cuda|asan|tsan] [--all] [ctest arguments…]

Runs scripts/setup.sh, builds a preset of CMakePresets.json (dev without --preset) and runs its tests, including the quick gates.
Without --all, the tests of scripts/long_tests.txt are left out, which take three quarters of the time.
Other arguments go to ctest, which then chooses among all tests, for example: scripts/test.sh -R loader

Exit status: 0 if at least one test ran and none failed, 1 if one failed or none ran, 2 for wrong usage.
END
}

preset=dev
all=
while [[ $# -gt 0 ]]; do
    case $1 in
        --preset) [[ $# -gt 1 ]] || { echo "test.sh: --preset needs a preset: dev, cuda, asan or tsan" >&2; exit 2; }; preset=$2; shift 2 ;;
        --preset=*) preset=${1#*=}; shift ;;
        --all) all=yes; shift ;;
        --help | -h) usage; exit 0 ;;
        *) break ;;
    esac
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/build.sh
source scripts/build.sh

[[ $preset =~ ^(dev|cuda|asan|tsan)$ ]] || { echo "test.sh: there is no preset '$preset' with tests; there are: dev, cuda, asan, tsan" >&2; exit 2; }
for word in "$@"; do
    [[ $word != --preset* && $word != --all ]] || { echo "test.sh: $word must come first" >&2; exit 2; }
    # ctest ignores options that it does not know
    if [[ $word == --* ]] && command -v ctest >/dev/null && ! grep -qE -- "(^|[ ,])${word%%=*}([ =,]|\$)" < <(ctest --help); then
        echo "test.sh: neither it nor ctest has an option '$word'; see scripts/test.sh --help" >&2
        exit 2
    fi
done
step "packages and data"
if [[ $preset == asan ]]; then scripts/setup.sh --gates; else scripts/setup.sh; fi
step "build"
configure "$preset"
build "$preset"
summarize test built

step "tests"
test_start=$SECONDS
results=$PWD/build/$preset/junit.xml
rm -f "$results"
status=0
left_out=0
if [[ $# -eq 0 ]]; then
    if [[ -z $all ]]; then
        left_out=$(ctest --preset "$preset" -N -R "$(long_tests)" | sed -nE 's/^Total Tests: //p')
        GTEST_FILTER=$(long_tests_in_programs)
        export GTEST_FILTER
        set -- -E "$(long_tests)"
    fi
    export BACKPLANE_WHOLE_PROGRAMS=1 # each program of unit tests runs once, with all its tests
fi
# Runs one more test at a time than there are cores, because some tests only wait (for a device that hangs).
ctest --preset "$preset" -j "$(($(cores) + 1))" --output-junit "$results" --test-output-size-passed 1048576 "$@" || status=$?
[[ -f $results ]] || { echo "test: ctest wrote no results"; exit 1; }

# A test that skips itself counts as skipped, and so does a disabled one. A test that could not be started counts as failed. Of a program
# that ran whole, its tests are counted; one that ended before its summary counts as one that failed.
# In the file, the angle brackets of a test's own output are escaped, so lines that begin with one are ctest's.
programs=${BACKPLANE_WHOLE_PROGRAMS:+$(find "build/$preset/tests" -maxdepth 1 -type f -executable -printf ' %f ')}
read -r passed failed skipped < <(awk -v programs="$programs" '
    /^\t<testcase / {
        name = $0; sub(/.*<testcase name="/, "", name); sub(/" classname=.*/, "", name)
        is_run = / status="run"/; is_skipped = / status="disabled"/; ran = left = bad = 0
    }
    /^\t\t<skipped message="SKIP_/ { is_skipped = 1 }
    /^\[==========\] [0-9]+ tests? from .* ran/ { ran = $2 }
    /^\[  SKIPPED \] [0-9]+ tests?, listed below/ { left = $4 }
    /^\[  FAILED  \] [0-9]+ tests?, listed below/ { bad = $4 }
    /^\t<\/testcase>/ {
        if (!is_skipped && ran > 0 && index(programs, " " name " ")) {
            if (!is_run && bad == 0) bad = 1
            passed += ran - left - bad; skipped += left; failed += bad
        } else if (is_skipped) skipped++
        else if (is_run) passed++
        else failed++
    }
    END { print passed + 0, failed + 0, skipped + 0 }' "$results")

gates=$(gate_lines "$results")
if [[ -n $gates ]]; then printf '\nGates:\n%s\n' "$gates"; fi

if [[ -n $programs && $failed -gt 0 ]]; then
    printf '\nFailed in programs that ran whole (alone: scripts/test.sh -R NAME):\n'
    awk '
        /^\t<testcase / { name = $0; sub(/.*<testcase name="/, "", name); sub(/" classname=.*/, "", name) }
        /^\[  FAILED  \] .* \([0-9]+ ms\)/ { sub(/,$/, "", $4); print "  " name "." $4 }' "$results"
fi

if [[ $skipped -gt 0 ]]; then
    echo
    echo "Skipped:"
    awk -v programs="$programs" '
        /^\t<testcase / {
            name = $0; sub(/.*<testcase name="/, "", name); sub(/" classname=.*/, "", name)
            reason = / status="disabled"/ ? "disabled" : ""; skipped = reason != ""
            is_program = index(programs, " " name " ")
        }
        /^\t\t<skipped message="SKIP_/ { skipped = 1 }
        follows { reason = $0; follows = 0 }
        /: Skipped$/ { follows = 1 } # of GoogleTest: the reason is in the next line
        /^\[  SKIPPED \] .* \([0-9]+ ms\)/ && is_program { print "  " name "." $4 ": " (reason == "" ? "no reason was printed" : reason); reason = "" }
        /skipped: / { reason = $0; sub(/.*skipped: /, "", reason); sub(/<\/system-out>.*/, "", reason) }
        /^\t<\/testcase>/ && skipped { print "  " name ": " (reason == "" ? "no reason was printed" : reason) }' "$results"
    echo "If a test was skipped because its data is missing: scripts/setup.sh fetches it"
fi
[[ $left_out -eq 0 ]] || printf '\n%s tests that take long were left out: scripts/test.sh --all runs them too\n' "$left_out"
summarize test "tests alone took $(minutes $((SECONDS - test_start))), all of it ended"
echo "$passed passed, $failed failed, $skipped skipped"
[[ $status -eq 0 && $failed -eq 0 && $((passed + failed)) -gt 0 ]]
