"""What several checks ask of a bundle: affected entries, added lines, records by kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from infx.changelog.entry import Key
from infx.ci.diff import scenario_type
from infx.domain.findings import Where
from infx.domain.record import PointRecord
from infx.review.bundle import Addition, Bundle, Entry, PlannedPoint, Run
from infx.review.result import Evidence

__all__ = [
    "AddedLine",
    "added_lines",
    "affected",
    "affected_runs",
    "evaluations",
    "grouped",
    "in_servers",
    "launched",
    "matches",
    "names",
    "new_files",
    "said_links",
    "same_commit",
    "selected",
    "speculative",
    "throughput",
    "wanted",
    "wants_throughput",
]

_LINK = re.compile(r"https?://[^\s<>()\[\]\"'`|]+")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


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
    return tuple(
        entry
        for entry in bundle.entries.head
        if any(selected(addition, entry.key) for addition in bundle.changelog)
    )


def selected(addition: Addition, key: str) -> bool:
    """Return True when the changelog entry selects the config entry."""
    where = Where("changelog.json", addition.line)
    return any(Key(pattern, where).named([key]) for pattern in addition.config_keys)


def wants_throughput(bundle: Bundle) -> bool:
    """Return True when a changelog entry asks for more than evaluations."""
    return any(not addition.evals_only for addition in bundle.changelog)


def wanted(bundle: Bundle) -> tuple[PlannedPoint, ...]:
    """Return the planned points that the change must have figures of: those that a changelog entry
    selects, of them only the new ones under append-only, and none where it asks for evaluations."""
    stood = {point.point_id for point in bundle.points.base}
    return tuple(
        point
        for point in bundle.points.head
        if any(_wants(addition, point, point.point_id in stood) for addition in bundle.changelog)
    )


def _wants(addition: Addition, point: PlannedPoint, stood: bool) -> bool:
    asked = not addition.evals_only and not (addition.append_only and stood)
    return asked and _is_of(addition, point.scenario) and selected(addition, point.entry)


def _is_of(addition: Addition, scenario: str) -> bool:
    types = addition.scenario_types
    return not types or not scenario or scenario in types


def throughput(bundle: Bundle) -> tuple[PointRecord, ...]:
    """Return the records of throughput points of affected entries, of the scenarios that the
    changelog names."""
    naming = {
        entry.key: [one for one in bundle.changelog if selected(one, entry.key)]
        for entry in affected(bundle)
    }
    return tuple(
        record
        for record in _records(bundle, "throughput")
        if any(_is_of(one, scenario_type(record.point)) for one in naming[record.point.entry])
    )


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


def added_lines(diff: str, leave_out: Sequence[str] = ()) -> Iterator[AddedLine]:
    """Yield the lines that a git diff adds; none of files that a pattern of ``leave_out`` finds.

    Git ends a line with LF alone; what other readers take for an end (a lone CR, a form feed)
    parts the line into several of the same number.
    """
    file, number, old, new = "", 0, 0, 0
    for line in diff.split("\n"):
        if old <= 0 and new <= 0:
            if line.startswith("+++ "):
                file = line[4:].removeprefix("b/").split("\t")[0]
            elif hunk := _HUNK.match(line):
                old, number, new = int(hunk[1] or 1), int(hunk[2]), int(hunk[3] or 1)
            continue
        mark, wanted = line[:1], not matches(leave_out, file)
        if mark == "+" and wanted:
            yield from (AddedLine(file, number, text) for text in line[1:].splitlines())
        old -= mark in (" ", "-", "")
        new -= mark in (" ", "+", "")
        number += mark in (" ", "+", "")


def new_files(bundle: Bundle) -> tuple[str, ...]:
    """Return the paths that the pull request changes or adds, less those that it removes."""
    removed = re.findall(r"^--- a/(.+)\n\+\+\+ /dev/null$", bundle.diff, re.MULTILINE)
    return tuple(path for path in bundle.pull_request.changed if path not in removed)


def matches(patterns: Sequence[str], text: str) -> re.Match[str] | None:
    """Return what the first regular expression finds that finds something in ``text``."""
    return next((hit for pattern in patterns if (hit := re.search(pattern, text))), None)


def in_servers(
    records: Iterable[PointRecord], patterns: Sequence[str]
) -> Iterator[tuple[PointRecord, str]]:
    """Yield (record, what it is) for what a pattern finds in all that a server was started with."""
    found: dict[str, str] = {}  # the servers of a run are told much the same
    for record in records:
        for what, text in launched(record):
            if text not in found:
                found[text] = _around(matches(patterns, text))
            if found[text]:
                yield record, f"{what}: {found[text]}"


def _around(hit: re.Match[str] | None) -> str:
    """Return the words that a match is in, cut at 200 characters; "" without one."""
    if hit is None:
        return ""
    start, end = hit.string.rfind(" ", 0, hit.start()) + 1, hit.string.find(" ", hit.end())
    return hit.string[start : end if end >= 0 else None].strip()[:200]


def said_links(bundle: Bundle) -> set[str]:
    """Return the addresses in the pull request's text and in its comments."""
    texts = [bundle.pull_request.body, *(comment.body for comment in bundle.comments)]
    return {hit.rstrip(".,;:!?") for text in texts for hit in _LINK.findall(text)}


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
