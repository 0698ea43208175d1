#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds and tests. The last line reads "N passed, N failed, N skipped".
set -euo pipefail

usage() {
    cat <<'END'
scripts/test.sh [--preset dev|asan|tsan] [ctest arguments…]

Runs scripts/setup.sh, builds the preset (dev unless told) and runs its tests. Other arguments go to ctest,
for example: scripts/test.sh -R loader

Exit status: 0 if at least one test ran and none failed.
END
}

preset=dev
case ${1-} in
    --preset) preset=${2:?a preset is missing}; shift 2 ;;
    --preset=*) preset=${1#*=}; shift ;;
    --help | -h) usage; exit 0 ;;
esac

cd "$(dirname "${BASH_SOURCE[0]}")/.."
BACKPLANE_DATA=$(realpath -m "${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}") # tests run in other folders
export BACKPLANE_DATA

scripts/setup.sh
cmake --preset "$preset"
cmake --build "build/$preset" --parallel "$(nproc)"

results=$PWD/build/$preset/junit.xml
rm -f "$results"
status=0
ctest --preset "$preset" -j "$(nproc)" --output-junit "$results" "$@" || status=$?
[[ -f $results ]] || { echo "test: ctest wrote no results"; exit 1; }

# A test that skips itself is skipped, and so is a disabled one. A test that could not be started did not skip: it failed.
# In the file a test's own output has its angle brackets escaped, so these lines are ctest's.
read -r passed failed skipped < <(awk '
    /^\t<testcase / { all++ }
    /^\t<testcase .* status="run"/ { passed++ }
    /^\t<testcase .* status="disabled"/ { skipped++ }
    /^\t\t<skipped message="SKIP_/ { skipped++ }
    END { print passed + 0, all - passed - skipped, skipped + 0 }' "$results")

if [[ $skipped -gt 0 ]]; then
    echo
    echo "Skipped:"
    awk '
        /^\t<testcase / { name = $0; sub(/.*<testcase name="/, "", name); sub(/" classname=.*/, "", name) }
        /^\t<testcase .* status="disabled"/ || /^\t\t<skipped message="SKIP_/ { print "  " name }' "$results"
    echo "Where a test lacks its data, this fetches it: scripts/setup.sh"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[[ $status -eq 0 && $failed -eq 0 && $((passed + failed)) -gt 0 ]]
