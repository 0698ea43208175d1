#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The build, with its tests, configures with other choices of backends than the present one, and without CUDA's headers. Otherwise a test
# that needs a backend would fail only where that backend is not built.
# shellcheck source=scripts/gates/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
read_arguments "$@"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
choices=("cpu;null" "cpu;null;opencl;cuda;onnxifi")
failed=0
for choice in "${choices[@]}"; do
    cmake -S . -B "$folder/build" -G Ninja -DBACKPLANE_TESTS=ON "-DBACKPLANE_BACKENDS=$choice" -DBACKPLANE_CUDA=OFF >"$folder/log" 2>&1 && continue
    sed -nE 's/^CMake Error at ([^ ]+:[0-9]+) .*/\1: does not configure with '"'$choice'"'/p' "$folder/log"
    cat "$folder/log"
    failed=$((failed + 1))
done
echo "backends: $failed of ${#choices[@]} choices of backends do not configure"
[[ $failed -eq 0 ]]
