#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# replay_test.sh PROGRAM REPLAY: a backend that replays results recorded with the public seeds passes a full run, but
# must not be certified.
set -euo pipefail

program=$1 plugin=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cases=(--plugin "$plugin" --profile core --full --filter 'ops/[ABM]*/float/*')

export BACKPLANE_REPLAY=$work/answers
BACKPLANE_REPLAY_RECORD=1 "$program" "${cases[@]}" >/dev/null
"$program" "${cases[@]}" >/dev/null || { echo "it does not pass the full run: nothing is tested"; exit 1; }

"$program" keygen vendor --owner "Acme" --folder "$work" >/dev/null
"$program" certify commit "$work/bundle" "${cases[@]}" >/dev/null
if "$program" certify run "$work/bundle" --plugin "$plugin" --nonce "$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')" --key "$work/vendor.key" >"$work/text" 2>&1; then
    echo "a backend that replays answers is certified"
    exit 1
fi
grep -qE '^fail +ops/' "$work/text" || { cat "$work/text"; echo "it is refused for another reason"; exit 1; }
