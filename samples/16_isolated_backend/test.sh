#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh BUILD: each line of the sample's output is there. Exit status 77 without the Python package.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
status=0
output=$("$here/../testing/python.sh" "$1" "$here/isolated_backend.py") || status=$?
echo "$output"
[[ $status == 0 ]] || exit "$status"
for line in 'first run: right' "killed: BP_DEVICE_LOST: .*device 'cpu': backend cpu .* crashed \(SIGKILL\) while it ran" \
    'the old session: BP_DEVICE_LOST' 'next run: right in a new process'; do
    grep -qE "^$line$" <<<"$output" || { echo "16_isolated_backend: no line $line"; exit 1; }
done
