#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh BIN PLUGIN: the sample runs to its end, and the page names the signers.
set -euo pipefail
export PATH=$1:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$(dirname "$0")/certify.sh" "$2" "$work/out" 'ops/Relu/*' | tee "$work/text"
grep -q "Acme Inc" "$work/text"
grep -q "A Laboratory" "$work/out/certificate.html"
"$(dirname "$0")/../../scripts/page_width.sh" "$work/out/certificate.html" || [[ $? == 77 ]]
