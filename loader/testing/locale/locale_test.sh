#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# locale_test.sh CONFORM HOST_LOCALE PLUGIN DEVICE [SANITIZER]: in a host that has set a Turkish locale, in which 1.5 is written 1,5 and I
# is no capital i, ONNX's node tests end as without.
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

# Numbers in texts and in kernels' sources, names in capitals, rates that are kept on disk. OpenCL compiles a kernel for most casts.
least=15
filters=('test_*relu*' 'test_elu*' 'test_lrn*' 'test_hardsigmoid*')
if [[ $device == cpu ]]; then filters+=('test_cast*') least=40; fi
# run NAME PRELOADED: the names and states of all results.
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
ln -s "$host_locale" "$work/host_locale.so" # a path to preload may have no spaces
run turkish "$work/host_locale.so"
if grep 'cannot be preloaded' "$work/turkish.log"; then exit 1; fi
passed=$(grep -c ' pass$' "$work/turkish" || true)
if ! diff "$work/plain" "$work/turkish" || [[ $passed -lt $least ]]; then
    tail -n 20 "$work/turkish.log"
    echo "$passed cases pass in a Turkish locale"
    exit 1
fi
echo "$passed of $(wc -l <"$work/turkish") cases pass in a Turkish locale, as without"
