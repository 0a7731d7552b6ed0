"""What people call runs and points: ``last``, a unique beginning, a unique end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from infx.config.suggestions import closest
from infx.domain.errors import UsageError
from infx.store.kept import kept
from infx.store.lock import holder
from infx.store.rows import PointRow, RunRow
from infx.store.store import Store

__all__ = ["LAST", "find_point", "find_recorded", "find_run", "named", "newest_unfinished"]

LAST = "last"


def find_run(store: Store, text: str) -> RunRow:
    """Return the run that ``text`` names. Raises UsageError ``unknown-run``."""
    runs = {run.run_id: run for run in store.runs()}
    if not runs:
        hint = "start one with infx sweep, or name their folder with --results"
        raise UsageError("unknown-run", f"there are no runs in {store.path.parent}", hint=hint)
    if text == LAST:
        return runs[max(runs, key=lambda run_id: runs[run_id].created_s)]
    return runs[named(text, runs, "unknown-run", f"run in {store.path.parent}")]


def find_point(points: Sequence[PointRow], text: str, among: str = "the run") -> PointRow:
    """Return the point that ``text`` names by its label or its identity, as it was measured first,
    or the second time where ``-r2`` follows the name.

    Raises UsageError ``unknown-point``.
    """
    points, text = _of_repeat(points, text)
    by_label = {point.label: point for point in points}
    by_id = [point for point in points if len(text) >= 8 and point.point_id.startswith(text)]
    if len(by_id) == 1:
        return by_id[0]
    return by_label[named(text, by_label, "unknown-point", f"point in {among}")]


def find_recorded(store: Store, text: str) -> tuple[RunRow, PointRow]:
    """Return the point that ``text`` names, and the run that its record is taken from: one in which
    it is ok before others, one that reproduced it last, then the newest.

    Raises UsageError ``unknown-point``.
    """
    rows = [(run, row) for run in reversed(store.runs()) for row in store.points(run.run_id)]
    newest = {(row.point_id, row.repeat): row for _, row in reversed(rows)}
    point_id = find_point([*newest.values()], text, str(store.path.parent)).point_id
    those = [(run, row) for run, row in rows if row.point_id == point_id]
    return max(those, key=lambda pair: (pair[1].status.state == "ok", not pair[0].reproduces))


def _of_repeat(points: Sequence[PointRow], text: str) -> tuple[list[PointRow], str]:
    found = re.fullmatch(r"(.+)-r([0-9]+)", text)
    told = [point for point in points if found and point.repeat == int(found[2]) > 1]
    if found and told:
        return told, found[1]
    return [point for point in points if point.repeat == 1], text


def newest_unfinished(store: Store) -> RunRow:
    """Return the newest run that nobody drives and that has points without a result.

    Raises UsageError ``unknown-run``.
    """
    for run in reversed(store.runs()):
        left = any(not kept(point.status) for point in store.points(run.run_id))
        if left and not holder(Path(run.folder)):
            return run
    raise UsageError("unknown-run", "no run is unfinished", hint="list runs with infx status")


def named(
    text: str, names: Iterable[str], code: str, kind: str, hint: str = "list them with infx status"
) -> str:
    """Return the one of ``names`` that ``text`` is, or that begins or ends with it.

    Raises UsageError with ``code``, which calls them a ``kind``; ``hint`` says where they are
    listed.
    """
    names = sorted(names)
    if text in names:
        return text
    found = [name for name in names if name.startswith(text)] if text else []
    found = found or [name for name in names if text and name.endswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        shown = ", ".join(found[:5]) + (" …" if len(found) > 5 else "")
        raise UsageError(code, f"`{text}` names {len(found)}: {shown}", hint="write more of it")
    near = closest(text, names)
    hint = f"did you mean `{near}`?" if near else hint
    raise UsageError(code, f"there is no {kind} called `{text}`", hint=hint)
