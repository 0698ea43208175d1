#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cluster_test.sh PROGRAM PLUGIN: starts every task of slurm.sh and kubernetes.yaml as those systems would, on a few
# cases, then merges the shards. The results must equal those of one run without shards.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CONFORM=$1
filter='[ac]*/*'
die() {
    echo "cluster_test: $*" >&2
    find "$work" -name journal.jsonl -exec grep -hE '"state":"(fail|crash|timeout|mistrusted)' {} + >&2
    exit 1
}
states() { sed -nE 's/^\{"case":"([^"]*)".*"state":"([^"]*)".*/\1 \2/p' "$1/journal.jsonl" | sort; }

"$CONFORM" --plugin "$2" --profile core --filter "$filter" --out "$work/whole" >/dev/null || die "the run in one go fails"

# Slurm: the array's range and the number of cores are in the head of the script.
IFS=- read -r first last < <(sed -n 's/^#SBATCH --array=//p' "$here/slurm.sh")
cores=$(sed -n 's/^#SBATCH --cpus-per-task=//p' "$here/slurm.sh")
for ((id = first; id <= last; ++id)); do
    SLURM_ARRAY_TASK_ID=$id SLURM_ARRAY_TASK_MIN=$first SLURM_ARRAY_TASK_COUNT=$((last - first + 1)) \
        SLURM_CPUS_PER_TASK=$cores SLURM_SUBMIT_DIR=$here PLUGIN=$2 OUT=$work/slurm CHOICE="--profile core --filter $filter" \
        "$here/slurm.sh" >/dev/null || die "task $id of the job array fails"
done
"$CONFORM" merge "$work"/slurm/shard-* --out "$work/slurm/whole" >/dev/null || die "the shards of the job array do not merge"
diff <(states "$work/whole") <(states "$work/slurm/whole")

# Kubernetes: the command, the number of completions and SHARDS are in the manifest.
list() { awk -v key="$1:" '$1 == key { on = 1; next } on && $1 == "-" { gsub(/"/, "", $2); print $2; next } { on = 0 }' "$here/kubernetes.yaml"; }
completions=$(awk '$1 == "completions:" { print $2 }' "$here/kubernetes.yaml")
shards=$(awk '/name: SHARDS/ { getline; gsub(/"/, "", $2); print $2 }' "$here/kubernetes.yaml")
[[ $completions == "$shards" ]] || die "SHARDS is $shards, completions is $completions"
mapfile -t command < <(list command)
command=("${command[@]//\/conformance/$work/k8s}")
command=("${command[@]//libbackplane_x.so/$(basename "$2")}")
command=("${command[@]/--full/--filter=$filter}")
mkdir "$work/k8s"
cp "$here/shard.sh" "$work/k8s/"
cp "$2" "$work/k8s/"
for ((index = 0; index < completions; ++index)); do
    JOB_COMPLETION_INDEX=$index SHARDS=$shards "${command[@]}" >/dev/null || die "index $index of the job fails"
done
rm -r "$work/k8s/run/shard-2"
if "$CONFORM" merge "$work"/k8s/run/shard-* >/dev/null 2>&1; then die "a run without its second shard is merged"; fi
JOB_COMPLETION_INDEX=1 SHARDS=$shards "${command[@]}" >/dev/null
"$CONFORM" merge "$work"/k8s/run/shard-* --out "$work/k8s/whole" >/dev/null || die "the shards of the indexed job do not merge"
diff <(states "$work/whole") <(states "$work/k8s/whole")
