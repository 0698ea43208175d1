# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the gates. A gate takes [--root DIR] [FILE…]: the tree to check (default: this one), and the files in it (default: all). It prints each
# violation with its location, then one line of summary. Exit status: 0 if there is none, 1 if there is one, 2 for wrong usage, 77 if a
# tool is missing.
set -euo pipefail
gates=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# read_arguments "$@": sets root and files, and changes to the root.
read_arguments() {
    root=$gates/../..
    if [[ ${1-} == --root ]]; then
        [[ -d ${2-} ]] || { echo "$(basename "$0"): --root is '${2-}', which is not a folder" >&2; exit 2; }
        root=$2
        shift 2
    fi
    if [[ ${1-} == -* ]]; then
        echo "$(basename "$0"): unknown option '$1': it takes [--root DIR] [FILE…]" >&2
        exit 2
    fi
    files=("$@")
    cd "$root"
    local file
    for file in "${files[@]}"; do
        [[ -f $file ]] || { echo "$(basename "$0"): there is no file '$file'" >&2; exit 2; }
    done
}

# tracked PATTERN…: prints the files of the tree that match, one per line. If files were passed to the gate, prints only those of them that
# match. Without git, all files count except hidden ones and those in build folders.
tracked() {
    local pattern file
    if [[ ${#files[@]} -gt 0 ]]; then
        for file in "${files[@]}"; do
            for pattern in "$@"; do
                # shellcheck disable=SC2053 # a pattern
                if [[ $file == $pattern && -f $file ]]; then echo "$file"; break; fi
            done
        done
    elif [[ -e .git ]] && git rev-parse --git-dir >/dev/null 2>&1; then
        git -c core.quotePath=false ls-files --cached --others --exclude-standard -- "$@" |
            while IFS= read -r file; do [[ ! -f $file ]] || echo "$file"; done
    else
        find . -name '.?*' ! -name .ci -prune -o -name build -prune -o -type f -print | sed 's|^\./||' | while IFS= read -r file; do
            for pattern in "$@"; do
                # shellcheck disable=SC2053
                if [[ $file == $pattern ]]; then echo "$file"; break; fi
            done
        done
    fi
}

# some COUNT: fails if the gate has no FILE arguments and found no file.
some() {
    if [[ $1 -eq 0 && ${#files[@]} -eq 0 ]]; then
        echo "$(basename "$0" .sh): no file to check in $PWD"
        exit 1
    fi
}

# find_tool NAME: prints the path of the program that setup.sh installed, so that every machine uses the same release; if there is none,
# that of the system's program.
find_tool() {
    local data=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane} tool
    if [[ -x $data/tools/bin/$1 ]]; then
        echo "$data/tools/bin/$1"
    elif tool=$(command -v "$1"); then
        echo "$tool"
    else
        echo "skipped: $1 is missing; scripts/setup.sh installs it" >&2
        return 77
    fi
}
