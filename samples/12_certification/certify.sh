#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# certify.sh PLUGIN FOLDER [FILTER]: a certification from its start to a page that a customer can read. In practice,
# three parties do this on three machines, and each step names what they exchange. The filter keeps the sample short, so
# no level is reached.
set -euo pipefail
[[ $# -ge 2 ]] || { echo "usage: certify.sh PLUGIN FOLDER [FILTER]" >&2; exit 2; }
plugin=$(realpath "$1")
mkdir -p "$2" && cd "$2"
filter=${3:-ops/Relu/*}

echo "1. vendor and laboratory generate keys; each sends its .pub to the certifier"
backplane-conform keygen vendor --owner "Acme Inc." >/dev/null
backplane-conform keygen lab --owner "A Laboratory" >/dev/null

echo "2. the vendor commits to its files and the cases, and sends commitment.json"
backplane-conform certify commit bundle --plugin "$plugin" --profile core --filter "$filter" >/dev/null
cp bundle/commitment.json commitment.json

echo "3. the certifier draws a nonce, from which all inputs follow"
nonce=$(openssl rand -hex 16)

echo "4. the vendor runs the cases, signs, and sends the bundle"
backplane-conform certify run bundle --plugin "$plugin" --nonce "$nonce" --key vendor.key >/dev/null

echo "5. the laboratory runs a sample again and countersigns"
backplane-conform certify countersign bundle --key lab.key --plugin "$plugin" --sample 20 >/dev/null

echo "6. the certifier, or anybody, verifies with the keys that they trust"
cat >trust.json <<END
{"trust": 1, "keys": [
  {"public_key": "$(cat vendor.pub)", "owner": "Acme Inc.", "roles": ["vendor"], "from": "2020-01-01", "to": "2099-12-31"},
  {"public_key": "$(cat lab.pub)", "owner": "A Laboratory", "roles": ["lab"], "from": "2020-01-01", "to": "2099-12-31"}
]}
END
chmod 600 trust.json
backplane-conform verify-bundle bundle --trust trust.json --nonce "$nonce" --commitment commitment.json --html certificate.html
echo "the page: $PWD/certificate.html"
