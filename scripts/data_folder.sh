# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by other scripts: exports BACKPLANE_DATA, the folder of data and tools that setup.sh fills, as an absolute path, because tests run in
# other folders.
if [[ -z ${BACKPLANE_DATA-} && -z ${XDG_CACHE_HOME-} && -z ${HOME-} ]]; then
    echo "$(basename "$0"): HOME is not set: set BACKPLANE_DATA to the folder for data and tools" >&2
    exit 2
fi
BACKPLANE_DATA=$(realpath -m "${BACKPLANE_DATA:-${XDG_CACHE_HOME:-${HOME-}/.cache}/backplane}")
export BACKPLANE_DATA
if ! mkdir -p "$BACKPLANE_DATA" 2>/dev/null || [[ ! -w $BACKPLANE_DATA ]]; then
    echo "$(basename "$0"): $BACKPLANE_DATA cannot be written: set BACKPLANE_DATA to a folder that can be, for data and tools" >&2
    exit 1
fi
