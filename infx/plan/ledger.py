"""Every candidate is counted once, and what became of it is written down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from infx.domain.findings import Finding
from infx.domain.plan import Candidate, Disposition
from infx.domain.point import Point

__all__ = ["LISTED", "Ledger"]

LISTED = 1000
"""Candidates of one rule that the ledger lists; all of them are counted."""


class Ledger:
    """Counts candidates by disposition and by rule; keeps the points that will run."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.excluded_by: Counter[str] = Counter()
        self.rows: list[Candidate] = []
        self.points: list[Point] = []
        self.faults: list[Finding] = []
        self._seen: dict[str, Point] = {}

    def leave_out(
        self, disposition: Disposition, rule: str, row: Callable[[], dict[str, Any]]
    ) -> None:
        """Count a candidate that does not run; ``row`` makes its line of the ledger."""
        self.counts[disposition] += 1
        self.excluded_by[rule] += 1
        if self.excluded_by[rule] <= LISTED:
            self.rows.append(Candidate(disposition=disposition, rule=rule, **row()))

    def add(self, point: Point, row: dict[str, Any]) -> None:
        """Count ``point`` as run, or as a duplicate of an equal one.

        A duplicate that would be judged otherwise (another bar, another share of errors) is a
        fault: one of the two judgements would be lost.
        """
        first = self._seen.setdefault(point.point_id, point)
        if first is point:
            self.counts["run"] += 1
            self.points.append(point)
            self.rows.append(Candidate(disposition="run", point_id=point.point_id, **row))
            return
        if first.workload != point.workload:
            sentence = f"{point.name} repeats {first.name} and judges it by other limits or bars"
            self.faults.append(Finding("repeat-differs", "error", sentence, row.get("where")))
        more = {"sentence": f"the same as {first.name}", "point_id": point.point_id}
        self.leave_out("duplicate", "repeat-of", lambda: row | more)
