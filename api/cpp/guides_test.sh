#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# guides_test.sh SOURCE: every block of C or C++ in the guides compiles unchanged.
set -eu
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for guide in "$source"/docs/guides/*.md; do
    awk -v out="$work/$(basename "$guide" .md)" '
        /^```(c|cpp)$/ { file = out "_" ++n "." substr($0, 4); next }
        /^```/ { file = "" }
        file != "" { print > file }' "$guide"
done
count=0
for file in "$work"/*; do
    case $file in
        *.c) ${CC-cc} -std=c11 -Wall -Wextra -pedantic -Werror -I"$source/api/include" -fsyntax-only "$file" ;;
        *.cpp) ${CXX-c++} -std=c++17 -Wall -Wextra -pedantic -Werror -I"$source/api/include" -I"$source/api/cpp" -fsyntax-only "$file" ;;
    esac
    count=$((count + 1))
done
echo "$count blocks compile"
[ "$count" -gt 0 ]
