"""Checks of what was measured: the sweep (1), evaluations (2), the frontier (14)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from infx.analysis.accuracy import FilterVerdict, judge_score
from infx.ci.selection import computation_id
from infx.domain.record import PointRecord, Score
from infx.report.figures import count as plural
from infx.review.bundle import Bundle, CheckRun, Commit, Entry, Run
from infx.review.curves import Curve, curves
from infx.review.facts import (
    affected,
    affected_runs,
    evaluations,
    grouped,
    matches,
    names,
    same_commit,
    throughput,
    wanted,
    wants_throughput,
)
from infx.review.result import Evidence, Said
from infx.review.rules import Rules

__all__ = [
    "evaluations_pass",
    "pareto_coverage",
    "passed_jobs",
    "passing_sweep",
    "score_ranges",
]

_NOTHING = Said("WARN", "no changelog entry selects a config: nothing was swept")


def passing_sweep(bundle: Bundle, rules: Rules) -> Said:
    """Every job passed on a commit of the pull request, after which only merges of the base or
    files that measure nothing came; every planned point is among them."""
    if not affected(bundle):
        return _NOTHING
    runs = affected_runs(bundle)
    evidence = tuple(_run_evidence(run) for run in runs)
    faults = [fault for run in runs for fault in _run_faults(run, bundle, rules)]
    faults += _lacking_kinds(runs, bundle)
    faults += [*_unmeasured(bundle)] if wants_throughput(bundle) else []
    faults += _unfit(bundle)
    if not runs:
        return Said("FAIL", "no run measured the affected entries", evidence)
    if faults:
        return Said("FAIL", "; ".join(faults), evidence)
    sentence = "; ".join(_passed(run) for run in runs)
    if doubts := [*_unasked(bundle), *grouped(_moved(bundle))]:
        return Said("WARN", f"{sentence}; {'; '.join(doubts)}", evidence)
    return Said("PASS", f"{sentence}; after it nothing that is measured changed", evidence)


def _passed(run: Run) -> str:
    of = f"of #{run.pull_request}, reused" if run.reused else "of the pull request"
    return f"run {run.run_id} passed on commit {run.head_sha[:8]} {of}: {passed_jobs(run)} jobs"


def passed_jobs(run: Run) -> str:
    """Return ``19/19 throughput and 19/19 evaluation``: the jobs that passed, of all of a kind."""
    kinds = [k for k in ("throughput", "evaluation") if any(one.kind == k for one in run.checks)]
    return " and ".join(f"{_share(run.checks, kind)} {kind}" for kind in kinds)


def _share(checks: Sequence[CheckRun], kind: str) -> str:
    of_kind = [check for check in checks if check.kind == kind]
    return f"{sum(c.conclusion == 'success' for c in of_kind)}/{len(of_kind)}"


def _run_evidence(run: Run) -> Evidence:
    ends = Counter(f"{check.kind} {check.conclusion}" for check in run.checks)
    said = ", ".join(f"{count} {what}" for what, count in sorted(ends.items()))
    where = f"runs.json:{run.run_id}"
    return Evidence(
        where, f"commit {run.head_sha}, attempt {run.attempt}, {run.conclusion}: {said}"
    )


def _run_faults(run: Run, bundle: Bundle, rules: Rules) -> Iterator[str]:
    bad = [f"{one.name} {one.conclusion}" for one in run.checks if one.conclusion != "success"]
    if bad:
        yield f"run {run.run_id}: {', '.join(bad)}"
    elif run.conclusion != "success":
        yield f"run {run.run_id} ended in {run.conclusion}"
    if not run.submission_valid:
        yield f"run {run.run_id} was shortened and is not valid for submission"
    if not run.reused:  # which is of the planned points, whatever came after it
        yield from _commit_faults(run, bundle, rules)


def _lacking_kinds(runs: Sequence[Run], bundle: Bundle) -> Iterator[str]:
    kinds = {one.kind for run in runs for one in run.checks}
    asked = {"evaluation"} | ({"throughput"} if wants_throughput(bundle) else set())
    which = ", ".join(run.run_id for run in runs)
    yield from (f"run {which} has no {kind} job" for kind in sorted(asked - kinds) if runs)


def _commit_faults(run: Run, bundle: Bundle, rules: Rules) -> Iterator[str]:
    commits = bundle.pull_request.commits
    at = next((n for n, one in enumerate(commits) if same_commit(one.sha, run.head_sha)), None)
    if at is None:
        yield f"run {run.run_id} is of {run.head_sha[:8]}, no commit of this pull request"
        return
    for commit in commits[at + 1 :]:
        touched = [] if commit.merge else _benchmarked(commit, rules)
        if touched:
            what = ", ".join(touched)
            yield f"commit {commit.sha[:8]} changed {what} after run {run.run_id}"


def _benchmarked(commit: Commit, rules: Rules) -> list[str]:
    """Return what a commit of one's own changes of the paths that decide a measurement. What merges
    bring is seen where it changes the identity of a point: records are of planned points."""
    return [file for file in commit.files if matches(rules.evidence.benchmark_paths, file)]


def _unfit(bundle: Bundle) -> Iterator[str]:
    """Yield what an agentic run was asked that no submission may be, with the points."""
    for_agentic = (
        (record, fault)
        for record in throughput(bundle)
        for fault in getattr(record.point.workload, "submission_faults", ())
    )
    yield from grouped(for_agentic)


def _unmeasured(bundle: Bundle) -> Iterator[str]:
    planned = {point.point_id: point.name for point in wanted(bundle)}
    keys = {entry.key for entry in affected(bundle)}
    if bare := sorted(keys - {p.entry for p in bundle.points.head}):
        yield f"no point of {', '.join(bare)} is planned at the head"
    ended = [r for r in throughput(bundle) if r.status.state in ("ok", "invalid")]
    have = {record.point.point_id for record in ended}
    if missing := [name for identity, name in planned.items() if identity not in have]:
        said = ", ".join(missing)
        yield f"{len(missing)} of {len(planned)} planned points have no record: {said}"
    known = {point.point_id for point in bundle.points.head}
    if extra := [r for r in throughput(bundle) if r.point.point_id not in known]:
        yield f"the records of {names(extra)} are of no point that is planned at the head"


def _unasked(bundle: Bundle) -> Iterator[str]:
    """Yield the entries with points that the change makes and that no changelog entry has
    measured."""
    stood = {point.point_id for point in bundle.points.base}
    asked = {point.point_id for point in wanted(bundle)}
    new = [p for p in bundle.points.head if p.point_id not in stood | asked]
    for key, number in Counter(point.entry for point in new).items():
        made = f"new or changed in {key}: {plural(number, 'point')}"
        yield f"{made} whose throughput no changelog entry asks for"


def _moved(bundle: Bundle) -> Iterator[tuple[PointRecord, str]]:
    """Yield the records that were made at another commit than their run's."""
    heads = {run.run_id: run.head_sha for run in bundle.runs if not run.reused}
    for record in (*throughput(bundle), *evaluations(bundle)):
        seen, head = record.provenance, heads.get(record.attempt.run_id, "")
        if head and seen.git_revision and not same_commit(seen.git_revision, head):
            yield record, f"measured at {seen.git_revision[:8]}, the run is of {head[:8]}"
        elif head and seen.git_dirty:
            yield record, f"measured with changes that {head[:8]} does not hold"


def evaluations_pass(bundle: Bundle, rules: Rules) -> Said:
    """Every server that was measured was scored above its bars, with the image that is pinned."""
    if not affected(bundle):
        return _NOTHING
    scored, measured = evaluations(bundle), throughput(bundle)
    judged = [(record, judged) for record in scored for judged in _judged(record, rules)]
    faults = [*_score_faults(scored, judged, rules)]
    faults += [*grouped(_wrong_images(bundle, (*scored, *measured)))]
    faults += [*_unscored(scored, measured), *_never_scored(bundle, scored)]
    evidence = tuple(_score_evidence(record, found) for record, found in judged)
    if faults:
        return Said("FAIL", "; ".join(faults), evidence)
    if doubts := [*_doubts(judged), *_elsewhere(scored, measured)]:
        return Said("WARN", "; ".join(doubts), evidence)
    image = ", ".join(sorted({entry.image for entry in affected(bundle)}))
    return Said("PASS", f"{'; '.join(_ranges(judged))}; all with {image}", evidence)


def _judged(record: PointRecord, rules: Rules) -> list[FilterVerdict]:
    score = record.score
    if record.status.state != "ok" or score is None or not score.questions:
        return []
    return judge_score(_barred(score, record.point.arm.model.prefix, rules))


def _barred(score: Score, prefix: str, rules: Rules) -> Score:
    """Return the score with the reviewer's bars, which no config can lower."""
    bars = rules.bars.of(prefix, score.task)
    filters = {name: replace(one, bar=bars.get(name)) for name, one in score.filters.items()}
    return replace(score, filters=filters)


def _score_faults(
    scored: Sequence[PointRecord],
    judged: Sequence[tuple[PointRecord, FilterVerdict]],
    rules: Rules,
) -> Iterator[str]:
    bad = [record for record in scored if record.status.state != "ok"]
    yield from (f"{record.point.name} is {record.status}" for record in bad)
    fine = [record for record in scored if record.status.state == "ok"]
    empty = [r for r in fine if not r.score or not r.score.questions or not r.score.filters]
    yield from (f"{record.point.name} has no score" for record in empty)
    yield from grouped((r, fault) for r in fine for fault in _filter_faults(r, rules))
    low = ((r, one) for r, one in judged if one.bar is not None and one.score < one.bar)
    yield from grouped((r, f"{one.filter} is below the bar of {one.bar}") for r, one in low)


def _filter_faults(record: PointRecord, rules: Rules) -> Iterator[str]:
    """Yield what is amiss with filters that have a bar: each is scored, with a share."""
    score = record.score
    for name in rules.bars.of(record.point.arm.model.prefix, score.task) if score else ():
        found = score.filters.get(name) if score else None
        if found is None:
            yield f"{name} has a bar and no score"
        elif not 0 <= found.score <= 1:
            yield f"{name} {found.score:g} is no share of questions"


def _wrong_images(
    bundle: Bundle, records: Sequence[PointRecord]
) -> Iterator[tuple[PointRecord, str]]:
    pinned: dict[str, Entry] = {entry.key: entry for entry in affected(bundle)}
    for record in records:
        arm, entry = record.point.arm, pinned[record.point.entry]
        if arm.image != entry.image:
            yield record, f"ran {arm.image}, the config pins {entry.image}"
        elif entry.image_digest and arm.image_digest != entry.image_digest:
            seen, asked = arm.image_digest or "none", entry.image_digest
            yield record, f"ran digest {seen}, the config pins {asked}"


def _computation(record: PointRecord) -> str:
    return computation_id(record.point.arm)


def _unscored(scored: Sequence[PointRecord], measured: Sequence[PointRecord]) -> Iterator[str]:
    known = {_computation(record) for record in scored}
    if lacking := [record for record in measured if _computation(record) not in known]:
        yield f"no evaluation of what computed {names(lacking)}"


def _never_scored(bundle: Bundle, scored: Sequence[PointRecord]) -> Iterator[str]:
    known = {record.point.entry for record in scored}
    if lacking := [entry.key for entry in affected(bundle) if entry.key not in known]:
        yield f"nothing was evaluated of {', '.join(lacking)}"


def _elsewhere(scored: Sequence[PointRecord], measured: Sequence[PointRecord]) -> Iterator[str]:
    known = {(_computation(record), record.point.conc) for record in scored}
    away = [r for r in measured if (_computation(r), r.point.conc) not in known]
    if away:
        yield f"{len(away)} of {len(measured)} points are evaluated at another concurrency only"


def _doubts(judged: Sequence[tuple[PointRecord, FilterVerdict]]) -> Iterator[str]:
    said = {
        "undecided": "the bar of {bar} is inside the 95 % interval: not enough data",
        "no-bar": "bars.yaml sets no bar",
    }
    yield from grouped(
        (record, f"{one.filter}: {said[one.answer].format(bar=one.bar)}")
        for record, one in judged
        if one.answer in said
    )


def score_ranges(bundle: Bundle, rules: Rules) -> Iterator[str]:
    """Yield for each task and filter its scores at all evaluations, and its bar."""
    return _ranges([(r, one) for r in evaluations(bundle) for one in _judged(r, rules)])


def _ranges(judged: Sequence[tuple[PointRecord, FilterVerdict]]) -> Iterator[str]:
    grouped: dict[tuple[str, str], list[FilterVerdict]] = {}
    for record, one in judged:
        task = record.score.task if record.score else ""
        grouped.setdefault((task, one.filter), []).append(one)
    for (task, which), found in grouped.items():
        scores = sorted(one.score for one in found)
        span = f"{scores[0]:.3f}" + (f"–{scores[-1]:.3f}" if scores[-1] > scores[0] else "")
        count = "1 evaluation" if len(found) == 1 else f"{len(found)} evaluations"
        bar = "no bar" if found[0].bar is None else f"bar {found[0].bar}"
        yield f"{task} {which} {span} in {count}, {bar}"


def _score_evidence(record: PointRecord, found: FilterVerdict) -> Evidence:
    task = record.score.task if record.score else ""
    where = f"records.json:{record.point.label}"
    return Evidence(where, f"{task} {found.filter} {found.sentence}; {record.point.arm.image}")


def pareto_coverage(bundle: Bundle, rules: Rules) -> Said:
    """Each affected curve has enough points on its frontier, and no invalid one."""
    if not wants_throughput(bundle):
        return Said("N/A", "no changelog entry asks for throughput")
    found = curves(bundle)
    if not found or not all(curve.valid for curve in found):
        lacking = ", ".join(curve.name for curve in found if not curve.valid) or "no curve"
        return Said("FAIL", f"no valid point: {lacking}")
    evidence = tuple(_curve_evidence(curve) for curve in found)
    least = 1 if _adds_only(bundle) else rules.evidence.frontier_points
    few = [curve for curve in found if _is_thin(curve, least)]
    sentence = "; ".join(curve.told for curve in found)
    if not few:
        return Said("PASS", sentence, evidence)
    asked = f"at least {least} on the frontier and no invalid one"
    return Said("WARN", f"{sentence} (expected: {asked})", evidence)


def _adds_only(bundle: Bundle) -> bool:
    """Return True where only new points are measured: those that stood are in no bundle."""
    return all(one.append_only for one in bundle.changelog if not one.evals_only)


def _is_thin(curve: Curve, least: int) -> bool:
    few = len(curve.on_frontier) < least
    return few or len(curve.valid) < len(curve.spots)


def _curve_evidence(curve: Curve) -> Evidence:
    return Evidence(
        "records.json", f"{curve.name}: {', '.join(spot.name for spot in curve.on_frontier)}"
    )
