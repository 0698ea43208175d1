#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# upgrade_test.sh CONFORM DEVICE: runs scripts/upgrades.py with the Python that scripts/setup.sh prepares. CONFORM is the
# path of backplane-conform. Exits with 77 (skipped) if that Python is missing.
set -euo pipefail
python=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}/venv/bin/python
if [[ ! -x $python ]]; then
    echo "skipped: $python is missing; scripts/setup.sh makes it"
    exit 77
fi
exec "$python" -B "$(dirname "$0")/../../../scripts/upgrades.py" --conform "$1" --device "$2"
