#!/bin/bash
#SBATCH --job-name=infx-r1-0123abcd-array
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --time=65
#SBATCH --output=/results/runs/r1/slurm/b1/%j.log
#SBATCH --open-mode=append
#SBATCH --no-requeue
#SBATCH --signal=B:TERM@120
#SBATCH --kill-on-invalid-dep=yes
#SBATCH --export=ALL
#
# Written by infx for 4 attempts, one a line of the file `tasks`.
set -euo pipefail

run_dir=/results/runs/r1
folder=/results/runs/r1/slurm/b1
node=${SLURMD_NODENAME:-$HOSTNAME}

stop() {
  echo "infx: $1" >&2
  exit "$2"
}

[[ -r $folder/tasks ]] || stop "$node cannot read $folder/tasks: is the folder shared?" 66
python=/venv/bin/python
[[ -x $python ]] || stop "$node has no interpreter $python" 69

# The attempts take turns. Each is a job of its own with its own record, and one that fails does not
# keep the next from running. The TERM that comes 120 s before the limit ends the one that
# runs, and the turns.
part= ended=
measure() {
  exec "$python" -P -m infx.job job.json
}
tell() {
  kill -TERM "$part" 2>/dev/null || true
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
