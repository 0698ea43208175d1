#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# expect.sh STATUS TEXT COMMAND…: checks that the command ends with this status and that its output contains this text.
set -u
status=$1 text=$2
shift 2
output=$("$@" 2>&1)
seen=$?
printf '%s\n' "$output"
case $output in
    *"$text"*) ;;
    *) echo "expected output with: $text"; exit 1 ;;
esac
[ "$seen" -eq "$status" ] || { echo "expected exit status $status, got $seen"; exit 1; }
