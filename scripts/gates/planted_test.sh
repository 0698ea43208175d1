#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# planted_test.sh BUILD: each quick gate finds a planted violation, names its location, and accepts a tree without one.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GIT_CEILING_DIRECTORIES=$work # otherwise git uses a repository that contains $work, and may ignore its files
planted=0
skipped=0
failures=0

# plants NAME FILE RIGHT WRONG COMMAND…: COMMAND accepts FILE with the text RIGHT, and with WRONG exits with 1 and names FILE.
plants() {
    local name=$1 file=$2 right=$3 wrong=$4 status=0
    shift 4
    planted=$((planted + 1))
    rm -rf "$work/tree"
    mkdir -p "$work/tree"
    printf '%s\n' "$right" >"$work/tree/$file"
    "$@" >"$work/out" 2>&1 || status=$?
    if [[ $status -eq 77 ]]; then
        echo "$name: $(cat "$work/out")"
        skipped=$((skipped + 1))
        return
    fi
    [[ $status -eq 0 ]] || { echo "FAILED: $name refuses a correct file:"; cat "$work/out"; failures=$((failures + 1)); }
    printf '%s\n' "$wrong" >"$work/tree/$file"
    status=0
    "$@" >"$work/out" 2>&1 || status=$?
    if [[ $status -ne 1 ]] || ! grep -q "$file" "$work/out"; then
        echo "FAILED: $name does not find what was planted (status $status):"
        cat "$work/out"
        failures=$((failures + 1))
    fi
}

plants format planted.cpp 'int x;' 'int  x;' "$here/format.sh" --root "$work/tree"
plants shell planted.sh $'#!/bin/bash\necho "$1"' $'#!/bin/bash\necho $1 `ls`' "$here/shell.sh" --root "$work/tree"
plants shell planted $'#!/bin/sh\necho "$1"' $'#!/bin/sh\necho $1 `ls`' "$here/shell.sh" --root "$work/tree"
plants files planted.cpp '// SPDX-License-Identifier: Apache-2.0' 'int x;' "$here/files.sh" --root "$work/tree"
plants files CMakeLists.txt $'# SPDX-License-Identifier: Apache-2.0\noption(BACKPLANE_X "used" ON)\nif(BACKPLANE_X)\nendif()' \
    $'# SPDX-License-Identifier: Apache-2.0\noption(BACKPLANE_X "dead" ON)' "$here/files.sh" --root "$work/tree"
plants files planted.cpp $'// SPDX-License-Identifier: Apache-2.0\n'"$(yes 'int x;' | head -n 599)" \
    $'// SPDX-License-Identifier: Apache-2.0\n'"$(yes 'int x;' | head -n 600)" "$here/files.sh" --root "$work/tree"
plants files planted.cpp $'// SPDX-License-Identifier: Apache-2.0\nstd::ifstream maps("/proc/self/maps");' \
    $'// SPDX-License-Identifier: Apache-2.0\nstd::ifstream file(name);' "$here/files.sh" --root "$work/tree"
plants files planted.h $'// SPDX-License-Identifier: Apache-2.0\nint file = open(name, O_RDONLY | O_NONBLOCK);' \
    $'// SPDX-License-Identifier: Apache-2.0\nint file = open(name, O_RDONLY);' "$here/files.sh" --root "$work/tree"
plants spelling planted.js 'the right word' 'teh wrong word' "$here/spelling.sh" --root "$work/tree"
plants spelling planted.md 'the right word' 'teh wrong word' "$here/spelling.sh" --root "$work/tree"
plants backends CMakeLists.txt $'cmake_minimum_required(VERSION 3.25)\nproject(planted NONE)\nadd_custom_target(test)' \
    $'cmake_minimum_required(VERSION 3.25)\nproject(planted NONE)\nadd_custom_target(test)\nadd_dependencies(test missing)' \
    "$here/backends.sh" --root "$work/tree"
plants docs planted.md 'A [link](planted.md#).' 'A [link](nowhere.md).' python3 -B "$here/docs.py" --root "$work/tree"
# A code without a line on the page of codes, and a variable that no page lists.
plants_on_page() {
    local name=$1 source=$2 page=$3 text=$4 wrong=$5
    planted=$((planted + 1))
    rm -rf "$work/tree"
    mkdir -p "$work/tree/$(dirname "$source")" "$work/tree/$(dirname "$page")"
    printf '%s\n' "$text" >"$work/tree/$page"
    printf '%s\n' "$6" >"$work/tree/$source"
    python3 -B "$here/docs.py" --root "$work/tree" >"$work/out" || { echo "FAILED: docs refuses $name that is documented:"; cat "$work/out"; failures=$((failures + 1)); }
    printf '%s\n' "$wrong" >>"$work/tree/$source"
    if python3 -B "$here/docs.py" --root "$work/tree" >"$work/out" || ! grep -q "$page: there is no line about" "$work/out"; then
        echo "FAILED: docs does not find $name that was planted:"
        cat "$work/out"
        failures=$((failures + 1))
    fi
}
# shellcheck disable=SC2016 # Markdown's backticks
plants_on_page 'a code' api/include/backplane/status.h docs/reference/codes.md '| `BP_KNOWN` | a text |' '#define BP_PLANTED 0x0002u' '#define BP_KNOWN 0x0001u'
# shellcheck disable=SC2016
plants_on_page 'a variable' loader/planted.cpp docs/guides/operations.md '| `BACKPLANE_KNOWN` | a text |' 'auto y = variable("BACKPLANE_PLANTED");' \
    'auto x = variable("BACKPLANE_KNOWN");'
# Gates that compile the planted file, with the flags of a source of the tree.
plants naming planted.cpp 'namespace backplane { extern const int kRight; const int kRight = 1; }' \
    'namespace backplane { extern const int wrong; const int wrong = 1; }' \
    python3 -B "$here/tidy.py" "$build" "$work/tree/planted.cpp"
plants headers planted.h $'#include <string>\nstd::string f();' 'std::string f();' \
    python3 -B "$here/headers.py" "$build" "$work/tree/planted.h"
# A compiler warning stops the build.
plants warnings planted.cpp 'int f(int x) { return x; }' 'int f(int x) { int unused; return x; }' \
    python3 -B "$here/compile_database.py" "$build" loader/base/status.cpp "$work/tree/planted.cpp"
# A function that is declared in X.h but defined in another source than X.cpp. Skipped without universal-ctags.
finds_definition() {
    planted=$((planted + 1))
    if python3 -B "$here/definitions.py" --root "$work/tree" >"$work/out" || ! grep -q "$1" "$work/out"; then
        echo "FAILED: definitions does not find what was planted: $1"
        cat "$work/out"
        failures=$((failures + 1))
    fi
}
rm -rf "$work/tree"
mkdir -p "$work/tree/loader"
echo 'namespace n { int f(); }' >"$work/tree/loader/planted.h"
touch "$work/tree/loader/other.cpp"
echo 'namespace n { int f() { return 1; } }' >"$work/tree/loader/planted.cpp"
status=0
python3 -B "$here/definitions.py" --root "$work/tree" >"$work/out" 2>&1 || status=$?
if [[ $status -eq 77 ]]; then
    echo "definitions: $(cat "$work/out")"
    planted=$((planted + 1))
    skipped=$((skipped + 1))
else
    [[ $status -eq 0 ]] || { echo "FAILED: definitions refuses a correct unit:"; cat "$work/out"; failures=$((failures + 1)); }
    mv "$work/tree/loader/planted.cpp" "$work/tree/loader/other.cpp"
    touch "$work/tree/loader/planted.cpp"
    finds_definition 'planted.h: n::f is defined in loader/other.cpp'
    # A qualified definition, and a member function in a file that the header does not name.
    echo 'int n::f() { return 1; }' >"$work/tree/loader/other.cpp"
    finds_definition 'planted.h: n::f is defined in loader/other.cpp'
    echo 'namespace n { class C { void g(); }; }' >"$work/tree/loader/planted.h"
    echo 'void n::C::g() {}' >"$work/tree/loader/other.cpp"
    finds_definition 'planted.h: n::C::g is defined in loader/other.cpp: name that file'
    echo 'namespace n { int f(); }' >"$work/tree/loader/planted.h"
    echo 'namespace n { int f() { return 1; } }' >"$work/tree/loader/other.cpp"
    # The header has no source of its own, and the function is defined in another folder.
    rm "$work/tree/loader/planted.cpp"
    mkdir "$work/tree/loader/elsewhere"
    mv "$work/tree/loader/other.cpp" "$work/tree/loader/elsewhere/other.cpp"
    finds_definition 'planted.h: n::f is defined in loader/elsewhere/other.cpp'
    # The function of a header that is listed as an exception is defined in the header's own source.
    mkdir "$work/tree/loader/passes"
    mv "$work/tree/loader/planted.h" "$work/tree/loader/passes/passes.h"
    mv "$work/tree/loader/elsewhere/other.cpp" "$work/tree/loader/passes/passes.cpp"
    finds_definition 'passes.h: .* delete it from EXCEPTIONS'
fi
# A file that a mistyped option of a program made.
planted=$((planted + 1))
rm -rf "$work/tree"
mkdir -p "$work/tree/y="
printf '\0' >"$work/tree/y=/y.npy"
if "$here/files.sh" --root "$work/tree" >"$work/out" || ! grep -q '^y=/y.npy: ' "$work/out"; then
    echo "FAILED: files does not find what was planted:"
    cat "$work/out"
    failures=$((failures + 1))
fi
# The name of an operator in the runtime of the CPU backend.
planted=$((planted + 1))
rm -rf "$work/tree"
mkdir -p "$work/tree/loader/ops/schema" "$work/tree/backends/cpu/runtime"
printf 'op %s 1 1-1 1-1\n' Loop Unique >"$work/tree/loader/ops/schema/schemas.txt"
printf '// SPDX-License-Identifier: Apache-2.0\nstruct Loop; // Uniquely\n' >"$work/tree/backends/cpu/runtime/planted.h"
"$here/files.sh" --root "$work/tree" >"$work/out" || { echo "FAILED: files refuses a correct runtime:"; cat "$work/out"; failures=$((failures + 1)); }
echo '// Unique' >>"$work/tree/backends/cpu/runtime/planted.h"
if "$here/files.sh" --root "$work/tree" >"$work/out" || ! grep -q '^backends/cpu/runtime/planted.h:3: Unique ' "$work/out"; then
    echo "FAILED: files does not find what was planted:"
    cat "$work/out"
    failures=$((failures + 1))
fi
# Too many files in a family of kernels, counting those in folders below it, and too many families.
plants_kernels() {
    planted=$((planted + 1))
    rm -rf "$work/tree"
    mkdir -p "$work/tree/backends/cpu/kernels/"{family/below,f{1..23}}
    touch "$work/tree/backends/cpu/kernels/"{family/below/{1..15}.npy,family/{16..30}.npy,f{1..23}/1.npy}
    "$here/files.sh" --root "$work/tree" >"$work/out" || { echo "FAILED: files refuses correct kernels:"; cat "$work/out"; failures=$((failures + 1)); }
    mkdir -p "$(dirname "$work/tree/backends/cpu/kernels/$1")"
    touch "$work/tree/backends/cpu/kernels/$1"
    if "$here/files.sh" --root "$work/tree" >"$work/out" || ! grep -q "$2" "$work/out"; then
        echo "FAILED: files does not find what was planted:"
        cat "$work/out"
        failures=$((failures + 1))
    fi
}
plants_kernels family/below/31.npy '^backends/cpu/kernels/family: has 31 files'
plants_kernels f24/1.npy '^backends/cpu/kernels: has 25 folders'
# A folder of four sources, with and without a README.md.
planted=$((planted + 1))
rm -rf "$work/tree"
mkdir -p "$work/tree/planted"
touch "$work/tree/planted/"{README.md,a.cpp,b.cpp,c.cpp,d.cpp}
"$here/readmes.sh" --root "$work/tree" >"$work/out" || { echo "FAILED: readmes refuses a correct folder:"; cat "$work/out"; failures=$((failures + 1)); }
rm "$work/tree/planted/README.md"
if "$here/readmes.sh" --root "$work/tree" >"$work/out" || ! grep -q '^planted: ' "$work/out"; then
    echo "FAILED: readmes does not find what was planted:"
    cat "$work/out"
    failures=$((failures + 1))
fi

[[ $failures -eq 0 ]] || exit 1
echo "planted: $((planted - skipped)) violations are found, $skipped skipped"
[[ $skipped -lt $planted ]]
