#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lists_test.sh PROGRAM LISTS: the list of cases of each profile must be the one recorded for the profile's version.
set -euo pipefail

if ! diff "$2" <("$1" list --lists); then
    echo "A list of cases has changed. Raise the version of its profile in conformance/cases/cases.cpp, unless it was never"
    echo "released, and regenerate the lists: backplane-conform list --lists >conformance/cases/lists.txt"
    exit 1
fi
