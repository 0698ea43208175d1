#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A run over the C ABI as a job array. From this folder, with OUT on a file system that all nodes share:
#
#   run=$(PLUGIN=/path/libbackplane_x.so OUT=/shared/run sbatch --parsable slurm.sh)
#   sbatch --dependency=afterok:$run --wrap "backplane-conform merge /shared/run/shard-* --out /shared/run/whole"
#
#SBATCH --job-name=backplane-conform
#SBATCH --array=1-8
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
#SBATCH --requeue
set -euo pipefail

read -ra choice <<<"${CHOICE:---profile core --full}"
exec "$SLURM_SUBMIT_DIR/shard.sh" "$OUT" --plugin "$PLUGIN" "${choice[@]}" --jobs "$SLURM_CPUS_PER_TASK"
