#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# browser.sh: prints the name of the installed Chromium. If there is none, says so on standard error and exits with status 77 (skipped).
for browser in chromium chromium-browser google-chrome; do
    if command -v "$browser" >/dev/null; then
        echo "$browser"
        exit
    fi
done
echo "skipped: no Chromium is installed; scripts/setup.sh installs it" >&2
exit 77
