"""What the parts of a bundle say of each other: a bundle that contradicts itself is refused."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Iterator

from infx.changelog.entry import PLACEHOLDER
from infx.ci.diff import identity
from infx.domain.findings import Finding, Where
from infx.domain.identity import content_id
from infx.domain.record import PointRecord
from infx.review.bundle import Bundle

__all__ = ["contradictions", "foreign"]

_HEADER = "diff --git "


def foreign(bundle: Bundle, name: str) -> Iterator[Finding]:
    """Yield what is of another repository or pull request; ``name`` is what errors call it."""
    ours = bundle.manifest.repository, bundle.manifest.pull_request
    where, request = f"{name}/runs.json", bundle.pull_request
    if (request.repository, request.number) != ours:
        theirs = _named((request.repository, request.number))
        sentence = f"it holds {theirs}, bundle.json says {_named(ours)}"
        yield _finding("foreign-run", sentence, f"{name}/pull-request.json")
    for run in bundle.runs:
        other = ours[1] if run.reused else run.pull_request
        if (run.repository, other) != ours:
            theirs = _named((run.repository, run.pull_request))
            sentence = f"run {run.run_id} is of {theirs}, not {_named(ours)}"
            yield _finding("foreign-run", sentence, where)
    own = f"/{ours[0]}/pull/{ours[1]}"
    for entry in bundle.changelog:
        if entry.pr_link != PLACEHOLDER and not entry.pr_link.endswith(own):
            sentence = f"line {entry.line} is of {entry.pr_link}, not of {_named(ours)}"
            yield _finding("foreign-run", sentence, f"{name}/changelog.json")


def _named(request: tuple[str, int]) -> str:
    return f"{request[0]}#{request[1]}"


def _finding(code: str, sentence: str, file: str) -> Finding:
    return Finding(code, "error", sentence, Where(file))


def contradictions(bundle: Bundle, name: str) -> Iterator[Finding]:
    """Yield what refers to something that the bundle does not hold, or says what another part of it
    denies."""
    where = f"{name}/records.json"
    known = {run.run_id for run in bundle.runs}
    for record in bundle.records:
        if record.attempt.run_id not in known:
            sentence = f"{_of(record)}, which runs.json does not hold"
            yield _finding("foreign-run", sentence, where)
        yield from (_finding("bad-bundle", said, where) for said in _record_faults(record, bundle))
    yield from (_finding("bad-bundle", said, where) for said in _twice(bundle))
    request = f"{name}/pull-request.json"
    yield from (_finding("bad-bundle", said, request) for said in _request_faults(bundle))


def _of(record: PointRecord) -> str:
    return f"the record of {record.point.label} is of run {record.attempt.run_id}"


def _record_faults(record: PointRecord, bundle: Bundle) -> Iterator[str]:
    label = record.point.label
    for what, path in record.artifacts.items():
        full = f"{record.attempt.run_id}/{path}"
        if not any(p == full or p.startswith(full + "/") for p in bundle.artifacts):
            yield f"{label} names artifacts/{full} ({what}), which is not there"
    if content_id(identity(record.point)) != record.point.point_id:
        yield f"{label} is another point than its identity says: it was changed since"
    against = next((one for one in record.findings if one.level == "error"), None)
    if record.status.state == "ok" and against:
        yield f"{label} is said to be ok, and {against.code} was found: {against.sentence}"


def _twice(bundle: Bundle) -> Iterator[str]:
    """Yield the points of a job that have two records: its store keeps one."""
    of = Counter((r.attempt.run_id, r.attempt.job_id, r.point.label) for r in bundle.records)
    for (run, _, label), number in of.items():
        if number > 1:
            yield f"one job of run {run} has {number} records of {label}"


def _request_faults(bundle: Bundle) -> Iterator[str]:
    heads = [commit.sha for commit in bundle.pull_request.commits]
    if not heads or heads[-1] != bundle.manifest.head:
        yield f"the last commit is {heads[-1:]}, bundle.json says {bundle.manifest.head}"
    told, shown = set(bundle.pull_request.changed), set(_paths(bundle.diff))
    if lacking := sorted(told - shown):
        yield f"diff.patch does not show how {', '.join(lacking)} changed"
    if more := sorted(shown - told):
        yield f"diff.patch changes {', '.join(more)}, which is not told as changed"


def _paths(diff: str) -> Iterator[str]:
    """Yield the paths of a git diff; inside a hunk no line begins as its header does."""
    for line in diff.split("\n"):
        if line.startswith(_HEADER):
            yield _path(line.removeprefix(_HEADER))


def _path(header: str) -> str:
    """Return P of ``a/P b/P``, which are in quotes where P has bytes that git escapes."""
    one = header[: len(header) // 2]
    if not one.startswith('"'):
        return one.removeprefix("a/")
    plain, _ = codecs.escape_decode(one.strip('"').encode())
    return plain.decode("utf-8", "replace").removeprefix("a/")
