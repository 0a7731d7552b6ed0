"""How a comparison is printed: a table a pair of points, and what it does not say."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from infx.analysis.changes import VERDICTS
from infx.cli.output import table
from infx.report.figures import count, figure, signed

if TYPE_CHECKING:
    from infx.analysis.changes import Change, Comparison
    from infx.analysis.compare import Compared, ComparedPoint, ComparedScore
    from infx.analysis.line_changes import LineChange
    from infx.analysis.noise import Coverage

__all__ = ["show"]

_WIDEST = 32
"""Characters of a metric's name, so that a row stays within 100."""


def show(found: Compared) -> None:
    """Print the comparison to stdout, 100 columns wide."""
    print("\n".join([*_headline(found), *_notes(found)]))
    for point in found.points:
        _point(point)
    _lines(found.lines)
    for score in found.scores:
        _score(score)
    if found.left_out:
        print(f"\nNot compared ({len(found.left_out)}):")
    for one in found.left_out:
        print(_wrapped(f"{one.label} ({one.run_id}): {one.why}"))


def _headline(found: Compared) -> list[str]:
    runs = f"runs {' and '.join(found.runs)}" if len(found.runs) > 1 else f"run {found.runs[0]}"
    arms = " · ".join(map(str, found.differences)) or found.axis or "servers that do not differ"
    lines = [_wrapped(f"A → B: {arms}; {runs}", "")]
    if not found.axis and len(found.differences) > 1:
        lines.append(f"They differ in {len(found.differences)} things: no change is that of one.")
    verdicts: Counter[str] = Counter(c.verdict for p in found.points for c in p.comparison.changes)
    told = ", ".join(f"{verdicts[v]} {_words(v)}" for v in VERDICTS if verdicts[v])
    figures = f"{verdicts.total()} figures of {count(len(found.points), 'pair')} of points"
    return [*lines, f"{figures}: {told}" if told else "No pair of points could be compared."]


def _point(point: ComparedPoint) -> None:
    print(f"\n{point.a} → {_rest(point.a, point.b)}")
    print(f"  {point.workload}; {_stands_on(point.comparison)}")
    rows = [_row(change) for change in point.comparison.changes]
    table(("METRIC", "A", "B", "CHANGE", "95 % INTERVAL", "VERDICT"), rows)


def _rest(a: str, b: str) -> str:
    """Return ``b`` from the first part on in which it differs from ``a``."""
    pairs = list(zip(a.split("-"), b.split("-"), strict=False))
    same = next((n for n, (one, other) in enumerate(pairs) if one != other), len(pairs))
    return ("…" if same else "") + "-".join(b.split("-")[same:]) if a != b else "the same"


def _stands_on(comparison: Comparison) -> str:
    a, b = comparison.requests
    if comparison.basis in ("repeats", "repeats-paired"):
        return f"{_repeats(comparison)}, {a} and {b} requests in all"
    if comparison.basis == "requests-paired":
        return f"{a} requests on each side, paired prompt by prompt"
    return f"requests not paired ({comparison.unpaired})"


def _repeats(comparison: Comparison) -> str:
    """Say how often each side was measured, how, and where their noise is from."""
    a, b = comparison.repeats
    paired = comparison.basis == "repeats-paired"
    times = f"each measured {a} times in turn" if paired else f"measured {a} and {b} times"
    points = comparison.noise_points
    return f"{times}, noise from {points} points of the line" if points > 1 else times


def _lines(lines: Sequence[LineChange]) -> None:
    """Print how the deciding frontiers changed over the compared points."""
    for line in lines:
        points = count(line.points, "point")
        area = f"area {figure(line.area[0])} → {figure(line.area[1])}, {signed(line.ratio - 1)}"
        if line.low is not None and line.high is not None:
            area += f" ({signed(line.low - 1)} … {signed(line.high - 1)})"
        told = f"Frontier of {line.entry}, {line.workload}, over {points}: on it A {_on(line.a)}, "
        print()
        print(_wrapped(f"{told}B {_on(line.b)}; {area}.", ""))


def _on(side: Coverage) -> str:
    return f"{side.on}" if side.least is None else f"{side.on} (at least {side.least} under noise)"


def _row(change: Change) -> Sequence[object]:
    interval = (
        change.why
        if change.low is None or change.high is None
        else f"{signed(change.low - 1)} … {signed(change.high - 1)}"
    )
    return (
        _name(change),
        figure(change.a),
        figure(change.b),
        signed(change.ratio - 1),
        interval,
        _words(change.verdict),
    )


def _name(change: Change) -> str:
    """Return the metric with its unit, or without it where the table would get too wide."""
    from infx.analysis.metrics import METRICS

    return change.title if len(change.title) <= _WIDEST else METRICS[change.metric].title


def _unit_apart(change: Change) -> str:
    """Return the unit of a metric whose name has no room for it in the table."""
    from infx.analysis.metrics import METRICS

    metric = METRICS[change.metric]
    return f"{metric.title} is in {metric.unit}." if _name(change) == metric.title else ""


def _score(score: ComparedScore) -> None:
    from infx.analysis.chance import LEVELS, shown

    print(f"\n{score.a} → {_rest(score.a, score.b)}")
    print(f"  {score.task}: the same questions paired, exact McNemar test")
    rows = [
        (
            change.filter,
            f"{change.verdict.before:.3f}",
            f"{change.verdict.after:.3f}",
            f"-{change.verdict.lost} +{change.verdict.won} of {change.verdict.questions}",
            shown(change.verdict.p).removeprefix("= "),
            f"{100 * change.verdict.detectable:.1f} pp",
            f"{change.identical:.1%}",
            _words(change.verdict.change),
        )
        for change in score.changes
    ]
    table(("FILTER", "A", "B", "LOST, WON", "P", "DETECTABLE", "SAME TEXT", "VERDICT"), rows)
    print(f"  {LEVELS}")


def _notes(found: Compared) -> list[str]:
    bases = {point.comparison.basis for point in found.points}
    notes = []
    if bases & {"requests", "requests-paired"}:
        notes += [
            "An interval over the requests of one run does not cover what changes from run to run.",
            f"It is drawn by {found.resamples} resamples (seed {found.seed}).",
        ]
    if bases & {"repeats", "repeats-paired"}:
        notes.append("Intervals over repeats: Student's t on logarithms, with the line's noise.")
    if "repeats" in bases:
        notes.append("Repeats that were not measured in turn hold whatever changed between them.")
    if bases:
        notes.append("One interval of twenty misses by chance: of many verdicts some are wrong.")
    bare = dict.fromkeys(_unit_apart(c) for p in found.points for c in p.comparison.changes)
    notes += [note for note in bare if note]
    if found.lines:
        notes.append("An area is what a frontier dominates, from 0 tok/s/user and 0 tok/s/GPU on.")
    return notes


def _wrapped(text: str, indent: str = "  ") -> str:
    return textwrap.fill(
        text, 100, initial_indent=indent, subsequent_indent="    ", break_on_hyphens=False
    )


def _words(code: str) -> str:
    return code.replace("-", " ")
