"""What several checks ask of a bundle: affected entries, added lines, records by kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from infx.domain.record import PointRecord
from infx.review.bundle import Addition, Bundle, Entry, Run
from infx.review.result import Evidence

__all__ = [
    "AddedLine",
    "added_lines",
    "affected",
    "affected_runs",
    "evaluations",
    "grouped",
    "launched",
    "matches",
    "names",
    "new_files",
    "reused",
    "same_commit",
    "selected",
    "speculative",
    "throughput",
    "wants_throughput",
]

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_REUSE = re.compile(r"^/reuse-sweep-run(?:[ \t]+([\w.-]+))?[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class AddedLine:
    """A line that the diff adds: its file and number at the head."""

    file: str
    number: int
    text: str

    @property
    def evidence(self) -> Evidence:
        """The line as evidence."""
        return Evidence(f"{self.file}:{self.number}", self.text.strip())


def affected(bundle: Bundle) -> tuple[Entry, ...]:
    """Return the entries at the head that the added changelog entries select."""
    keys = [key for addition in bundle.changelog for key in addition.config_keys]
    return tuple(
        entry for entry in bundle.entries.head if any(_selects(key, entry.key) for key in keys)
    )


def selected(addition: Addition, key: str) -> bool:
    """Return True when the changelog entry selects the config entry."""
    return any(_selects(pattern, key) for pattern in addition.config_keys)


def _selects(pattern: str, key: str) -> bool:
    """Only ``*`` is a wildcard: brackets and question marks are what they are."""
    escaped = re.sub(r"([\[?])", r"[\1]", pattern)
    return fnmatchcase(key, escaped)


def wants_throughput(bundle: Bundle) -> bool:
    """Return True when a changelog entry asks for more than evaluations."""
    return any(not addition.evals_only for addition in bundle.changelog)


def throughput(bundle: Bundle) -> tuple[PointRecord, ...]:
    """Return the records of throughput points of affected entries."""
    return _records(bundle, "throughput")


def evaluations(bundle: Bundle) -> tuple[PointRecord, ...]:
    """Return the records of evaluations of affected entries."""
    return _records(bundle, "evaluation")


def _records(bundle: Bundle, mode: str) -> tuple[PointRecord, ...]:
    keys = {entry.key for entry in affected(bundle)}
    of_entries = (record for record in bundle.records if record.point.entry in keys)
    return tuple(record for record in of_entries if record.point.mode == mode)


def speculative(records: Sequence[PointRecord]) -> tuple[PointRecord, ...]:
    """Return those whose server drafts."""
    return tuple(record for record in records if record.point.arm.axes.k)


def affected_runs(bundle: Bundle) -> tuple[Run, ...]:
    """Return the runs that measured records of affected entries, in the bundle's order."""
    used = {record.attempt.run_id for record in (*throughput(bundle), *evaluations(bundle))}
    return tuple(run for run in bundle.runs if run.run_id in used)


def reused(bundle: Bundle) -> Iterator[tuple[str, str, str, str]]:
    """Yield (comment, author, association, run or "") of each reuse command, oldest first; of
    several in one comment the last."""
    for comment in sorted(bundle.comments, key=lambda one: one.created_at):
        if found := _REUSE.findall(comment.body):
            yield comment.id, comment.author, comment.association, found[-1]


def added_lines(diff: str, leave_out: Sequence[str] = ()) -> Iterator[AddedLine]:
    """Yield the lines that a git diff adds; none of files that a pattern of ``leave_out`` finds."""
    file, number, old, new = "", 0, 0, 0
    for line in diff.splitlines():
        if old <= 0 and new <= 0:
            if line.startswith("+++ "):
                file = line[4:].removeprefix("b/").split("\t")[0]
            elif hunk := _HUNK.match(line):
                old, number, new = int(hunk[1] or 1), int(hunk[2]), int(hunk[3] or 1)
            continue
        mark, wanted = line[:1], not matches(leave_out, file)
        if mark == "+" and wanted:
            yield AddedLine(file, number, line[1:])
        old -= mark in (" ", "-", "")
        new -= mark in (" ", "+", "")
        number += mark in (" ", "+", "")


def new_files(bundle: Bundle) -> tuple[str, ...]:
    """Return the paths that the pull request changes or adds, less those that it removes."""
    removed = re.findall(r"^--- a/(.+)\n\+\+\+ /dev/null$", bundle.diff, re.MULTILINE)
    return tuple(path for path in bundle.pull_request.changed if path not in removed)


def matches(patterns: Sequence[str], text: str) -> str:
    """Return the first regular expression that finds something in ``text``, or ""."""
    return next((pattern for pattern in patterns if re.search(pattern, text)), "")


def launched(record: PointRecord) -> Iterator[tuple[str, str]]:
    """Yield (what, text) for all that a server was started with: command, options, environment."""
    arm, seen = record.point.arm, record.provenance
    yield "command", " ".join(seen.server_argv)
    yield from (("option", f"{name} = {value}") for name, value in arm.options.items())
    yield from (("variable", f"{name}={value}") for name, value in {**arm.env, **seen.env}.items())
    if arm.delegated:
        yield "srt recipe", arm.delegated.text
        yield from (("srt --set", f"{k}={v}") for k, v in arm.delegated.set.items())


def same_commit(one: str, other: str) -> bool:
    """Return True when one hash is the beginning of the other, with seven digits at least."""
    short, long = sorted((one, other), key=len)
    return len(short) >= 7 and long.startswith(short)


def grouped(faults: Iterable[tuple[PointRecord, str]]) -> Iterator[str]:
    """Yield ``a, b and 4 more: why`` for each thing that is said of points."""
    said: dict[str, list[PointRecord]] = {}
    for record, why in faults:
        said.setdefault(why, []).append(record)
    yield from (f"{names(records)}: {why}" for why, records in said.items())


def names(records: Sequence[PointRecord], limit: int = 5) -> str:
    """Return ``a, b, c and 4 more``: what points are called."""
    said = [record.point.name for record in records]
    more = f" and {len(said) - limit} more" if len(said) > limit else ""
    return ", ".join(said[:limit]) + more
