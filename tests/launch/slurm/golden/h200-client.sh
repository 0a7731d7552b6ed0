#!/bin/bash
#SBATCH --job-name=infx-r1-00000000-a1
#SBATCH --partition=main
#SBATCH --account=sa-shared
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:8
#SBATCH --exclusive
#SBATCH --time=65
#SBATCH --output=/results/runs/r1/slurm/b1/%j.log
#SBATCH --open-mode=append
#SBATCH --no-requeue
#SBATCH --signal=B:TERM@120
#SBATCH --kill-on-invalid-dep=yes
#SBATCH --export=ALL
#
# Written by infx for 1 attempt, one a line of the file `tasks`.
set -euo pipefail

run_dir=/results/runs/r1
folder=/results/runs/r1/slurm/b1
node=${SLURMD_NODENAME:-$HOSTNAME}

stop() {
  echo "infx: $1" >&2
  exit "$2"
}

[[ -r $folder/tasks ]] || stop "$node cannot read $folder/tasks: is the folder shared?" 66
attempt=$(sed -n "1p" "$folder/tasks")
[[ -n $attempt ]] || stop "$folder/tasks has no line for this task" 66
cd "$run_dir/$attempt" || stop "$node has no folder $run_dir/$attempt" 66
echo "infx: job $SLURM_JOB_ID on $node, see $PWD/infx.log"
exec >>infx.log 2>&1

# A TERM makes srun kill its step at once, so it goes to the step by scancel instead.
trap 'scancel --signal=TERM "$SLURM_JOB_ID.0" || true' TERM
srun --nodes=1 --ntasks=1 --kill-on-bad-exit=1 \
  --container-image=own/infx:1 \
  --container-mounts=/results/runs/r1:/results/runs/r1,/models:/models:ro \
  --container-workdir="$PWD" --no-container-mount-home --no-container-entrypoint \
  python3 -P -m infx.job job.json &
step=$!
code=0
wait "$step" || code=$?
while kill -0 "$step" 2>/dev/null; do  # the TERM ended the wait, not the step
  code=0
  wait "$step" || code=$?
done
exit "$code"
