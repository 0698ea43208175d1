# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of this folder.

# time_limit LEAST JOURNAL: prints the seconds after which a case counts as hanging on this machine. This is ten times
# the duration of the slowest case in JOURNAL, the run of an honest plugin, and at least LEAST.
time_limit() {
    sed -nE 's/.*"seconds":([0-9.e+-]+).*/\1/p' "$2" |
        LC_ALL=C awk -v least="$1" '{ if ($1 > slowest) slowest = $1 } END { limit = 10 * slowest; if (limit < least) limit = least; print limit }'
}
