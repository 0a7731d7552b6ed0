"""The gates about the figures: how many requests they stand on, how near the plan they are."""

from __future__ import annotations

from collections.abc import Sequence

from infx.analysis.acceptance import Tolerance, independent_draws, tolerance
from infx.analysis.evidence import Limits
from infx.analysis.metrics import FEW_IN_TAIL
from infx.domain.record import Measurement, PointRecord
from infx.report.figures import count, extent, figure, percent
from infx.report.model import Gate, Level, PointRow

__all__ = ["acceptance", "errors", "mono", "samples"]


def errors(valid: Sequence[PointRow]) -> Gate:
    """Return how many requests stand behind the valid points, how many failed or were cut, and how
    far those that failed could move a p90 whatever they had measured."""
    records = [record for row in valid for record in row.repeats]
    seen = [(record, record.measurement) for record in records if record.measurement]
    sent = sum(m.requests.ok + m.requests.errors for _, m in seen)
    failed = sum(m.requests.errors for _, m in seen)
    cut = sum(m.requests.cancelled for _, m in seen)
    sentence = f"{count(sent, 'request')} in valid points, {failed} failed, {cut} cut at the end"
    sentence += "; warm-up is not counted."
    items = tuple(_failed(record, m) for record, m in seen if m.requests.errors)
    level: Level = "note" if failed or cut else "good"
    return Gate(name="Errors", level=level, sentence=sentence, items=items)


def _failed(record: PointRecord, seen: Measurement) -> str:
    asked = seen.requests
    kinds = ", ".join(f"{name} {number}" for name, number in asked.errors_by_category.items())
    told = f"{record.point.label}: {asked.errors} of {asked.ok + asked.errors} failed"
    told += f" ({kinds})" if kinds else ""
    bounds = [_bound(key, found.p90) for key, found in seen.error_bounds.items()]
    return "; ".join([told, *bounds])


def _bound(key: str, p90: tuple[float, float | None]) -> str:
    """Return between what the p90 of a latency lies, whatever its failed requests took."""
    least, most = p90
    name = key.removesuffix("_ms").upper()
    upper = "any value" if most is None else figure(most)
    return f"p90 {name} {figure(least)} to {upper} ms"


def samples(valid: Sequence[PointRow]) -> Gate:
    """Return whether every p90 has a tail of its own."""
    pairs = [(row, min(_requests(row))) for row in valid]
    few = [(row, n) for row, n in pairs if n < FEW_IN_TAIL]
    least = min(n for _, n in pairs)
    if not few:
        sentence = f"{count(least, 'request')} or more behind every p90."
        return Gate(name="Samples", level="good", sentence=sentence)
    sentence = f"{len(few)} of {count(len(pairs), 'valid point')} with fewer than {FEW_IN_TAIL} "
    sentence += f"requests behind a p90 (least {least}): there one slow request decides it."
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
    sentence += f"{count(len(measured), 'measured point')}{_distance(_records(realised))}"
    limits = [limit for record in _records(measured) if (limit := _limit(record))]
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
    sentence += _served(_records(served))
    level: Level = "attention" if faults else "note" if unused else "good"
    items = (*faults.values(), *unused.values())
    return [Gate(name="Mono", level=level, sentence=f"{sentence}.", items=items)]


def _records(rows: Sequence[PointRow]) -> list[PointRecord]:
    return [record for row in rows for record in row.counted]


def _requests(row: PointRow) -> list[int]:
    return [record.measurement.requests.ok for record in row.repeats if record.measurement]


def _served(records: Sequence[PointRecord]) -> str:
    seen = [record.counters for record in records if record.counters]
    coverage = [c.mono_coverage for c in seen if c.mono_coverage is not None]
    shares = [c.mono_share for c in seen if c.mono_share is not None]
    if not coverage or not shares:
        return ""
    eligible, every = extent(coverage, percent), extent(shares, percent)
    return f": {eligible} of the eligible ones, {every} of all decode steps"


def _told(row: PointRow, code: str) -> str:
    """Return what the findings of that code say, of what counts of the point."""
    findings = (found for record in _records([row]) for found in record.findings)
    told = dict.fromkeys(found.sentence for found in findings if found.code == code)
    return f"{row.record.point.label}: {'; '.join(told)}" if told else ""


def _limit(record: PointRecord) -> Tolerance | None:
    steps = independent_draws(record)
    return tolerance(record.point.arm.acceptance, steps, Limits()) if steps else None


def _distance(realised: Sequence[PointRecord]) -> str:
    shares = [
        abs(record.counters.acceptance_length / record.point.arm.acceptance.length - 1)
        for record in realised
        if record.counters and record.counters.acceptance_length
        if record.point.arm.acceptance.length
    ]
    return f", at most {percent(max(shares))} off" if shares else ""
