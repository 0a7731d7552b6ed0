#!/bin/bash
#SBATCH --job-name=infx-r1-0123abcd-array
#SBATCH --partition=compute
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:8
#SBATCH --exclusive
#SBATCH --time=485
#SBATCH --array=0-35%9
#SBATCH --output=/results/runs/r1/slurm/b1/%A_%a.log
#SBATCH --open-mode=append
#SBATCH --no-requeue
#SBATCH --signal=B:TERM@120
#SBATCH --kill-on-invalid-dep=yes
#SBATCH --export=ALL
#SBATCH --cpus-per-task=128
#
# Written by infx for 36 attempts, one a line of the file `tasks`.
set -euo pipefail

run_dir=/results/runs/r1
folder=/results/runs/r1/slurm/b1
node=${SLURMD_NODENAME:-$HOSTNAME}

stop() {
  echo "infx: $1" >&2
  exit "$2"
}

[[ -r $folder/tasks ]] || stop "$node cannot read $folder/tasks: is the folder shared?" 66
attempt=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" "$folder/tasks")
[[ -n $attempt ]] || stop "$folder/tasks has no line for this task" 66
cd "$run_dir/$attempt" || stop "$node has no folder $run_dir/$attempt" 66
echo "infx: job ${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID on $node, see $PWD/infx.log"
exec >>infx.log 2>&1

# The job's own process from here on: the TERM that comes 120 s before the limit is for it.
python=/venv/bin/python
[[ -x $python ]] || stop "$node has no interpreter $python" 69
exec "$python" -P -m infx.job job.json
