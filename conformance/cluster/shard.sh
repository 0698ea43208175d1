#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shard.sh OUT ARGUMENTS…: runs one task's share of a run and writes it to OUT/shard-I, where I counts from 1.
# Slurm's job arrays: I is SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN + 1; Slurm sets the number of tasks too.
# Kubernetes' indexed jobs: I is JOB_COMPLETION_INDEX + 1; the job's manifest must set SHARDS to its `completions`.
# A task that is started again continues where it stopped. The program is backplane-conform in PATH, or $CONFORM.
set -euo pipefail

out=$1
shift
if [[ -n ${SLURM_ARRAY_TASK_ID:-} ]]; then
    # shellcheck disable=SC2153 # both are Slurm's
    index=$((SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN + 1)) count=$SLURM_ARRAY_TASK_COUNT
elif [[ -n ${JOB_COMPLETION_INDEX:-} ]]; then
    index=$((JOB_COMPLETION_INDEX + 1)) count=${SHARDS:?set it in the manifest of the job to its number of completions}
else
    echo "shard.sh: neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set: start it as a task of a Slurm job array or of an indexed Kubernetes job" >&2
    exit 2
fi

status=0
"${CONFORM:-backplane-conform}" "$@" --shard "$index/$count" --out "$out/shard-$index" --resume || status=$?
# Status 1 means that the backend failed cases or that the shard did not finish. The task succeeds nevertheless: merge
# reports both.
[[ $status -le 1 ]]
