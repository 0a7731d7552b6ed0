"""Submitting batches: their files, one call for many, and what each answer means."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from infx.domain.errors import InfraError
from infx.launch.slurm.batch import Batch
from infx.launch.slurm.script import TASKS
from infx.launch.slurm.submit import Refusal, parse_submit, submit_refusal
from infx.launch.transport import Transport
from infx.store import writing

__all__ = ["SCRIPT", "Submitted", "batch_dir", "submit", "test_only", "write_batch"]

SCRIPT = "job.sh"
BATCHES = "batches"
ONE_CALL = 20
"""Batches in one call: a refusal of sbatch may take a second, and a call has 30."""

DOWN = 9
"""The submitting script's exit code when the controller is gone: later batches were not tried."""

NEWLINE = "\x1e"
"""Stands for a line break in the error output of sbatch, of which each batch has one line."""

NOT_TRIED = Refusal(kind="down", code="scheduler-down", sentence="the scheduler does not answer")

_SUBMIT = f"""
export LC_ALL=C
submit() {{
  cd "$2" || {{ printf '%s|66||no folder %s\\n' "$1" "$2"; return; }}
  out=$(sbatch --parsable {SCRIPT} 2>sbatch.err </dev/null); rc=$?
  id=$(printf '%s\\n' "$out" | grep -E '^[0-9]+(;|$)' | tail -n 1)
  printf '%s|%s|%s|%s\\n' "$1" "$rc" "$id" "$(tr '\\n' '\\036' <sbatch.err)"
  ! grep -q 'Unable to contact' sbatch.err || exit {DOWN}
}}
"""


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a batch: an id, a refusal, or neither where nobody knows.

    A refusal that is ``ambiguous`` or ``other`` is not sure either.
    """

    job_id: str = ""
    refusal: Refusal | None = None


def batch_dir(run_dir: str | Path, name: str) -> str:
    """Return the folder of a batch below a run's folder, here or there."""
    return f"{run_dir}/{BATCHES}/{name}"


def write_batch(batch: Batch, run_dir: Path, script: str) -> None:
    """Write the batch's script and its list of attempts. Raises InfraError ``disk-full`` or
    ``results-unwritable``."""
    folder = Path(batch_dir(run_dir, batch.name))
    lines = [f"{os.path.relpath(order.folder, run_dir)}\n" for order in batch.orders]
    with writing(run_dir):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / TASKS).write_text("".join(lines))
        (folder / SCRIPT).write_text(script)


def submit(transport: Transport, names: Sequence[str], there: str) -> Mapping[str, Submitted]:
    """Submit the batches of these names, whose files are below ``there``; return what became of
    each. When a call gets no whole answer, later ones are not made."""
    found = dict.fromkeys(names, Submitted(refusal=NOT_TRIED))
    for start in range(0, len(names), ONE_CALL):
        part = names[start : start + ONE_CALL]
        told, down = _call(transport, part, there)
        missing = [name for name in part if name not in told]
        found |= told
        if down:
            return found
        if missing:
            return found | dict.fromkeys(missing, Submitted())
    return found


def test_only(transport: Transport, script: str) -> Refusal | None:
    """Return why the cluster would refuse a script, or None; nothing is submitted.

    Raises InfraError as the transport does.
    """
    answer = transport.run(f"export LC_ALL=C\nsbatch --test-only <<'INFX'\n{script}INFX\n")
    return submit_refusal(answer.err, answer.code) if answer.code else None


def _call(
    transport: Transport, names: Sequence[str], there: str
) -> tuple[dict[str, Submitted], bool]:
    """Return what is known, and whether the rest was surely not tried: there is no controller."""
    lines = [f"submit {quote(name)} {quote(batch_dir(there, name))}" for name in names]
    try:
        answer = transport.run(_SUBMIT + "\n".join(lines) + "\n")
    except InfraError:
        return {}, False
    told = dict(_read(answer.out.split("\n")))
    return {name: told[name] for name in names if name in told}, answer.code == DOWN


def _read(lines: Iterable[str]) -> Iterable[tuple[str, Submitted]]:
    for line in lines:
        name, code, out, err = [*line.split("|", 3), "", "", ""][:4]
        if code == "0":
            yield name, Submitted(job_id=parse_submit(out) or "")
        elif code.isdecimal():
            yield name, Submitted(refusal=submit_refusal(err.replace(NEWLINE, "\n"), int(code)))
