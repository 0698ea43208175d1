#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# files_test.sh PROGRAM PLUGIN: files that are pipes or far too large are refused at once, and no command overwrites what it reads.
set -uo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

limit="ulimit -v 4000000"
($limit; "$program" --version) >/dev/null 2>&1 || limit=: # a sanitizer reserves more

# refused TEXT WORD…: the command ends at once with a failure, and says TEXT.
refused() {
    local text=$1 status=0
    shift
    ($limit; timeout 20 "$program" "$@") >out 2>&1 || status=$?
    if [[ $status -ne 1 && $status -ne 2 ]] || ! grep -qF -- "$text" out; then
        echo "FAILED ($status, no '$text'): $*"
        cat out
        exit 1
    fi
}

"$program" --plugin "$2" --filter 'ops/Add/float/same/*' --out run >/dev/null || exit 1
cp -r run other
mkdir pipe large
mkfifo fifo pipe/journal.jsonl pipe/commitment.json
truncate -s 1T large/journal.jsonl large/plugin.so
for command in "compare fifo run" "compare run fifo" "report fifo" "report run --compare fifo" "merge fifo" \
    "--plugin $2 --waivers fifo" "--plugin $2 --expect fifo"; do
    # shellcheck disable=SC2086
    refused "a pipe, not a regular file" $command
done
refused "'pipe/journal.jsonl' is a pipe, not a regular file" report pipe
refused "'pipe/journal.jsonl' is a pipe, not a regular file" --plugin "$2" --filter 'ops/Add/float/same/*' --out pipe --resume
refused "has 1099511627776 bytes, more than the" report large
refused "has 1099511627776 bytes, more than the" --plugin large/plugin.so --quick
refused "commitment.json: it is not a regular file" verify-bundle pipe
refused "is a folder, not a regular file" --plugin "$2" --waivers run

# What a command reads stays as it is.
before=$(sha256sum run/journal.jsonl other/journal.jsonl)
refused "would overwrite 'run/journal.jsonl', which the command reads" merge run --out run
ln -s run link
refused "would overwrite" merge run --out link
cp run/journal.jsonl summary.json
refused "would overwrite 'summary.json'" report summary.json
refused "the same file as 'summary.json', which" report run --compare summary.json --out .
cp summary.json waivers.sig
refused "would overwrite 'waivers.sig'" certify accept-waivers waivers --key waivers.sig
refused "would overwrite 'run/journal.jsonl'" verify-bundle run --html run/journal.jsonl
cmp -s summary.json run/journal.jsonl || { echo "summary.json was overwritten"; exit 1; }
[[ $(sha256sum run/journal.jsonl other/journal.jsonl) == "$before" ]] || { echo "a journal was overwritten"; exit 1; }
"$program" merge run --out merged >/dev/null 2>&1 || true # part of the cases reaches no level
[[ -s merged/journal.jsonl ]] || { echo "merge does not write to another folder"; exit 1; }
echo "all refused"
