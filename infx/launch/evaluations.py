"""Only the evaluations of a matrix: more questions, other tasks, no throughput."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from infx.config.evaluations import SOURCES, evaluation_content
from infx.config.matrix import Entry, EvaluationSpec, Matrix
from infx.config.suggestions import did_you_mean
from infx.domain.errors import UsageError
from infx.domain.plan import Candidate, Plan
from infx.domain.vocabulary import TASKS
from infx.plan.jobs import estimate_cost, make_jobs
from infx.plan.make import make_plan

__all__ = ["evaluation_plan", "with_evaluations"]


def with_evaluations(
    matrix: Matrix,
    *,
    task: str | None = None,
    source: str | None = None,
    limit: int | None = None,
    shots: int | None = None,
) -> Matrix:
    """Return the matrix with its evaluations changed: ``limit`` None asks every question.

    ``task`` replaces an entry's tasks by one, whose bars it keeps only when the entry has that
    task. Raises UsageError ``bad-option``.
    """
    task = _task(task) if task else None
    entries = []
    for entry in matrix.entries:
        specs = _specs(entry, task)
        changed = tuple(_changed(spec, source, limit, shots) for spec in specs)
        entries.append(replace(entry, evaluations=changed))
    return replace(matrix, entries=tuple(entries))


def evaluation_plan(matrix: Matrix) -> Plan:
    """Return the plan of ``matrix`` with every throughput candidate deferred."""
    plan = make_plan(matrix)
    points = tuple(point for point in plan.points if point.mode == "evaluation")
    left = {point.point_id for point in points}
    limits = {entry.name: entry.cluster.limits.job for entry in matrix.entries}
    jobs = make_jobs(points, limits)
    counts = Counter(plan.counts)
    counts["deferred"] += counts["run"] - len(points)
    counts["run"] = len(points)
    return replace(
        plan,
        points=points,
        jobs=jobs,
        counts=dict(counts),
        ledger=tuple(_deferred(row) if _left_out(row, left) else row for row in plan.ledger),
        cost=estimate_cost(jobs),
    )


def _task(task: str) -> str:
    """Return a task's name, or the whole path of its file: a job runs in another folder."""
    if task in TASKS:
        return task
    if Path(task).is_file():
        return str(Path(task).resolve())
    hint = did_you_mean(task, TASKS)
    raise UsageError("bad-option", f"--task {task}: no such task, and no such file", hint=hint)


def _specs(entry: Entry, task: str | None) -> tuple[EvaluationSpec, ...]:
    if task is None:
        return entry.evaluations
    own = tuple(spec for spec in entry.evaluations if spec.task == task)
    source = SOURCES.get(task, task)
    return own[:1] or (EvaluationSpec(task=task, limit=None, source=source, where=entry.where),)


def _changed(
    spec: EvaluationSpec, source: str | None, limit: int | None, shots: int | None
) -> EvaluationSpec:
    source = _source(spec.task, source) if source else spec.source
    try:
        content = evaluation_content(spec.task, source)
    except OSError as error:
        message = f"{spec.task}: {error.filename} cannot be read: {error.strerror}"
        raise UsageError("bad-option", message, hint="see --source and --task") from error
    shots = spec.shots if shots is None else shots
    return replace(spec, source=source, content=content, limit=limit, shots=shots)


def _source(task: str, source: str) -> str:
    """Return where a task's questions come from: its usual place, or the whole path of a folder."""
    if source == SOURCES.get(task):
        return source
    if SOURCES.get(task) != "hub":
        hint = "only gsm8k has one: --task gsm8k"
        raise UsageError("bad-option", f"--source {source}: {task} has no other source", hint=hint)
    if not Path(source).is_dir():
        hint = "name a folder that holds train.jsonl and test.jsonl, or hub"
        raise UsageError("bad-option", f"--source {source}: no such folder", hint=hint)
    return str(Path(source).resolve())


def _left_out(row: Candidate, left: set[str]) -> bool:
    return row.disposition == "run" and row.point_id not in left


def _deferred(row: Candidate) -> Candidate:
    return replace(row, disposition="deferred", sentence="infx eval measures no throughput")
