#!/bin/bash
#SBATCH --job-name=infx-r1-0123abcd-array
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
# Written by infx for 2 attempts, one a line of the file `tasks`.
set -euo pipefail

run_dir=/results/runs/r1
folder=/results/runs/r1/slurm/b1
node=${SLURMD_NODENAME:-$HOSTNAME}

stop() {
  echo "infx: $1" >&2
  exit "$2"
}

[[ -r $folder/tasks ]] || stop "$node cannot read $folder/tasks: is the folder shared?" 66
# The attempts take turns. Each is a job of its own with its own record, and one that fails does not
# keep the next from running. The TERM that comes 120 s before the limit ends the one that
# runs, and the turns.
part= ended=
measure() {
  exec srun --nodes=1 --ntasks=1 --kill-on-bad-exit=1 --job-name=infx-turn \
    --container-image=own/infx:1 \
    --container-mounts=/results/runs/r1:/results/runs/r1,/models:/models:ro \
    --container-workdir="$PWD" --no-container-mount-home --no-container-entrypoint \
    python3 -P -m infx.job job.json
}
tell() {
  # A TERM makes srun kill its step at once. The steps of servers are numbered, too: by its name.
  squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format="%i %j" |
    while read -r step name; do
      [[ $name != infx-turn ]] || scancel --signal=TERM "$step"
    done || true
}
trap 'ended=143; [[ -z $part ]] || tell' TERM
while IFS= read -r attempt <&3; do
  cd "$run_dir/$attempt" || stop "$node has no folder $run_dir/$attempt" 66
  echo "infx: job $SLURM_JOB_ID on $node, see $PWD/infx.log"
  measure >>infx.log 2>&1 3<&- &
  part=$!
  [[ -z $ended ]] || tell
  while kill -0 "$part" 2>/dev/null; do  # a TERM ends the wait, not the job
    wait "$part" || true
  done
  part=
  [[ -z $ended ]] || break
done 3<"$folder/tasks"
exit "${ended:-0}"
