"""The gates about the figures: how many requests they stand on, how near the plan they are."""

from __future__ import annotations

from collections.abc import Sequence

from infx.analysis.acceptance import Tolerance, independent_draws, tolerance
from infx.analysis.evidence import Limits
from infx.analysis.pareto import NORTH_STAR
from infx.report.figures import count, figure, percent
from infx.report.model import Gate, Level, PointRow

__all__ = ["acceptance", "coverage", "mono", "noise", "requests", "samples"]

COVERAGE_ADVICE = 5
"""Points on a frontier below which a curve's shape is a guess (public review practice)."""

TAIL_SAMPLES = 10
"""Requests below which a p90 is decided by the single slowest one."""


def requests(valid: Sequence[PointRow]) -> Gate:
    """Return how many requests stand behind the valid points, and how many were lost."""
    seen = [row.record.measurement.requests for row in valid if row.record.measurement]
    sent = sum(part.ok + part.errors for part in seen)
    lost = sum(part.errors + part.cancelled for part in seen)
    sentence = f"{count(sent, 'request')} in valid points, {lost} failed or cut"
    level: Level = "note" if lost else "good"
    return Gate(name="Requests", level=level, sentence=f"{sentence}; warm-up is not counted.")


def samples(valid: Sequence[PointRow]) -> Gate:
    """Return whether every p90 has a tail of its own."""
    pairs = [(row, row.record.measurement.requests.ok) for row in valid if row.record.measurement]
    few = [(row, n) for row, n in pairs if n < TAIL_SAMPLES]
    least = min(n for _, n in pairs)
    if not few:
        sentence = f"{count(least, 'request')} or more behind every p90."
        return Gate(name="Samples", level="good", sentence=sentence)
    sentence = f"{len(few)} of {count(len(pairs), 'valid point')} with fewer than {TAIL_SAMPLES} "
    sentence += f"requests behind a p90 (least {least}): there the slowest one decides it."
    items = tuple(f"{row.record.point.label}: {count(n, 'request')}" for row, n in few)
    return Gate(name="Samples", level="note", sentence=sentence, items=items)


def acceptance(rows: Sequence[PointRow]) -> list[Gate]:
    """Return whether synthetic acceptance was realised, over all points measured with it."""
    synthetic = [row for row in rows if row.record.point.arm.acceptance.mode == "synthetic"]
    measured = [row for row in synthetic if row.record.status.state in ("ok", "invalid")]
    if not measured:
        return []
    off = {row.anchor: told for row in measured if (told := _told(row, "acceptance-off"))}
    lengths = sorted({figure(row.record.point.arm.acceptance.length) for row in measured})
    realised = [row for row in measured if row.anchor not in off]
    sentence = f"Synthetic length {', '.join(lengths)} realised on {len(realised)} of "
    sentence += f"{count(len(measured), 'measured point')}{_distance(realised)}"
    limits = [limit for row in measured if (limit := _limit(row))]
    sentence += f"; {max(limits, key=lambda limit: limit.share)}" if limits else ""
    level: Level = "attention" if off else "good"
    return [
        Gate(name="Acceptance", level=level, sentence=f"{sentence}.", items=tuple(off.values()))
    ]


def mono(rows: Sequence[PointRow]) -> list[Gate]:
    """Return whether mono served the points that were measured with it."""
    claim = [row for row in rows if row.record.point.arm.axes.mono == "on"]
    measured = [row for row in claim if row.record.status.state in ("ok", "invalid")]
    if not measured:
        return []
    faults = {row.anchor: told for row in measured if (told := _told(row, "mono-coverage"))}
    unused = {row.anchor: told for row in measured if (told := _told(row, "mono-unused"))}
    served = [row for row in measured if row.anchor not in faults | unused]
    sentence = f"Mono served its steps on {len(served)} of {count(len(measured), 'measured point')}"
    sentence += _served(served)
    level: Level = "attention" if faults else "note" if unused else "good"
    items = (*faults.values(), *unused.values())
    return [Gate(name="Mono", level=level, sentence=f"{sentence}.", items=items)]


def coverage(rows: Sequence[PointRow]) -> Gate:
    """Return how many points each curve has on its frontier."""
    lines = {row.series.number: row.series for row in rows}
    told, thin = [], False
    for number, series in lines.items():
        valid = [row for row in rows if row.series.number == number and row.valid]
        on = sum(NORTH_STAR.key in row.frontiers for row in valid)
        thin = thin or on < COVERAGE_ADVICE
        told.append(f"{series.label}: {on} of {len(valid)} valid points on the frontier")
    advice = f"advice is {COVERAGE_ADVICE} or more points on a frontier"
    sentence = f"{count(len(lines), 'curve')}; {advice}."
    return Gate(
        name="Coverage", level="note" if thin else "good", sentence=sentence, items=tuple(told)
    )


def noise(valid: Sequence[PointRow]) -> Gate:
    """Return whether points were measured more than once."""
    single = sum(row.runs == 1 for row in valid)
    if not single:
        return Gate(name="Noise", level="good", sentence="Every valid point was measured again.")
    sentence = f"{count(single, 'point')} measured once: which of two near points is better cannot"
    return Gate(name="Noise", level="note", sentence=f"{sentence} be told.")


def _served(rows: Sequence[PointRow]) -> str:
    seen = [row.record.counters for row in rows if row.record.counters]
    coverage = [c.mono_coverage for c in seen if c.mono_coverage is not None]
    shares = [c.mono_share for c in seen if c.mono_share is not None]
    if not coverage or not shares:
        return ""
    return f": {_from_to(coverage)} of the eligible ones, {_from_to(shares)} of all decode steps"


def _from_to(shares: Sequence[float]) -> str:
    """Return ``98.1 % to 100 %``, or the one share that all are."""
    return " to ".join(dict.fromkeys(percent(share) for share in (min(shares), max(shares))))


def _told(row: PointRow, code: str) -> str:
    told = [f.sentence for f in row.record.findings if f.code == code]
    return f"{row.record.point.label}: {'; '.join(told)}" if told else ""


def _limit(row: PointRow) -> Tolerance | None:
    steps = independent_draws(row.record)
    return tolerance(row.record.point.arm.acceptance, steps, Limits()) if steps else None


def _distance(realised: Sequence[PointRow]) -> str:
    shares = [
        abs(row.record.counters.acceptance_length / row.record.point.arm.acceptance.length - 1)
        for row in realised
        if row.record.counters and row.record.counters.acceptance_length
        if row.record.point.arm.acceptance.length
    ]
    return f", at most {percent(max(shares))} off" if shares else ""
