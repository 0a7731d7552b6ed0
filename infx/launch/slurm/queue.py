"""The text of squeue and sacct as rows, and which row is the truth of an attempt.

Run both with ``TZ=UTC`` (and LC_ALL=C): Slurm's times carry no zone. A line that cannot be a row
is left out; an attempt without a row is never an ended one. The formats are text since 22.05 has
no usable JSON and the JSON of later versions differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from infx.launch.slurm.states import canonical, phase
from infx.launch.slurm.times import moment

__all__ = [
    "SACCT_FIELDS",
    "SQUEUE_FORMAT",
    "Row",
    "choose",
    "expand",
    "parse_jobs",
    "parse_sacct",
    "parse_squeue",
]

# squeue --me -h -r -t all -o FORMAT. Names and reasons are anyone's text and stand last.
SQUEUE_FORMAT = "%i|%F|%K|%T|%V|%S|%e|%N|%j|%r"
# sacct -X -P -n -D -o FIELDS. All of them exist from 22.05 on.
SACCT_FIELDS = "JobID,State,ExitCode,DerivedExitCode,Submit,Start,End,NodeList,JobName,Reason"

# Slurm's own largest array index: a range beyond it is not one.
_MAX_TASK = 4_000_000
_ID = re.compile(r"(?P<base>\d+)(?:_(?:(?P<task>\d+)|\[(?P<range>[^\]]*)\])|\+(?P<part>\d+))?")
_NOBODY = frozenset({"", "(null)", "None assigned", "N/A"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One job, or one task of an array, as one command told it; times in epoch seconds (TZ=UTC).

    ``job_id`` is the id of the whole array. ``state`` is a full name (``states.canonical``),
    ``cancelled_by`` the user id that sacct tells. ``reason`` is Slurm's word; sacct's is what the
    job last waited for, even when it has ended. ``derived`` is the worst exit code of a step.
    ``nodes`` is a host list (``node[1-4]``), "" before it had any. ``restarts`` counts
    requeues, None where the source does not tell.
    """

    name: str
    job_id: str
    task: int | None
    state: str
    source: Literal["squeue", "sacct", "scontrol"]
    reason: str = ""
    exit_code: tuple[int, int] | None = None
    derived: tuple[int, int] | None = None
    nodes: str = ""
    submit_s: float | None = None
    start_s: float | None = None
    end_s: float | None = None
    restarts: int | None = None
    cancelled_by: str = ""

    @property
    def shown_id(self) -> str:
        """The id as a user types it: ``12``, or ``12_3`` for a task."""
        return self.job_id if self.task is None else f"{self.job_id}_{self.task}"


def parse_squeue(text: str) -> list[Row]:
    """Return the rows of ``squeue -o SQUEUE_FORMAT``; of a heterogeneous job its leader's."""
    return [row for line in text.splitlines() for row in _squeue_rows(line)]


def parse_sacct(text: str) -> list[Row]:
    """Return the rows of ``sacct -P -o SACCT_FIELDS`` with -D: all runs of a requeued job.

    ``12_[1-3,7%2]`` becomes a row for each task, a heterogeneous job its leader's row.
    """
    return [row for line in text.splitlines() for row in _sacct_rows(line)]


def parse_jobs(text: str) -> list[Row]:
    """Return the rows of ``scontrol show job -o``: exit codes where there is no accounting."""
    return [row for line in text.splitlines() for row in _scontrol_rows(line)]


def choose(rows: Iterable[Row]) -> Mapping[tuple[str, int | None], Row]:
    """Return the row that counts, by (name, task).

    The latest submission wins: a requeue moves the submit time, and a job of another time that
    got the same id or name is older. But one that is in the queue still counts before one that has
    ended: a lost drive submitted the attempt, and the other job found it taken. Of the same
    submission squeue (or scontrol) counts before sacct, which lags, and takes from it the exit
    codes that only it tells when both say that the job is over.
    """
    found: dict[tuple[str, int | None], Row] = {}
    for row in rows:
        key = (row.name, row.task)
        found[key] = _better(found[key], row) if key in found else row
    return found


def expand(tasks: str) -> list[int]:
    """Return the indices of ``1-3,7%2``; ``0-8:2`` counts in steps. Raises ValueError.

    Slurm cuts a long list with ``...``: what stands before it is returned.
    """
    indices: list[int] = []
    for part in tasks.partition("%")[0].split(","):
        if part.strip().startswith("..."):
            break
        indices.extend(_span(part))
    return indices


def _span(part: str) -> range:
    match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part.strip())
    if match is None:
        raise ValueError(f"{part!r} is no range of array tasks: expected 3, 1-4 or 0-8:2")
    first = int(match[1])
    last = int(match[2] or first)
    if not first <= last <= _MAX_TASK or match[3] == "0":
        raise ValueError(f"{part!r} is no range of array tasks up to {_MAX_TASK}")
    return range(first, last + 1, int(match[3] or 1))


def _squeue_rows(line: str) -> list[Row]:
    fields = [field.strip() for field in line.split("|", 9)]
    if len(fields) != 10:
        return []
    job, _array, _task, state, submit, start, end, nodes, name, reason = fields
    row = _row(name, state, "squeue", (submit, start, end), nodes)
    return _spread(job, replace(row, reason=reason)) if row else []


def _sacct_rows(line: str) -> list[Row]:
    fields = [field.strip() for field in line.split("|", 9)]
    if len(fields) != 10:
        return []
    job, state, code, derived, submit, start, end, nodes, name, reason = fields
    row = _row(name, state, "sacct", (submit, start, end), nodes)
    if row is None:
        return []
    told = replace(row, reason=reason, exit_code=_code(code), derived=_code(derived))
    return _spread(job, told)


def _scontrol_rows(line: str) -> list[Row]:
    found = dict(re.findall(r"(?:^|\s)([\w:/]+)=(\S*)", line))
    times = (found.get("SubmitTime", ""), found.get("StartTime", ""), found.get("EndTime", ""))
    row = _row(
        found.get("JobName", ""),
        found.get("JobState", ""),
        "scontrol",
        times,
        found.get("NodeList", ""),
    )
    if row is None or found.get("HetJobOffset", "0") != "0":
        return []
    told = replace(
        row,
        reason=found.get("Reason", ""),
        exit_code=_code(found.get("ExitCode", "")),
        derived=_code(found.get("DerivedExitCode", "")),
        restarts=int(found["Restarts"]) if found.get("Restarts", "").isdigit() else None,
    )
    return _spread(_scontrol_id(found), told)


def _scontrol_id(found: Mapping[str, str]) -> str:
    if "ArrayJobId" not in found:
        return found.get("JobId", "")
    task = found.get("ArrayTaskId", "")
    return f"{found['ArrayJobId']}_{task if task.isdigit() else f'[{task}]'}"


def _row(
    name: str,
    state: str,
    source: Literal["squeue", "sacct", "scontrol"],
    times: tuple[str, str, str],
    nodes: str,
) -> Row | None:
    """None when this is no row: a foreign name with a separator in it shifts the fields."""
    submit, start, end = (moment(text) for text in times)
    full = canonical(state)
    if not name or not re.fullmatch(r"[A-Z_]+", full) or submit is None:
        return None
    return Row(
        name=name,
        job_id="",
        task=None,
        state=full,
        source=source,
        nodes="" if nodes in _NOBODY else nodes,
        submit_s=submit,
        start_s=start,
        end_s=end,
        cancelled_by=state.partition(" by ")[2].strip(),
    )


def _spread(job: str, row: Row) -> list[Row]:
    match = _ID.fullmatch(job)
    if match is None or match["part"] not in (None, "0"):
        return []
    if match["range"] is not None:
        try:
            tasks = expand(match["range"])
        except ValueError:
            return []
        return [replace(row, job_id=match["base"], task=task) for task in tasks]
    task_id = int(match["task"]) if match["task"] else None
    return [replace(row, job_id=match["base"], task=task_id)]


def _code(text: str) -> tuple[int, int] | None:
    match = re.fullmatch(r"(\d+):(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def _better(one: Row, other: Row) -> Row:
    first, second = sorted((one, other), key=_rank)
    if (first.job_id, first.submit_s) != (second.job_id, second.submit_s):
        return second
    return _with_codes(second, first)


def _rank(row: Row) -> tuple[bool, float, bool, float]:
    direct = row.source != "sacct"
    queued = direct and phase(row.state) in ("queued", "running")
    return (queued, row.submit_s or 0.0, direct, row.start_s or 0.0)


def _with_codes(row: Row, other: Row) -> Row:
    if phase(row.state) != "ended" or row.state != other.state:
        return row
    return replace(
        row,
        exit_code=row.exit_code or other.exit_code,
        derived=row.derived or other.derived,
        restarts=other.restarts if row.restarts is None else row.restarts,
        cancelled_by=row.cancelled_by or other.cancelled_by,
    )
