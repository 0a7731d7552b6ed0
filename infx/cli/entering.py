"""From a run to its entry in the changelog: what it is told against, whether it stands there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.domain.point import Point
    from infx.report.model import RunData
    from infx.store import RunRow, Store

__all__ = ["NO_BASELINE", "Drafted", "Entered", "drafted", "entered", "put"]

NO_BASELINE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """An entry as text, the run that it is of, in words what it is told against, and how many of
    the run's measurements have no end yet."""

    run_id: str
    text: str
    against: str
    under_way: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """A changelog with the entry, and in words what was done; ``written`` is False where it stood
    there already."""

    text: str
    written: bool
    sentence: str


def drafted(run: str, baseline: Sequence[str], pr_link: str, results: Path | None) -> Drafted:
    """Return the entry of a run that the store knows, told against ``baseline``: runs, ``live``, or
    ``none``; without a word against what is live of its entries, else against `_earlier`."""
    from infx.changelog.draft import draft_entry
    from infx.cli.options import existing_store, results_dir
    from infx.cli.reporting import report_of, stored_run
    from infx.store import find_run

    with existing_store(results_dir(results)) as store:
        row = find_run(store, run)
        mine = stored_run(store, row)
        before, against = _named(store, baseline, mine) if baseline else _before(store, row, mine)
        under_way = sum(not point.status.terminal for point in store.points(row.run_id))
    since = report_of([mine], before).baseline if before else None
    told = draft_entry(mine.records, mine.plan, pr_link, since, row.run_id)
    return Drafted(
        run_id=row.run_id, text=told, against=f"told against {against}", under_way=under_way
    )


def _named(store: Store, baseline: Sequence[str], mine: RunData) -> tuple[list[RunData], str]:
    """Return the runs that somebody named, and what to call them."""
    from infx.cli.baselines import baseline_runs
    from infx.domain.errors import UsageError

    if NO_BASELINE not in baseline:
        found = baseline_runs(store, baseline, [mine])
        return found, _names(found)
    if len(baseline) > 1:
        hint = "name runs, or none"
        raise UsageError("bad-option", f"--baseline {NO_BASELINE} stands beside a run", hint=hint)
    return [], "nothing, as asked"


def _before(store: Store, row: RunRow, mine: RunData) -> tuple[list[RunData], str]:
    """Return what a run's entries had before, and what to call it; of these runs the points of its
    entries alone, less those that its plan left for later: they are not dropped."""
    from infx.cli.baselines import live_runs, only

    entries = {point.entry for point in mine.plan.expected}
    later = {c.point_id for c in mine.plan.ledger if c.disposition == "deferred"}

    def replaced(point: Point) -> bool:
        return point.entry in entries and point.point_id not in later

    live = live_runs(store, [mine])
    shown = {point.entry for run in live for point in run.plan.expected}
    kinds = {
        "what is live, of run": live,
        "the newest earlier run,": _earlier(store, row, entries - shown),
    }
    parts = {name: [only(run, replaced) for run in runs] for name, runs in kinds.items()}
    found = {name: [run for run in runs if run.records] for name, runs in parts.items()}
    if told := [f"{name} {_names(runs)}" for name, runs in found.items() if runs]:
        return [run for runs in found.values() for run in runs], " and ".join(told)
    return [], "nothing: no earlier run has a point that this one replaces"


def _names(runs: Sequence[RunData]) -> str:
    return " and ".join(run.facts.run_id for run in runs)


def _earlier(store: Store, row: RunRow, entries: Collection[str]) -> list[RunData]:
    """Return for each entry the newest run before ``row`` that has a valid point of it, with the
    points of these entries alone."""
    from infx.cli.reporting import stored_run

    left = set(entries)
    found: list[RunData] = []
    for one in reversed(store.runs()):
        if one.created_s >= row.created_s or one.reproduces or not _is_there(one) or not left:
            continue
        data = stored_run(store, one)
        if held := left & {r.point.entry for r in data.records if r.status.state == "ok"}:
            left -= held
            found.append(_of(data, held))
    return found


def _of(run: RunData, entries: Collection[str]) -> RunData:
    from infx.cli.baselines import only

    return only(run, lambda point: point.entry in entries)


def _is_there(run: RunRow) -> bool:
    from infx.store.layout import PLAN

    return (Path(run.folder) / PLAN).is_file()


def entered(text: str, file: str, draft: Drafted, pr_link: str) -> Entered:
    """Return the changelog ``text`` of ``file`` with the entry below it, or in the place of the one
    that announced it. A run is entered once: the entry that stands there gets the link that is
    given in the place of a placeholder.

    Raises ConfigError where the entry could not be read back: what stands above it is broken.
    """
    from infx.changelog.entered import entry_of, with_link
    from infx.changelog.entry import PLACEHOLDER, read_changelog

    stood = entry_of(read_changelog(text.encode(), file), draft.run_id)
    if stood is None:
        return put(text, file, draft.text)
    place = f"run {draft.run_id} is entered already, {stood.where}"
    if stood.pr_link == PLACEHOLDER != pr_link:
        linked = with_link(text, stood, pr_link)
        return Entered(text=linked, written=True, sentence=f"{place}: its link is set")
    return Entered(text=text, written=False, sentence=f"{place}: nothing is written")


def put(text: str, file: str, entry: str) -> Entered:
    """Return the changelog ``text`` of ``file`` with ``entry`` in the place of what announced it,
    or below the others; one that says the very same is not written again. Errors: see `entered`."""
    from infx.changelog.entered import announcement_of, in_place_of
    from infx.changelog.entry import read_changelog
    from infx.changelog.merge import append
    from infx.domain.errors import ConfigError

    [mine] = read_changelog(entry.encode(), file).entries
    planned = announcement_of(read_changelog(text.encode(), file), mine)
    if planned and (planned.description, planned.keys_told) == (mine.description, mine.keys_told):
        return Entered(text=text, written=False, sentence=f"it stands at {planned.where} already")
    whole = in_place_of(text, planned, entry) if planned else append(text, entry)
    read = read_changelog(whole.encode(), file)
    if all(one.description != mine.description for one in read.entries):
        raise ConfigError(read.findings)
    where = f"{planned.where}, in the place of what was planned" if planned else file
    return Entered(text=whole, written=True, sentence=f"written to {where}")
