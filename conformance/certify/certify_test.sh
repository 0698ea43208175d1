#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# certify_test.sh PROGRAM PLUGIN LIAR: a certification from key generation to a countersigned bundle, and damaged or
# forged bundles that must not verify. LIAR is a plugin that fails some of the cases.
set -euo pipefail

program=$1 plugin=$2 liar=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

die() { echo "certify_test: $*" >&2; exit 1; }
# refused PART COMMAND...: the command must fail, and its message must name the part.
refused() {
    local part=$1 text
    shift
    if text=$("$@" 2>&1); then die "not refused: $* ($text)"; fi
    [[ $text == *"backplane-conform: $part: "* ]] || die "the fault of $part is reported as: $text"
}
cases=(--profile core --filter 'ops/[AS]*')
nonce=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')

"$program" keygen vendor --owner "Acme" >/dev/null
"$program" keygen lab --owner "A laboratory" >/dev/null
[[ $(stat -c %a vendor.key) == 600 ]] || die "the private key can be read by others"
if "$program" keygen vendor --owner "Acme" 2>/dev/null; then die "a key is overwritten"; fi

"$program" certify commit bundle --plugin "$plugin" "${cases[@]}" >/dev/null
"$program" certify run bundle --plugin "$plugin" --nonce "$nonce" --key vendor.key >/dev/null
"$program" verify-bundle bundle >/dev/null
"$program" verify-bundle bundle --vendor-key vendor.pub >/dev/null
refused vendor.sig "$program" verify-bundle bundle --vendor-key lab.pub
refused lab.sig "$program" verify-bundle bundle --lab-key lab.pub
"$program" certify countersign bundle --key lab.key --plugin "$plugin" --sample 20 >/dev/null
"$program" verify-bundle bundle --vendor-key vendor.pub --lab-key lab.pub --plugin "$plugin" --sample 50 >/dev/null
refused commitment.json "$program" verify-bundle bundle --plugin "$liar"
# The bundle verifies in another folder, and with another build of the program, whose bytes differ.
strip -o elsewhere "$program"
cp -r bundle moved
./elsewhere verify-bundle moved --vendor-key vendor.pub --lab-key lab.pub --plugin "$plugin" --sample 50 >/dev/null

# For each part: flips one bit at each of five offsets, one at a time, then removes the part.
for part in commitment.json statement.json vendor.sig lab.sig lab.json cases.txt journal.jsonl; do
    size=$(stat -c %s "bundle/$part")
    for place in 0 $((size / 3)) $((size / 2)) $((size - 2)) $((size - 1)); do
        cp -r bundle flipped
        byte=$(od -An -tu1 -j "$place" -N 1 "flipped/$part")
        # shellcheck disable=SC2059
        printf "\\x$(printf %x $((byte ^ 1)))" | dd of="flipped/$part" bs=1 seek="$place" conv=notrunc status=none
        refused "$part" "$program" verify-bundle flipped
        rm -r flipped
    done
    cp -r bundle without
    rm "without/$part"
    if [[ $part == lab.sig ]]; then
        refused lab.sig "$program" verify-bundle without --lab-key lab.pub
    else
        refused "$part" "$program" verify-bundle without
    fi
    rm -r without
done
cp -r bundle more
echo '{"waivers": []}' >more/waivers.json
refused waivers.json "$program" verify-bundle more

# A plugin other than the committed one is not run.
"$program" certify commit other --plugin "$plugin" "${cases[@]}" >/dev/null
if "$program" certify run other --plugin "$liar" --nonce "$nonce" --key vendor.key 2>text; then die "another plugin is run"; fi
grep -q plugin_sha256 text || die "another plugin is refused as: $(cat text)"

# Running a sample again exposes a vendor who edits the journal before signing it.
"$program" certify commit forged --plugin "$liar" "${cases[@]}" >/dev/null
if "$program" certify run forged --plugin "$liar" --nonce "$nonce" --key vendor.key >/dev/null 2>&1; then
    die "the liar is certified"
fi
if "$program" verify-bundle forged >/dev/null 2>&1; then die "the bundle of a run that failed verifies"; fi
sed -i 's/"state":"fail","reason":"[^"]*"/"state":"pass","reason":""/; s/"seconds":[^,]*,"nodes":0/"seconds":0,"nodes":1/' forged/journal.jsonl
rm forged/statement.json forged/vendor.sig
"$program" certify run forged --resume --plugin "$liar" --nonce "$nonce" --key vendor.key >/dev/null ||
    die "the forgery does not work, so that nothing is tested"
"$program" verify-bundle forged >/dev/null
refused journal.jsonl "$program" verify-bundle forged --plugin "$liar" --sample 100000
