#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# models_test.sh PROGRAM HONEST LIAR...: cases cut from the available models must find no fault in the honest plugin and
# at least one in each liar. Folders without usable models must be reported.
set -euo pipefail
program=$1 honest=$2
shift 2
data=${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}
models=()
for folder in models light; do
    [[ -d $data/$folder ]] && models+=(--models "$data/$folder")
done
[[ ${#models[@]} -gt 0 ]] || { echo "skipped: no models in $data; scripts/setup.sh fetches them"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Counts the results in state $2 of plugin $1. The remaining arguments name the folders of models.
count() {
    local plugin=$1 state=$2
    shift 2
    rm -rf "$work/out"
    "$program" --plugin "$plugin" "$@" --filter 'graph/models/*' --out "$work/out" >"$work/output" 2>&1 || true
    grep -cE "\"state\":\"($state)\"" "$work/out/journal.jsonl" || true
}

bad='fail|crash|timeout|mistrusted|infra_error'
passed=$(count "$honest" pass "${models[@]}")
grep -E "^graph/models/.*left out|^[0-9]+ of" "$work/output"
! grep -qE "\"state\":\"($bad)\"" "$work/out/journal.jsonl" || { cat "$work/output"; exit 1; }
# On average, at least six of the eight cases of each model must pass.
folders=$(grep -o '"case":"graph/models/[^"]*/0"' "$work/out/journal.jsonl" | wc -l)
[[ $folders -ge 4 && $passed -ge $((6 * folders)) ]] || { echo "only $passed cases of $folders models passed"; exit 1; }
for liar in "$@"; do
    [[ $(count "$liar" "$bad" "${models[@]:0:2}") -gt 0 ]] || { echo "$liar is not caught"; exit 1; }
done

# refused TEXT OPTION...: the program must exit with status 2, and its output must contain the text.
refused() {
    local words=$1 status=0
    shift
    "$program" --plugin "$honest" "$@" >"$work/output" 2>&1 || status=$?
    { [[ $status -eq 2 ]] && grep -qF -- "$words" "$work/output"; } || { cat "$work/output"; echo "status $status: $*"; exit 1; }
}
mkdir "$work/empty" "$work/broken"
head -c 4096 /dev/urandom >"$work/broken/noise.onnx"
refused "'$work/none' is not a folder" --models "$work/none"
refused "'$work/empty' has no *.onnx" --models "$work/empty"
refused "could be cut" --models "$work/broken"
refused "exclude each other" --models "$work/broken" --profile core
