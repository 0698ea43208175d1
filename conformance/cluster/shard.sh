#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shard.sh OUT ARGUMENTS…: one task's share of a run, in OUT/shard-I. The batch system says which: Slurm's job arrays by
# SLURM_ARRAY_TASK_*, Kubernetes' indexed jobs by JOB_COMPLETION_INDEX and SHARDS. A task that is started again goes on where
# it was stopped. The program is backplane-conform in PATH, or $CONFORM.
set -euo pipefail

out=$1
shift
if [[ -n ${SLURM_ARRAY_TASK_ID:-} ]]; then
    # shellcheck disable=SC2153 # both are Slurm's
    index=$((SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN + 1)) count=$SLURM_ARRAY_TASK_COUNT
elif [[ -n ${JOB_COMPLETION_INDEX:-} ]]; then
    index=$((JOB_COMPLETION_INDEX + 1)) count=${SHARDS:?it must be the number of completions}
else
    echo "shard.sh: neither a task of a Slurm job array nor of an indexed Kubernetes job" >&2
    exit 2
fi

status=0
"${CONFORM:-backplane-conform}" "$@" --shard "$index/$count" --out "$out/shard-$index" --resume || status=$?
# 1 is a failure of the backend: the task did its work, and merge prints the verdict. It also reports a shard that did not finish.
[[ $status -le 1 ]]
