#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# explain_page_test.sh PROGRAM MODEL: the pages of `explain --html` and `list --html` can be used on a phone. Exits with status 77 (skipped) if no
# Chromium is installed.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" explain "$2" --html "$work/explain.html" >/dev/null
"$1" list --html "$work/list.html" >/dev/null
"$(dirname "$0")/../../scripts/page_width.sh" "$work/explain.html" "$work/list.html"
