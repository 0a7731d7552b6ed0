"""The entry of a change that nothing has measured yet: CI selects by it what is measured."""

from __future__ import annotations

from collections.abc import Sequence

from infx.changelog.entry import PLANNED, SCENARIO_TYPES
from infx.changelog.written import written
from infx.ci.diff import PlanDiff
from infx.ci.explain import Line
from infx.report.figures import count

__all__ = ["announcement"]

_MANY = {"appears": "appear", "vanishes": "vanish", "changes": "change"}


def announcement(found: PlanDiff, lines: Sequence[Line], pr_link: str) -> str:
    """Return one entry as YAML text that names each entry with a point that is not as before, and
    says why: ``lines`` are those of `explained`. Of scenarios, those that these points are of."""
    points = (*found.appeared, *found.gone, *(pair.after for pair in found.changed))
    types = dict.fromkeys(
        SCENARIO_TYPES[type(point.workload)] for point in points if point.mode == "throughput"
    )
    entries = dict.fromkeys(line.entry for line in lines)
    return written(entries, types, map(_told, lines), pr_link)


def _told(line: Line) -> str:
    number = len(line.points)
    verb = line.what if number == 1 else _MANY[line.what]
    return f"{PLANNED}{line.entry}: {count(number, 'point')} {verb}: {line.why}"
