# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of this folder.

# time_limit LEAST JOURNAL: the seconds after which a case hangs on this machine: ten times what the slowest one of a run of an
# honest plugin took here, and at least LEAST.
time_limit() {
    sed -nE 's/.*"seconds":([0-9.e+-]+).*/\1/p' "$2" |
        LC_ALL=C awk -v least="$1" '{ if ($1 > slowest) slowest = $1 } END { limit = 10 * slowest; if (limit < least) limit = least; print limit }'
}
