#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tiles_test.sh BACKPLANE alone|largest_group|smallest_group: checks that a network agrees with its stored results when its matrix
# products use a tile of this kind. The tiles depend on the device, so they are read from an error message of the backend.
set -euo pipefail
program=$1 kind=$2
name=light/squeezenet
data=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}

if [[ ! -f $data/$name/model.onnx ]]; then
    echo "skipped: $name is not in $data; scripts/setup.sh fetches it"
    exit 77
fi
listed=$("$program" list --json) || { echo "backplane list fails"; exit 1; }
if [[ $listed != *'"backend": "opencl"'* ]]; then
    echo "skipped: this machine has no OpenCL device; scripts/setup.sh installs one for the processor"
    exit 77
fi

# The error for an unknown tile lists the tiles of the device NAME: "NAME runs A, B; without the option …"
refusal=$("$program" run "$data/$name/model.onnx" --device opencl,cpu --fallback prefer --set opencl.tile=none 2>&1 || true)
mapfile -t tiles < <(sed -nE 's/.* runs (.*); without the option.*/\1/p' <<<"$refusal" | tr -d ' ' | tr , '\n')
if [[ ${#tiles[@]} -eq 0 ]]; then
    echo "an unknown tile is not refused with the list of those that the device has: $refusal"
    exit 1
fi

# Prints the work items in a group: GROUP_ROWS times GROUP_COLUMNS of the tile ROWSxVECTORxCOLUMNS/DEPTH:GROUP_ROWSxGROUP_COLUMNS.
group_items() {
    local group=${1#*:}
    echo $((${group%x*} * ${group#*x}))
}
chosen=
for tile in "${tiles[@]}"; do
    if [[ $kind == alone ]]; then
        # Prefers a tile with 6 or 12 rows: not a power of two, so its last rows are divided differently.
        if [[ $tile != */* ]] && [[ -z $chosen || ($tile =~ ^(6|12)x && ! $chosen =~ ^(6|12)x) ]]; then chosen=$tile; fi
    elif [[ $tile == */* ]]; then
        items=$(group_items "$tile")
        if [[ -z $chosen ]] || { [[ $kind == largest_group ]] && [[ $items -gt $(group_items "$chosen") ]]; } ||
            { [[ $kind == smallest_group ]] && [[ $items -lt $(group_items "$chosen") ]]; }; then
            chosen=$tile
        fi
    fi
done
if [[ -z $chosen ]]; then
    echo "skipped: none of the tiles of this device is of the kind $kind: ${tiles[*]}"
    exit 77
fi
echo "tile $chosen, of ${tiles[*]}"
exec "$(dirname "$0")/../../gpu/testing/models_test.sh" "$program" opencl 95 "$name" --set opencl.tile="$chosen"
