#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# container_test.sh FOLDER: builds the image from the packages of FOLDER (scripts/package.sh), and tests a plugin that is mounted into it. Exit
# status 77 where neither Docker nor Podman works.
set -euo pipefail
[[ $# == 1 && -d $1 ]] || { echo "usage: container_test.sh FOLDER" >&2; exit 2; }
packages=$(realpath "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tool=
for each in docker podman; do
    if command -v "$each" >/dev/null && "$each" info >/dev/null 2>&1; then tool=$each && break; fi
done
[[ -n $tool ]] || { echo "container: skipped: neither docker nor podman works here"; exit 77; }
image=backplane-conform:test-$$
work=$(mktemp -d)
trap 'rm -rf "$work"; "$tool" rmi -f "$image" >/dev/null 2>&1 || true' EXIT
"$tool" build -f "$here/Containerfile" -t "$image" "$packages"
dpkg-deb -x "$packages"/backplane-backend-null_*.deb "$work"
plugin=$(find "$work" -name libbackplane_null.so)
chmod -R a+rX "$work"
"$tool" run --rm -v "$(dirname "$plugin"):/plugin:ro" "$image" --plugin /plugin/libbackplane_null.so --require-level L1
"$tool" run --rm --entrypoint sh "$image" -c 'backplane new-backend mine mine && cmake -S mine -B mine/build && cmake --build mine/build &&
    backplane conform --plugin mine/build/libbackplane_mine.so --require-level L1'
echo "container: the image was built by $tool, tests a mounted plugin and builds one"
