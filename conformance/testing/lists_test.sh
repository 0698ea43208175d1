#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lists_test.sh PROGRAM LISTS: each profile's list of cases is the one that its version stands for.
set -euo pipefail

if ! diff "$2" <("$1" list --lists); then
    echo "A list of cases has changed. Raise the version of its profile in conformance/cases/cases.cpp, unless it was never"
    echo "released, and write the lists anew: backplane-conform list --lists >conformance/cases/lists.txt"
    exit 1
fi
