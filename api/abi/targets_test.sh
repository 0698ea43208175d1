#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# targets_test.sh INCLUDES: the C headers compile for each target that the ABI is laid out for, where each struct has its size of ABI 1.0 and
# no implicit padding; for other targets an #error states the reason, as it does for the SDK on Windows. Needs only Clang, no system headers
# of the targets. Exit status 77: there is no Clang.
set -eu
command -v clang >/dev/null || { echo "skipped: clang is missing; scripts/setup.sh --gates installs it"; exit 77; }
compile() { # TARGET
    # Clang lays out a struct, and warns of padding, only where its size is used.
    printf '#include "backplane/loader.h"\n#include "backplane/sizes.h"\n%s\nBP_EACH_SIZE_1_0(X)\n' \
        '#define X(type, size) _Static_assert(sizeof(type) == size, #type " has another size");' |
        clang -target "$1" -ffreestanding -std=c11 -Wall -Wextra -Wpadded -Werror -fsyntax-only -I"$includes" -x c - 2>&1
}
includes=$1
failed=0
for target in x86_64-linux-gnu aarch64-linux-gnu aarch64-apple-darwin riscv64-linux-gnu x86_64-pc-windows-msvc \
    aarch64-pc-windows-msvc x86_64-w64-windows-gnu wasm64-unknown-unknown; do
    if output=$(compile "$target"); then
        echo "$target: compiles"
    else
        echo "$target: $output" && failed=1
    fi
done
for target in wasm32-unknown-unknown i686-linux-gnu s390x-linux-gnu; do
    output=$(compile "$target") && { echo "$target: compiles, though the ABI has no layout for it" && failed=1; }
    case $output in
        *"backplane: the ABI is"*) echo "$target: refused with the reason" ;;
        *) echo "$target: $output" && failed=1 ;;
    esac
done
output=$(printf '#include "backplane/sdk.hpp"\n' |
    clang -target x86_64-pc-windows-msvc -ffreestanding -fsyntax-only -I"$includes" -I"$includes/../cpp" -x c++ - 2>&1) || true
case $output in
    *"backplane: the SDK uses POSIX"*) echo "the SDK for Windows: refused with the reason" ;;
    *) echo "the SDK for Windows: $output" && failed=1 ;;
esac
exit $failed
