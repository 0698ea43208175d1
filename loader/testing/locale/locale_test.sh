#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# locale_test.sh CONFORM HOST_LOCALE PLUGIN DEVICE [SANITIZER]: in a host that has set a Turkish locale (1.5 is written 1,5, and the capital
# of i is not I), ONNX's node tests have the same results as without it.
set -euo pipefail
conform=$1 host_locale=$2 plugin=$3 device=$4 sanitizer=${5-}
data=/usr/share/libonnx-testdata/data/node

if [[ -n $sanitizer ]]; then
    echo "skipped: the $sanitizer sanitizer must be the first library of a program, and the test preloads another"
    exit 77
fi
if [[ ! -f /usr/share/i18n/locales/tr_TR || ! -d $data ]]; then
    echo "skipped: the package locales or libonnx-testdata is missing; scripts/setup.sh installs them"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
localedef --inputfile=tr_TR --charmap=UTF-8 "$work/tr_TR.UTF-8"

# These tests involve numbers in texts and in kernel sources, names in capitals, and rates stored on disk. The casts run on the CPU only,
# because OpenCL would compile a kernel for most of them.
least=15
filters=('test_*relu*' 'test_elu*' 'test_lrn*' 'test_hardsigmoid*')
if [[ $device == cpu ]]; then filters+=('test_cast*') least=40; fi
# run NAME PRELOADED: writes the names and states of all results to $work/NAME.
run() {
    local filter
    for filter in "${filters[@]}"; do
        rm -rf "$work/out"
        LD_PRELOAD=$2 LOCPATH=$work LC_ALL=tr_TR.UTF-8 BACKPLANE_CACHE_DIR=$work/cache "$conform" onnx --plugin "$plugin" \
            --device "$device" --data "$data" --filter "$filter" --out "$work/out" >>"$work/$1.log" 2>&1 || true
        sed -nE 's/^\{"case":"([^"]*)".*"state":"([^"]*)".*/\1 \2/p' "$work/out/journal.jsonl"
    done | LC_ALL=C sort >"$work/$1"
}
run plain ""
if grep -q "it finds no device here" "$work/plain.log"; then
    echo "skipped: $(grep -o "it finds no device here.*" "$work/plain.log" | head -n 1)"
    exit 77
fi
ln -s "$host_locale" "$work/host_locale.so" # LD_PRELOAD splits paths at spaces
run turkish "$work/host_locale.so"
if grep 'cannot be preloaded' "$work/turkish.log"; then exit 1; fi
passed=$(grep -c ' pass$' "$work/turkish" || true)
if ! diff "$work/plain" "$work/turkish" || [[ $passed -lt $least ]]; then
    tail -n 20 "$work/turkish.log"
    echo "$passed cases pass in a Turkish locale"
    exit 1
fi
echo "$passed of $(wc -l <"$work/turkish") cases pass in a Turkish locale, as without it"
