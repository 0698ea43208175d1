#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# layout_test.sh PROGRAM GOLDEN SIZES [--renew]
#
# Checks that the headers match the promised layout: GOLDEN/layout.txt has the layout, GOLDEN/drafts.txt a version for each layout.
# SIZES is the header with the sizes of ABI 1.0; until 1.0 is tagged, they are those of the draft. --renew writes all three files, and
# refuses to use a version again for another layout.
set -eu
[ $# -ge 3 ] || { echo "usage: layout_test.sh PROGRAM GOLDEN SIZES [--renew]; api/README.md has the whole command" >&2; exit 2; }
program=$1 golden=$2 sizes=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$program" >"$work/layout"
"$program" --sizes >"$work/sizes"
version=$("$program" --version)
digest=$(sha256sum <"$work/layout" | cut -d' ' -f1)

# Each layout has its own version, and versions only increase. Each line of drafts.txt is "0.N DIGEST".
taken=$(sed -n "s/^$version //p" "$golden/drafts.txt")
if [ -n "$taken" ] && [ "$taken" != "$digest" ]; then
    diff -u "$golden/layout.txt" "$work/layout" || true
    echo "The layout differs from that of ABI $version, which others may have built with: raise BP_ABI_VERSION in version.h, then"
    echo "  $0 $* --renew       # and a line in CHANGELOG.md"
    exit 1
fi
if [ "${4-}" = --renew ]; then
    cp "$work/layout" "$golden/layout.txt"
    cp "$work/sizes" "$sizes"
    [ -n "$taken" ] || echo "$version $digest" >>"$golden/drafts.txt"
fi
if ! diff -u "$golden/layout.txt" "$work/layout" || ! diff -u "$sizes" "$work/sizes" || ! grep -q "^$version " "$golden/drafts.txt"; then
    echo "The ABI's golden files are not those of version $version:"
    echo "  $0 $* --renew       # and a line in CHANGELOG.md"
    exit 1
fi
grep -v '^#' "$golden/drafts.txt" | awk -v now="$version" '
    NF != 2 || $1 !~ /^[0-9]+\.[0-9]+$/ { print "drafts.txt: \"" $0 "\" is not a version and a digest"; bad = 1 }
    { split($1, v, "."); number = v[1] * 65536 + v[2] }
    number <= last { print "drafts.txt: " $1 " does not come after the version above it"; bad = 1 }
    { last = number; version = $1 }
    END { if (version != now) { print "drafts.txt ends with " version " and version.h says " now; bad = 1 }; exit bad }'
