#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# differential_test.sh CONFORM DEVICE COUNT: runs scripts/differential.py, on ONNX's operators and on those of
# com.microsoft, with the Python that scripts/setup.sh prepares.
set -euo pipefail
python=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}/venv/bin/python
if [[ ! -x $python ]]; then
    echo "skipped: $python is missing; scripts/setup.sh creates it"
    exit 77
fi
for operators in "" --foreign; do
    "$python" -B "$(dirname "$0")/../../scripts/differential.py" --conform "$1" --device "$2" --count "$3" ${operators:+"$operators"}
done
