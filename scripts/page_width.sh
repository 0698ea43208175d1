#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# page_width.sh PAGE...: fails if a page is wider than a phone of 390 pixels, so that the whole of it scrolls sideways, or if a drawing in it has
# no room. Exit status 2 if a page does not exist, 77 (skipped) if no Chromium is installed.
set -euo pipefail
browser=$("$(dirname "$0")/browser.sh")
for page in "$@"; do
    [[ -f $page ]] || { echo "page_width: there is no page '$page'" >&2; exit 2; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A window of Chromium cannot be as narrow as a phone, but a frame in it can.
{
    echo '<!DOCTYPE html><body><pre id="found"></pre><script>let seen = 0; const found = [];'
    # shellcheck disable=SC2016 # for the browser
    printf '%s\n' 'function measure(frame) {
            const page = frame.contentDocument, wide = page.documentElement.scrollWidth, name = decodeURI(frame.src);
            if (wide > frame.clientWidth) found.push(`WIDE ${name}: ${wide} pixels wide on a phone of ${frame.clientWidth}`);
            for (const drawing of page.querySelectorAll("canvas, svg"))
              if (drawing.checkVisibility() && drawing.getBoundingClientRect().width < 24) found.push(`WIDE ${name}: ${drawing.tagName} ${drawing.id} has no room`);
            ++seen;
          }
          onload = () => { document.querySelectorAll("iframe").forEach(measure); document.getElementById("found").textContent = [...found, `seen ${seen}`].join("\n") + "\n"; };</script>'
    for page in "$@"; do echo "<iframe src=\"file://$(realpath "$page")\" style=\"border:0; width:390px; height:844px\"></iframe>"; done
} >"$work/frames.html"
timeout 110 "$browser" --headless --no-sandbox --disable-gpu --disable-web-security --user-data-dir="$work/profile" --virtual-time-budget=20000 \
    --dump-dom "file://$work/frames.html" 2>/dev/null | sed -n 's/^.*<pre id="found">//; /^WIDE \|^seen /p' >"$work/found"
sed -n 's|^WIDE file://||p' "$work/found"
! grep -q '^WIDE' "$work/found" || exit 1
grep -q "^seen $#\$" "$work/found" || { echo "page_width: not all of $# pages were measured: $(cat "$work/found")"; exit 1; }
echo "page_width: $# pages fit on a phone"
