"""What is worth saying of recorded sessions before they are replayed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from infx.config.matrix import AgenticSpec, Entry, Matrix
from infx.domain.findings import Finding
from infx.domain.plan import Job
from infx.domain.point import Accuracy, Agentic

__all__ = ["lint_times", "lint_workloads"]

_NUMBERS = ("duration_s", "warmup_requests_per_lane", "cache_warmup_s", "idle_gap_cap_s")


def lint_workloads(entry: Entry) -> Iterator[Finding]:
    """Yield a remark for sessions that no submission can hold, and for a warm-up that aiperf
    0.13.0 does not give by itself."""
    for scenario in entry.scenarios:
        spec = scenario.workload
        if isinstance(spec, AgenticSpec):
            yield from _submission(spec)
            yield from _warm_up(spec)


def lint_times(jobs: Iterable[Job], matrix: Matrix) -> Iterator[Finding]:
    """Yield a warning for each entry with a job whose timed points alone fill its time limit."""
    places = {entry.name: entry.where for entry in matrix.entries}
    worst = {job.points[0].entry: job for job in sorted(jobs, key=_timed_s)}
    for name, job in worst.items():
        if (timed_s := _timed_s(job)) >= job.time_limit_s:
            sentence = (
                f"{len(job.points)} points of one engine start are timed and take {timed_s} s; a "
                f"job of {job.cluster} may take {job.time_limit_s} s"
            )
            hint = "raise `time-limits: {job: …}` of the cluster, or shorten duration-s"
            yield Finding("over-time-limit", "warning", sentence, places[name], hint)


def _timed_s(job: Job) -> int:
    loads = (point.workload for point in job.points)
    return sum(load.duration_s or 0 for load in loads if not isinstance(load, Accuracy))


def _submission(spec: AgenticSpec) -> Iterator[Finding]:
    if faults := _literal(spec).submission_faults:
        sentence = f"a run of one's own, none for a submission: {', '.join(faults)}"
        yield Finding("not-for-submission", "info", sentence, spec.where)


def _warm_up(spec: AgenticSpec) -> Iterator[Finding]:
    load = _literal(spec)
    if load.warmup_requests_per_lane == 1 or spec.cache_warmup_s:
        return
    sentence = (
        f"{load.warmup_requests_per_lane} warm-up requests a lane are asked; aiperf 0.13.0 sends "
        "one and goes on by time alone"
    )
    hint = "set cache-warmup-s, or warmup-requests-per-lane: 1"
    yield Finding("warmup-one-a-lane", "info", sentence, spec.where, hint)


def _literal(spec: AgenticSpec) -> Agentic:
    """Return the workload with its literal numbers; an expression stands for the default."""
    said = {n: value for n in _NUMBERS if isinstance(value := getattr(spec, n), int)}
    return Agentic(trace=spec.trace, **said)  # type: ignore[arg-type]
