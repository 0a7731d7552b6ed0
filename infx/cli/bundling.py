"""What `infx bundle` reads, put together: an event, comments, a branch, runs of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from infx.bundling.change import BundledChange
    from infx.bundling.runs import Found, Sought
    from infx.ci.events import Comment, PullRequestEvent
    from infx.domain.findings import Finding
    from infx.domain.record import PointRecord
    from infx.forge.branch import Branch
    from infx.review.bundle import Bundle, Draft, Manifest, PullRequest, Run

__all__ = ["Made", "Sources", "bundled"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What is read. ``base`` and ``head`` are revisions ("": those of the event), ``runs`` names in
    the store of ``results``, ``drafts`` and ``upstream`` files of JSON; evidence takes no more than
    ``limit_bytes``."""

    event: Path
    comments: Path | None
    base: str
    head: str
    runs: Sequence[str]
    results: Path | None
    drafts: Path | None
    upstream: Path | None
    limit_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A bundle with the bytes of its files, the evidence that was ``left_out``, and warnings."""

    bundle: Bundle
    files: Mapping[str, bytes]
    left_out: tuple[str, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """All that a bundle is made of, but for its evidence."""

    event: PullRequestEvent
    comments: Sequence[Comment]
    branch: Branch
    change: BundledChange
    rules: Mapping[str, str]
    found: Found

    @property
    def records(self) -> list[PointRecord]:
        return [record for some in self.found.used.values() for record in some]


def bundled(sources: Sources, tell: Callable[[int, int], None]) -> Made:
    """Return the bundle of a pull request, read as `infx review` will read it; ``tell`` hears of
    the files of evidence that are done, of all.

    Raises ConfigError and UsageError for whatever of the sources is malformed, missing, unfinished
    or of another repository.
    """
    from infx.bundling.derived import check_derived
    from infx.bundling.evidence import gathered, pointing
    from infx.review.reading import bundle_of
    from infx.review.writing import bundle_files

    parts = _parts(sources)
    found = parts.found
    check_derived(found.used, found.folders)
    evidence = gathered(found.used, found.folders, sources.limit_bytes, tell)
    whole = replace(
        _bundle(parts, sources),
        manifest=_manifest(parts, len(evidence.left_out), sources.limit_bytes),
        records=tuple(pointing(parts.records, evidence.left_out)),
    )
    files = bundle_files(whole, evidence.files)
    return Made(
        bundle=bundle_of(files, "the bundle"),
        files=files,
        left_out=evidence.left_out,
        findings=parts.change.findings,
    )


def _parts(sources: Sources) -> _Parts:
    from infx.bundling.change import branch_named, change_of, rules_of
    from infx.ci.events import read_comments, read_event
    from infx.cli.options import project
    from infx.cli.planning_ci import bytes_of

    event = read_event(bytes_of(sources.event), str(sources.event))
    given = sources.comments
    comments = read_comments(bytes_of(given), str(given)) if given else ()
    branch = branch_named(sources.base, sources.head, event, project())
    change, rules = change_of(branch, project(), event.pull_request.html_url), rules_of(branch)
    found = _runs(sources, _sought(sources, event, comments, change, rules))
    return _Parts(
        event=event, comments=comments, branch=branch, change=change, rules=rules, found=found
    )


def _sought(
    sources: Sources,
    event: PullRequestEvent,
    comments: Sequence[Comment],
    change: BundledChange,
    rules: Mapping[str, str],
) -> Sought:
    from infx.bundling.runs import Sought
    from infx.ci.reuse import asked_for
    from infx.review.gathering import selected
    from infx.review.rules import load_rules

    command = asked_for(comments, load_rules(rules).labels.associations)
    return Sought(
        repository=event.repository.full_name,
        pull_request=event.number,
        names=sources.runs,
        command=command.run if command else None,
        entries=change.names,
        wants=selected(change.after.plan, change.additions),
    )


def _runs(sources: Sources, sought: Sought) -> Found:
    """Return the runs; none where there is no store, and nobody named it or a run."""
    from infx.bundling.runs import Found, runs_of
    from infx.cli.options import existing_store, results_dir
    from infx.cli.stored_runs import stored_runs
    from infx.store import FILE

    results = results_dir(sources.results)
    if not (sought.names or sources.results or (results / FILE).is_file()):
        return Found(used={}, folders={})
    with existing_store(results) as store:
        return runs_of(store, stored_runs(results), sought)


def _bundle(parts: _Parts, sources: Sources) -> Bundle:
    from infx.review import bundle, gathering

    change, below, records = parts.change, parts.branch.folder, parts.records
    versions = gathering.engine_versions(records)
    plans = change.before.plan, change.after.plan
    shown = gathering.shown(*plans, change.additions)
    before, after = (
        gathering.planned(point for point in plan.points if point.entry in shown) for plan in plans
    )
    return bundle.Bundle(
        manifest=_manifest(parts, 0, 0),
        pull_request=_request(parts),
        comments=gathering.comments_of(parts.comments),
        diff=parts.branch.diff(),
        codeowners=parts.branch.owners(),
        entries=bundle.Entries(
            base=gathering.entries_of(change.before.matrix, change.before.plan, below),
            head=gathering.entries_of(change.after.matrix, change.after.plan, below, versions),
        ),
        points=bundle.PlannedPoints(base=before, head=after),
        changelog=gathering.added(change.additions),
        runs=tuple(_told(parts)),
        records=tuple(records),
        drafts=_drafts(records, sources),
        upstream=_listed(sources.upstream, tuple[bundle.UpstreamRecipe, ...]),
        golden=_goldens(change, records),
        head=dict(_files(parts)),
        rules=parts.rules,
    )


def _manifest(parts: _Parts, left_out: int, limit_bytes: int) -> Manifest:
    from infx.review.bundle import Manifest

    limit = f"evidence is limited to {limit_bytes / 2**20:g} MiB"
    told = f"{limit}: a note stands for each file that is too large or not here ({left_out})"
    return Manifest(
        repository=parts.event.repository.full_name,
        pull_request=parts.event.number,
        base=parts.branch.base,
        head=parts.branch.head,
        files={},
        note=told if left_out else "",
    )


def _request(parts: _Parts) -> PullRequest:
    from infx.review.bundle import PullRequest

    event, told = parts.event, parts.event.pull_request
    return PullRequest(
        number=event.number,
        repository=event.repository.full_name,
        title=told.title,
        body=told.body or "",
        author=told.user.login if told.user else "",
        commits=parts.branch.commits(),
        changed=parts.branch.changed(),
        labels=event.labels,
    )


def _told(parts: _Parts) -> Iterator[Run]:
    from infx.review.gathering import run_of

    repository, number = parts.event.repository.full_name, parts.event.number
    for run in parts.found.runs:
        yield run_of(run, repository, number, parts.found.used[run.run_id])


def _drafts(records: Sequence[PointRecord], sources: Sources) -> tuple[Draft, ...]:
    from infx.cli.draft_checkpoints import drafts_on
    from infx.cli.options import project
    from infx.review.bundle import Draft

    given = _listed(sources.drafts, tuple[Draft, ...])
    return tuple(drafts_on(records, project().root, given))


def _listed(path: Path | None, kind: type[tuple[T, ...]]) -> tuple[T, ...]:
    """Return what a file of JSON lists. Raises ConfigError ``bad-record``."""
    from infx.cli.planning_ci import bytes_of
    from infx.domain.serial import decode

    hint = "write it as docs/review.md shows it"
    return decode(bytes_of(path), kind, source=str(path), hint=hint) if path else ()


def _goldens(change: BundledChange, records: Sequence[PointRecord]) -> dict[str, str]:
    """Return the golden files that the affected entries, or the measured servers, name."""
    entries = [entry for entry in change.after.matrix.entries if entry.name in change.names]
    used = {entry.speculation.golden for entry in entries if entry.speculation}
    used |= {record.point.arm.acceptance.golden for record in records}
    return {name: text for name, text in change.goldens.items() if name in used}


def _files(parts: _Parts) -> Iterator[tuple[str, str]]:
    """Yield the files of the head to be read whole: those of affected entries, and the waiver."""
    change, branch = parts.change, parts.branch
    entries = [entry for entry in change.after.matrix.entries if entry.name in change.names]
    places = (place.file for e in entries for place in (e.where, e.recipe.where))
    own = (branch.folder + file for file in dict.fromkeys(places) if not file.startswith("/"))
    for path in (*own, f"docs/waiver/{parts.event.number}.md"):
        if (text := branch.file(branch.head, path)) is not None:
            yield path, text
