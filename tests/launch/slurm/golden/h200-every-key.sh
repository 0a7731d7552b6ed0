#!/bin/bash
#SBATCH --job-name=infx-r1-0123abcd-array
#SBATCH --partition=main
#SBATCH --account=sa-shared
#SBATCH --qos=normal
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=h200:8
#SBATCH --exclusive
#SBATCH --time=7
#SBATCH --exclude='node[3-4]'
#SBATCH --array=0-2%2
#SBATCH --output='/shared/in fx/runs/r1/slurm/b1/%A_%a.log'
#SBATCH --open-mode=append
#SBATCH --no-requeue
#SBATCH --signal=B:TERM@120
#SBATCH --kill-on-invalid-dep=yes
#SBATCH --export=ALL
#SBATCH --constraint=h200
#SBATCH --comment='it'"'"'s infx'
#
# Written by infx for 3 attempts, one a line of the file `tasks`.
set -euo pipefail

run_dir='/shared/in fx/runs/r1'
folder='/shared/in fx/runs/r1/slurm/b1'
node=${SLURMD_NODENAME:-$HOSTNAME}

stop() {
  echo "infx: $1" >&2
  exit "$2"
}

for name in $(compgen -e); do
  case $name in
    HTTP_PROXY | NCCL_*) unset -v "$name" ;;
  esac
done

[[ -r $folder/tasks ]] || stop "$node cannot read $folder/tasks: is the folder shared?" 66
attempt=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" "$folder/tasks")
[[ -n $attempt ]] || stop "$folder/tasks has no line for this task" 66
cd "$run_dir/$attempt" || stop "$node has no folder $run_dir/$attempt" 66
echo "infx: job ${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID on $node, see $PWD/infx.log"
exec >>infx.log 2>&1

# The job's own process from here on: the TERM that comes 120 s before the limit is for it.
python='/shared/in fx/bundles/0123abcd/python/bin/python'
[[ -x $python ]] || stop "$node has no interpreter $python" 69
exec "$python" -P -m infx.job job.json
