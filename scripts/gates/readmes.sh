#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# readmes.sh [--root DIR]: every folder of sources has a README.md. Folders of at most three sources need none where a folder above, other than
# the root, has one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
read_arguments "$@"
declare -A sources=()
while IFS= read -r file; do
    folder=$(dirname "$file")
    sources[$folder]=$((${sources[$folder]-0} + 1))
done < <(tracked '*.h' '*.hpp' '*.c' '*.cpp' '*.cl' '*.py' '*.java' '*.sh' '*.cmake')
some "${#sources[@]}"
bad=0
for folder in "${!sources[@]}"; do
    [[ $folder != . ]] || continue
    nearest=$folder
    while [[ ! -f $nearest/README.md && $nearest == */* ]]; do nearest=${nearest%/*}; done
    if [[ ! -f $nearest/README.md || ($nearest != "$folder" && ${sources[$folder]} -gt 3) ]]; then
        echo "$folder: ${sources[$folder]} sources and no README.md"
        bad=1
    fi
done
echo "readmes: ${#sources[@]} folders, $([[ $bad -eq 0 ]] && echo "no finding" || echo "findings above")"
exit "$bad"
