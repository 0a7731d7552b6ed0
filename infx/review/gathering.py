"""What infx plans, measures and reads, as a bundle tells it: pure mappings, nothing is opened."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from infx.changelog.entry import Entry as ChangelogEntry
from infx.ci.diff import scenario_type
from infx.ci.events import Comment as GivenComment
from infx.ci.selection import computation_id
from infx.config.matrix import AgenticSpec, Matrix
from infx.config.matrix import Entry as MatrixEntry
from infx.domain.plan import Job, Plan, marked
from infx.domain.point import Agentic, Point
from infx.domain.record import PointRecord
from infx.domain.status import Status
from infx.review.bundle import (
    Addition,
    CheckRun,
    Comment,
    Conclusion,
    Entry,
    PlannedPoint,
    Run,
)

__all__ = [
    "Swept",
    "added",
    "comments_of",
    "engine_versions",
    "entries_of",
    "planned",
    "revisions",
    "run_of",
    "selected",
    "shown",
    "standing",
]

_UNDER_WAY = ("pending", "running", "measured")


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A run of the store: what was planned, how each point of each job stands, its records.

    ``reused``: the pull request did not ask for it, its points stand for planned ones.
    """

    run_id: str
    plan: Plan
    statuses: Mapping[tuple[str, str], Status]
    records: tuple[PointRecord, ...]
    reused: bool = False

    @property
    def under_way(self) -> tuple[str, ...]:
        """Labels of points that have no end yet, in the plan's order."""
        return tuple(
            point.label
            for job in self.plan.jobs
            for point in job.points
            if _status(self, job, point).state in _UNDER_WAY
        )


def _status(run: Swept, job: Job, point: Point) -> Status:
    return run.statuses.get((job.job_id, point.point_id), Status("pending"))


def added(entries: Iterable[ChangelogEntry]) -> tuple[Addition, ...]:
    """Return added changelog entries as a bundle holds them."""
    return tuple(
        Addition(
            config_keys=tuple(key.text for key in entry.keys),
            description=entry.description,
            pr_link=entry.pr_link,
            append_only=entry.append_only,
            evals_only=entry.evals_only,
            all_evals=entry.all_evals,
            scenario_types=entry.scenario_types,
            line=entry.where.line,
        )
        for entry in entries
    )


def comments_of(given: Iterable[GivenComment]) -> tuple[Comment, ...]:
    """Return comments as a bundle holds them, the oldest first."""
    return tuple(
        Comment(
            id=str(one.id),
            author=one.user.login if one.user else "",
            association=one.author_association,
            created_at=one.created_at,
            body=one.body,
        )
        for one in sorted(given, key=lambda one: (one.created_at, one.id))
    )


def entries_of(
    matrix: Matrix, plan: Plan, folder: str = "", versions: Mapping[str, str] | None = None
) -> tuple[Entry, ...]:
    """Return the entries of matrices, with the images that their ``plan`` runs. ``folder`` is where
    the project is in its repository (``""`` or ``below/``); ``versions`` maps entries to what their
    engines say that they are."""
    images = {point.entry: point.arm.image for point in plan.expected}
    return tuple(
        _entry(one, images.get(one.name, one.image), folder, (versions or {}).get(one.name, ""))
        for one in matrix.entries
    )


def _entry(one: MatrixEntry, image: str, folder: str, version: str) -> Entry:
    workloads = (scenario.workload for scenario in one.scenarios)
    kinds = ("agentic" if isinstance(w, AgenticSpec) else "fixed-lengths" for w in workloads)
    files = (one.where.file, one.recipe.where.file)
    return Entry(
        key=one.name,
        framework=one.framework,
        model_prefix=one.model_prefix,
        precision=one.precision,
        hardware=one.cluster.hardware,
        image=image,
        image_digest=one.image_digest,
        version=_packaged(image) or version,
        scenarios=tuple(dict.fromkeys(kinds)),
        files=tuple(folder + file for file in files if file and not file.startswith("/")),
    )


def _packaged(image: str) -> str:
    """Return the version of ``pypi:NAME==VERSION``, "" of any other image."""
    return image.partition("==")[2] if image.startswith("pypi:") else ""


def engine_versions(records: Iterable[PointRecord]) -> dict[str, str]:
    """Return the version that the servers of each entry told; those that do not agree tell none."""
    told: dict[str, set[str]] = {}
    for record in records:
        if version := record.provenance.server.get("version"):
            told.setdefault(record.point.entry, set()).add(str(version))
    return {entry: found.pop() for entry, found in told.items() if len(found) == 1}


def selected(plan: Plan, additions: Sequence[ChangelogEntry]) -> tuple[Point, ...]:
    """Return the points of a plan's entries that changelog entries name, evaluations too."""
    return tuple(p for p in plan.points if any(one.selects(p.entry) for one in additions))


def shown(before: Plan, after: Plan, additions: Sequence[ChangelogEntry]) -> frozenset[str]:
    """Return the entries whose points a bundle tells: those that changelog entries name, and those
    with a point that only the plan ``after`` the change has."""
    stood = {point.point_id for point in before.points}
    new = [point for point in after.points if point.point_id not in stood]
    named = (*selected(before, additions), *selected(after, additions))
    return frozenset(point.entry for point in (*new, *named))


def planned(points: Iterable[Point]) -> tuple[PlannedPoint, ...]:
    """Return the throughput points as a bundle holds them."""
    return tuple(
        PlannedPoint(
            entry=point.entry,
            name=point.name,
            point_id=point.point_id,
            series_id=point.series_id,
            image=point.arm.image,
            scenario=scenario_type(point),
        )
        for point in points
        if point.mode == "throughput"
    )


def standing(
    runs: Sequence[Swept], entries: Collection[str], wanted: Sequence[Point]
) -> dict[str, tuple[PointRecord, ...]]:
    """Return the records to review, by run: of the first of ``runs`` all that is of ``entries``, of
    each later one what stands for points that no earlier one has a record of.

    ``wanted`` are the points of the head: a reused run, and any but the first, gives records of
    these and of evaluations of their servers alone.
    """
    found: dict[str, tuple[PointRecord, ...]] = {}
    taken: set[str] = set()
    ids = {point.point_id for point in wanted}
    computed = {computation_id(p.arm) for p in wanted if p.mode == "throughput"}
    for number, run in enumerate(runs):
        whole = not number and not run.reused
        kept = tuple(
            record
            for record in run.records
            if record.point.entry in entries
            and record.point.point_id not in taken
            and (whole or _stands(record.point, ids, computed))
            and (record.status.state == "ok" or not run.reused)
        )
        taken |= {record.point.point_id for record in kept}
        found[run.run_id] = kept
    return found


def _stands(point: Point, ids: Collection[str], computed: Collection[str]) -> bool:
    told = point.mode == "evaluation" and computation_id(point.arm) in computed
    return point.point_id in ids or told


def revisions(run: Swept) -> tuple[str, ...]:
    """Return the commits that a run was measured at: the one that its plan was made for, else those
    that its jobs found, ``+`` behind one with changes that it does not hold."""
    if run.plan.origin:
        return (run.plan.origin.head_sha,)
    made = (record.provenance for record in run.records)
    found = (f"{one.git_revision}{'+' if one.git_dirty else ''}" for one in made)
    return tuple(dict.fromkeys(revision for revision in found if revision))


def run_of(run: Swept, repository: str, pull_request: int, used: Sequence[PointRecord] = ()) -> Run:
    """Return a run as a bundle holds it; one that no change asked for is of the pull request that
    is given. Of a ``reused`` run only the jobs of what is ``used`` count."""
    origin = run.plan.origin
    heads = revisions(run)
    checks = tuple(_checks(run, used))
    return Run(
        run_id=run.run_id,
        repository=origin.repository if origin else repository,
        pull_request=origin.pull_request if origin else pull_request,
        head_sha=heads[0] if len(heads) == 1 else "",
        attempt=max((record.attempt.number for record in run.records), default=1),
        conclusion=_worst(check.conclusion for check in checks),
        checks=checks,
        submission_valid=origin.submission_valid if origin else _is_published(run.plan),
        reused=run.reused,
    )


def _is_published(plan: Plan) -> bool:
    loads = (point.workload for point in plan.points)
    return all(load.submission_valid for load in loads if isinstance(load, Agentic))


def _checks(run: Swept, used: Sequence[PointRecord]) -> Iterator[CheckRun]:
    """Yield one for each job and mode: a job that evaluates too is told as two."""
    ids = {(record.attempt.job_id, record.point.point_id) for record in used}
    for job in run.plan.jobs:
        points = [p for p in job.points if not run.reused or (job.job_id, p.point_id) in ids]
        for mode in dict.fromkeys(point.mode for point in points):
            ended = (_conclusion(_status(run, job, p)) for p in points if p.mode == mode)
            name = marked(job.name, job.repeat)
            yield CheckRun(name=name, kind=mode, conclusion=_worst(ended))


_CONCLUSIONS: Mapping[str, Conclusion] = {
    **dict.fromkeys(_UNDER_WAY, "pending"),
    **dict.fromkeys(("failed", "invalid"), "failure"),
    "cancelled": "cancelled",
    "skipped": "skipped",
    "ok": "success",
}


def _conclusion(status: Status) -> Conclusion:
    return _CONCLUSIONS[status.state]


def _worst(ends: Iterable[Conclusion]) -> Conclusion:
    """Return the first of these words that is among them; ``skipped`` where there is none."""
    found = set(ends)
    order: tuple[Conclusion, ...] = ("pending", "failure", "cancelled", "skipped", "success")
    return next((one for one in order if one in found), "skipped")
