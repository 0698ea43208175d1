#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# format.sh [--root DIR] [FILE…]: every C and C++ file is formatted as clang-format 14 does it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
read_arguments "$@"
tool=$(find_tool clang-format) || exit $?
release=$("$tool" --version | sed -nE 's/.*version ([0-9]+).*/\1/p')
if [[ $release != 14 ]]; then
    echo "skipped: clang-format $release formats differently from clang-format 14, which scripts/setup.sh installs"
    exit 77
fi
mapfile -t sources < <(tracked '*.c' '*.cpp' '*.h' '*.hpp')
some "${#sources[@]}"
bad=0
if [[ ${#sources[@]} -gt 0 ]]; then
    printf '%s\0' "${sources[@]}" | xargs -0 -n 32 -P "$(nproc)" "$tool" --dry-run -Werror --ferror-limit=1 || bad=1
fi
if [[ $bad -ne 0 ]]; then echo "format: to fix it: $tool -i FILE…"; fi
echo "format: ${#sources[@]} files, $([[ $bad -eq 0 ]] && echo "no violation" || echo "violations above")"
exit "$bad"
