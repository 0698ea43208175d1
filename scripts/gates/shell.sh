#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shell.sh [--root DIR] [FILE…]: fails if shellcheck reports anything about a shell script. Scripts are found by
# the suffix .sh or by their first line.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
read_arguments "$@"
tool=$(find_tool shellcheck) || exit $?
mapfile -t scripts < <(tracked '*' | grep -vE '\.(py|awk)$' | tr '\n' '\0' | xargs -0 -r awk '
    FNR == 1 { if (FILENAME ~ /\.sh$/ || /^#!.*[\/ ](ba|da)?sh( |$)/) print FILENAME; nextfile }')
some "${#scripts[@]}"
bad=0
if [[ ${#scripts[@]} -gt 0 ]]; then
    printf '%s\0' "${scripts[@]}" | xargs -0 -n 8 -P "$(nproc)" "$tool" --external-sources || bad=1
fi
echo "shell: ${#scripts[@]} scripts, $([[ $bad -eq 0 ]] && echo "no finding" || echo "findings above")"
exit "$bad"
