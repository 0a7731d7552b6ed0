"""What a probe found: rows compared, those that differ, and the first of them by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from infx.engine.mono.probe.rows import Left

__all__ = ["PROPERTIES", "UNTOLD", "Difference", "Finding", "Pair", "Tally", "differing"]

PROPERTIES = {
    "alone": "a row among others is the row alone",
    "again": "a step run again is the same",
    "pads": "pads read no expert",
    "poison": "NaN in pads, pages and scratch changes nothing",
    "verify": "K+1 verify rows are K+1 single steps",
    "padded": "a padded step is the exact step",
    "slots": "a step writes its own slots only",
}

PARTS = ("output", "cache", "index", "routing")
UNTOLD = "untold"


@dataclass(frozen=True, slots=True)
class Pair:
    """A row's two results, or, where there is none to compare, ``fault``: what went wrong.

    ``at`` are its layer, width, row.
    """

    name: str
    layer: int
    width: int
    row: int
    wanted: Left | None = None
    found: Left | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that differs: ``what`` are the parts of `Left` that do, or the fault's words."""

    layer: int
    width: int
    row: int
    seed: int
    company: str
    what: str

    def __str__(self) -> str:
        return (
            f"layer {self.layer}, row {self.row} of {self.width}, seed {self.seed}"
            f" ({self.company}): {self.what}"
        )


@dataclass(slots=True)
class Finding:
    """What was found of one property: rows compared, those that differ, the first one.

    ``untold`` rows could not be compared, since the arm does not tell what is asked.
    """

    rows: int = 0
    differing: int = 0
    untold: int = 0
    first: Difference | None = None


@dataclass(slots=True)
class Tally:
    """A `Finding` for each of `PROPERTIES`, in that order."""

    findings: dict[str, Finding] = field(
        default_factory=lambda: {name: Finding() for name in PROPERTIES}
    )

    @property
    def ok(self) -> bool:
        """Whether no row differs."""
        return not any(finding.differing for finding in self.findings.values())

    def count(self, pairs: Iterable[Pair], seed: int, company: str) -> None:
        """Add ``pairs`` of one world."""
        for pair in pairs:
            finding = self.findings[pair.name]
            what = differing(pair)
            if what is None:
                finding.untold += 1
                continue
            finding.rows += 1
            if what:
                finding.differing += 1
                where = (pair.layer, pair.width, pair.row, seed, company)
                finding.first = finding.first or Difference(*where, what)


def differing(pair: Pair) -> str | None:
    """Return which parts differ ("" for none), None where nothing can be told.

    Equal results that are not finite prove nothing, so they count as different.
    """
    if pair.fault == UNTOLD:
        return None
    if pair.fault or pair.wanted is None or pair.found is None:
        return pair.fault
    wanted, found = pair.wanted, pair.found
    parts = [part for part in PARTS if getattr(wanted, part) != getattr(found, part)]
    if not np.isfinite(np.frombuffer(found.output, dtype=np.float32)).all():
        parts.append("not finite")
    return ", ".join(parts)
