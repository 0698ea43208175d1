#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cheats_test.sh PROGRAM HONEST LIARS: no known way of cheating a certification reaches a level that it does not
# deserve, and each is reported. HONEST is a plugin that passes, LIARS the folder of bad backends.
set -euo pipefail

program=$1 honest=$2 liars=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

die() { echo "cheats_test: $*" >&2; exit 1; }
draw() { head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
# says TEXT COMMAND...: the output of the command must contain the text. The exit status is in $status.
says() {
    local text=$1
    shift
    status=0
    "$@" >said 2>&1 || status=$?
    grep -qF -- "$text" said || die "'$text' is not said by: $* ($(cat said))"
}
# refused TEXT COMMAND...: like says, and the command must fail.
refused() {
    says "$@"
    [[ $status -ne 0 ]] || die "not refused: ${*:2}"
}
no_level() { ! grep -qE '^L[0-3] reached' said || die "a level is reached: $(cat said)"; }
# certify BUNDLE PLUGIN OPTION...: commits and runs. The output is in the file `said`.
certify() {
    local bundle=$1 plugin=$2
    shift 2
    "$program" certify commit "$bundle" --plugin "$plugin" "$@" >/dev/null
    "$program" certify run "$bundle" --plugin "$plugin" --nonce "$(draw)" --key vendor.key "${run_options[@]}" >said 2>&1 || true
}
run_options=()

for who in vendor lab certifier stranger; do "$program" keygen "$who" --owner "Independent Laboratory" >/dev/null; done
key() {
    printf '{"public_key": "%s", "owner": "%s", "roles": ["%s"], "from": "%s", "to": "%s"%s}' \
        "$(cat "$1.pub")" "$2" "$3" "${4:-2020-01-01}" "${5:-2099-12-31}" "${6:-}"
}
mkdir trust
trust() { printf '{"trust": 1, "keys": [%s, %s, %s]}' "$1" "$2" "$(key certifier Buyer certifier)" >trust/keys.json; }
trust "$(key vendor Acme vendor)" "$(key lab Lab lab)"
few=(--profile core --filter 'ops/Add/float/*')

# A plugin that writes its own verdicts passes no case and reaches no level.
refused "a record that is not the harness's" "$program" --plugin "$liars/libbackplane_forger.so" --profile core
no_level
refused "no node ran on the device under test" "$program" --plugin "$liars/libbackplane_forger.so" --filter 'abi/*'
certify forged "$liars/libbackplane_forger.so" --profile core 2>/dev/null || true
! grep -qE '^L[0-3] reached' said || die "the forger reaches a level"
! grep -qE ' pass$|[0-9] pass ' said || die "the forger passes a case: $(cat said)"

# A vendor selects only the cases that pass.
certify filtered "$honest" "${few[@]}"
says "but the filter 'ops/Add/float/*' leaves cases out: no level is reached" "$program" verify-bundle filtered --trust trust
head -2 said | grep -q filter || die "the filter is not in the first lines"
no_level
refused "L0 is not reached" "$program" verify-bundle filtered --trust trust --require-level L0

# A vendor waives every failure.
waiver() {
    printf '{"waivers": [{"device": "*", "versions": ["", ""], "case": "%s", "reason": "r", "link": "l", "expires": "%s"}]}' "$1" "$2"
}
waiver '*' 2099-01-01 >all.json
run_options=(--waivers all.json)
certify waived "$liars/libbackplane_zeros.so" --profile core --waivers all.json
refused "waived by '*', which is too wide" "$program" verify-bundle waived --trust trust
! grep -qE '^L[1-3] reached' said || die "a level by waivers: $(cat said)"
"$program" certify accept-waivers all.json --key certifier.key
cp all.json.sig waived/waivers.sig
refused "waived by '*', which is too wide" "$program" verify-bundle waived --trust trust
! grep -qE '^L[1-3] reached|the waivers count' said || die "a level by waivers of the certifier that are too wide"

# Waivers count if the certifier signed them, through their expiry day by the verifier's clock.
waiver 'ops/Add/float/*' 2099-01-01 >add.json
run_options=(--waivers add.json)
certify narrow "$liars/libbackplane_one_element.so" "${few[@]}" --waivers add.json
refused "the waivers do not count" "$program" verify-bundle narrow --trust trust
for who in vendor stranger certifier; do
    "$program" certify accept-waivers add.json --key $who.key
    cp add.json.sig narrow/waivers.sig
    case $who in
        vendor) refused "with the vendor's own key" "$program" verify-bundle narrow --trust trust ;;
        stranger) refused "the key is unknown" "$program" verify-bundle narrow --trust trust ;;
        certifier)
            says "the waivers count" "$program" verify-bundle narrow --trust trust
            [[ $status -eq 0 ]] || die "$(cat said)"
            ;;
    esac
done
run_options=()

# A vendor signs in the laboratory's name.
certify bundle "$honest" "${few[@]}"
refused "the vendor's own" "$program" certify countersign bundle --key vendor.key --plugin "$honest"
says "not countersigned" "$program" verify-bundle bundle --trust trust
cp -r bundle alien
"$program" certify countersign alien --key stranger.key --plugin "$honest" --sample 5 >/dev/null
says "not countersigned: there is a signature by a key that names 'Independent Laboratory' as its owner" "$program" verify-bundle alien
says "not countersigned" "$program" verify-bundle alien --trust trust
refused "lab.sig" "$program" verify-bundle alien --trust trust --lab-key lab.pub
cp -r bundle signed
"$program" certify countersign signed --key lab.key --plugin "$honest" --sample 5 >/dev/null
says "countersigned by Lab" "$program" verify-bundle signed --trust trust
trust "$(key vendor Acme vendor)" "$(key lab Acme lab)"
says "it is another key of the vendor" "$program" verify-bundle signed --trust trust

# Expired, revoked and unknown keys do not count.
trust "$(key vendor Acme vendor 2020-01-01 2020-12-31)" "$(key lab Lab lab)"
refused "the key expired on 2020-12-31" "$program" verify-bundle signed --trust trust
trust "$(key vendor Acme vendor)" "$(key lab Lab lab 2020-01-01 2020-12-31)"
says "the key expired on 2020-12-31" "$program" verify-bundle signed --trust trust
trust "$(key vendor Acme vendor 2020-01-01 2099-12-31 ', "revoked": "2026-01-01"')" "$(key lab Lab lab)"
refused "the key was revoked" "$program" verify-bundle signed --trust trust
trust "$(key lab Lab lab)" "$(key lab Lab lab)"
refused "the key is unknown" "$program" verify-bundle signed --trust trust
trust "$(key vendor Acme vendor)" "$(key lab Lab lab)"

# Weak nonces, and nonces from another party, are refused.
"$program" certify commit weak --plugin "$honest" "${few[@]}" >/dev/null
for nonce in 00000000 00000000000000000000000000000000 20261120-5f3a 0123456789abcdef0123456789abcde "$(draw | tr a-f A-F)G"; do
    refused "--nonce: it" "$program" certify run weak --plugin "$honest" --nonce "$nonce" --key vendor.key
done
says "not compared: pass the one that you drew" "$program" verify-bundle signed --trust trust
refused "its nonce is" "$program" verify-bundle signed --trust trust --nonce "$(draw)"
refused "commitment.json" "$program" verify-bundle signed --trust trust --commitment weak/commitment.json
cp signed/commitment.json sent.json
nonce=$(sed -n 's/^  "nonce": "\([0-9a-f]*\)",$/\1/p' signed/statement.json)
says "the one that was drawn" "$program" verify-bundle signed --trust trust --nonce "$nonce" --commitment sent.json
[[ $status -eq 0 ]] || die "the nonce that was drawn is refused: $(cat said)"

# A file next to an unchanged plugin is no longer the one that was committed.
mkdir delivered
cp "$liars/libbackplane_maps_settings.so" delivered/plugin.so
echo right >delivered/plugin.so.settings
certify loads delivered/plugin.so "${few[@]}"
grep -q plugin.so.settings loads/statement.json || die "the file that the plugin maps is not in the statement"
says "cases drawn at random were run again" "$program" verify-bundle loads --trust trust --plugin delivered/plugin.so
[[ $status -eq 0 ]] || die "an honest plugin is refused: $(cat said)"
"$program" certify commit swapped --plugin delivered/plugin.so "${few[@]}" >/dev/null
echo Right >delivered/plugin.so.settings # of equal size, and as harmless
refused "had the SHA-256" "$program" certify run swapped --plugin delivered/plugin.so --nonce "$(draw)" --key vendor.key
refused "which the plugin loads, is" "$program" verify-bundle loads --trust trust --plugin delivered/plugin.so
# Nor is one in another folder, to which only a link is delivered.
mkdir beside
echo right >beside/settings
ln -sf ../beside/settings delivered/plugin.so.settings
certify linked delivered/plugin.so "${few[@]}"
says "cases drawn at random were run again" "$program" verify-bundle linked --trust trust --plugin delivered/plugin.so
[[ $status -eq 0 ]] || die "an honest plugin is refused: $(cat said)"
echo Right >beside/settings
refused "and no file in the statement has its SHA-256" "$program" verify-bundle linked --trust trust --plugin delivered/plugin.so

# A plugin can read the key of the user as whom it runs, which a countersignature says. It cannot as another user.
chmod 755 . # for the other user
mkdir -m 777 open
cp "$liars/libbackplane_reads_key.so" open/plugin.so
certify read open/plugin.so "${few[@]}"
cp -r read unread
rm open/plugin.so.read
says "the plugin ran as the user who owns the key, and could read it" "$program" certify countersign read --key lab.key --plugin open/plugin.so --sample 5
[[ -e open/plugin.so.read ]] || die "the plugin does not read the key"
rm open/plugin.so.read
says "by a plugin that could read the laboratory's key" "$program" verify-bundle read --trust trust
refused "--user: there is no user 'no-such-user'" "$program" certify countersign unread --key lab.key --plugin open/plugin.so --user no-such-user
if [[ $EUID -ne 0 ]]; then
    refused "only root can start processes as another user" "$program" certify countersign unread --key lab.key --plugin open/plugin.so --user nobody
    echo "skipped: processes as another user, for which the test must run as root"
elif ! setpriv --reuid=nobody --clear-groups test -r "$liars/libbackplane_reads_key.so"; then
    echo "skipped: processes as another user, because the user nobody cannot read the build"
else
    refused "has all rights" "$program" certify countersign unread --key lab.key --plugin open/plugin.so --user root
    says "countersigned" "$program" certify countersign unread --key lab.key --plugin open/plugin.so --sample 5 --user nobody
    [[ $status -eq 0 ]] || die "a plugin that runs as another user is refused: $(cat said)"
    ! grep -q "could read" said || die "the plugin of another user is said to read the key"
    [[ ! -e open/plugin.so.read ]] || die "a plugin that runs as another user reads the key"
    says "countersigned by Lab" "$program" verify-bundle unread --trust trust
    ! grep -q "could read" said || die "the plugin of another user is said to have read the key"
fi

# Secrets that others can read are refused, and secrets are not written through links.
chmod 644 stranger.key
refused "gives others permissions" "$program" certify accept-waivers add.json --key stranger.key
ln -s "$work/elsewhere" dangling.key
refused "already exists" "$program" keygen dangling --owner X
[[ ! -e elsewhere ]] || die "a secret is written through a link"

# Bundles built to harm the verifier are refused.
hostile() { rm -rf hostile && cp -r signed hostile; }
hostile
head -c 5000000 /dev/zero >hostile/lab.json
refused "more than" "$program" verify-bundle hostile --trust trust
hostile
ln -sf /dev/zero hostile/waivers.json
refused "is not a regular file" "$program" verify-bundle hostile --trust trust
hostile
touch "hostile/$(printf '\033]0;owned\007')"
refused "does not belong to a bundle" "$program" verify-bundle hostile --trust trust
! grep -q "$(printf '\033')" said || die "an escape sequence reaches the terminal"

# The JSON output states the same limits as the text.
"$program" verify-bundle signed --trust trust --json >json
for text in '"judged": \[' 'leaves cases out: no level is reached' '"levels": \[\]' '"compared": false'; do
    grep -q "$text" json || die "the JSON lacks '$text'"
done

# The HTML page states the same limits, loads nothing and runs no script.
"$program" verify-bundle signed --trust trust --html page.html >/dev/null
for text in "leaves cases out" "countersigned by Lab"; do
    grep -q "$text" page.html || die "the page lacks '$text'"
done
! grep -qiE '<script|src=|href=' page.html || die "the page loads or runs something"
