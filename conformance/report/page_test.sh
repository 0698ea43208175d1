#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# page_test.sh PROGRAM PLUGIN LIAR: checks the page of a good run, and the page of a bad run that is compared with it,
# as a browser renders them. Exits with status 77 (skipped) if no Chromium is installed.
set -euo pipefail
program=$1 plugin=$2 liar=$3
browser=$("$(dirname "$0")/../../scripts/browser.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Renders the page $1 into $work/dom, in its state after its script has run, in a window that is $2 pixels wide.
draw() {
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" --window-size="${2-1280}",900 --virtual-time-budget=2000 \
        --dump-dom "file://$1" 2>/dev/null | sed -e '/^<script>$/,/^<.script>$/d' -e 's|<script.*</script>||' >"$work/dom"
}
holds() {
    grep -qF -- "$1" "$work/dom" || { echo "the page lacks: $1"; exit 1; }
}
lacks() {
    ! grep -qF -- "$1" "$work/dom" || { echo "the page must not contain: $1"; exit 1; }
}

"$program" --plugin "$plugin" --filter 'ops/Add/float/*' --out "$work/good" >/dev/null
"$program" --plugin "$liar" --filter 'ops/Add/float/*' --out "$work/bad" >/dev/null || true
"$program" report "$work/good" >/dev/null
"$program" report "$work/bad" --compare "$work/good" >/dev/null

draw "$work/good/report.html"
holds "Nothing failed"
holds "the bound</text>"
holds "<td>Add</td><td>float</td>"
lacks "did not pass"
lacks "Compared"
lacks "undefined"
lacks "NaN"

draw "$work/bad/report.html"
holds "Cases that did not pass"
holds "ops/Add/float/same_long/0</b>"
holds 'data-copy="backplane-conform repro ops/Add/float/same_long/0 '
holds "Worse: "
holds '<th>case</th><th>before</th><th>now</th><th class="spare">what</th>'
holds "not reached: the filter 'ops/Add/float/*' leaves cases out"
holds "; their times add up to "
lacks "undefined"

draw "$work/bad/report.html" 500
# The whole chart fits in a narrow window, its text does not shrink, and the bound's name is above the numbers over the bars.
grep -qE '<svg viewBox="0 0 4[0-9]{2} ' "$work/dom" || { echo "the chart is not drawn for a narrow window"; exit 1; }
holds 'text-anchor="end" transform="rotate(-45 '
holds 'y="11" text-anchor="end"'
"$(dirname "$0")/../../scripts/page_width.sh" "$work/good/report.html" "$work/bad/report.html"
