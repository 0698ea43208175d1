#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shell.sh [--root DIR] [FILE…]: shellcheck reports nothing about any shell script.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
read_arguments "$@"
tool=$(find_tool shellcheck) || exit $?
mapfile -t scripts < <(tracked '*.sh' '.ci/run')
some "${#scripts[@]}"
bad=0
if [[ ${#scripts[@]} -gt 0 ]]; then
    printf '%s\0' "${scripts[@]}" | xargs -0 -n 8 -P "$(nproc)" "$tool" --external-sources || bad=1
fi
echo "shell: ${#scripts[@]} scripts, $([[ $bad -eq 0 ]] && echo "no finding" || echo "findings above")"
exit "$bad"
