#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# spelling.sh [--root DIR] [FILE…]: no word is misspelled. words.txt lists correct words of this project that codespell reports.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
read_arguments "$@"
tool=$(find_tool codespell) || exit $?
# Leaves out words.txt, and tests of the suggestions "did you mean", which misspell words on purpose.
mapfile -t texts < <(tracked '*' | grep -vE '(cli/[a-z]*_test\.cpp|cli_test\.sh|scripts/gates/words\.txt|^LICENSE)$' |
    tr '\n' '\0' | xargs -0 -r grep -Il .) # -I leaves out binary files
some "${#texts[@]}"
bad=0
if [[ ${#texts[@]} -gt 0 ]]; then
    printf '%s\0' "${texts[@]}" | xargs -0 "$tool" --check-hidden --builtin clear,rare --ignore-words "$gates/words.txt" || bad=1
fi
echo "spelling: ${#texts[@]} files, $([[ $bad -eq 0 ]] && echo "no misspelling" || echo "see above: correct the word or, if it is right, add it to scripts/gates/words.txt")"
exit "$bad"
