"""What came out of a point that was measured again, judged against its record and printed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from infx.report.figures import figure, signed

if TYPE_CHECKING:
    from infx.analysis.changes import Observed
    from infx.analysis.pairing import Seen
    from infx.analysis.reproduction import Again, Figure, Verdict
    from infx.domain.record import PointRecord
    from infx.launch.repro import Recorded
    from infx.store import RunRow

__all__ = ["show_figures", "show_record", "tell"]

NOT_MEASURED = 4

_ANYTHING = 3.0
"""A ratio beyond which the end of an interval tells no reader anything."""


def tell(
    found: Recorded, run: RunRow, records: Sequence[PointRecord], margin: float, as_json: bool
) -> int:
    """Print whether ``records`` of ``run`` reproduce what was found; return the exit code."""
    from infx.analysis.reproduction import made_otherwise, overall
    from infx.cli.output import emit

    measured = [record for record in records if record.status.state == "ok"]
    if not measured:
        return _not_measured(found, run, records, as_json)
    figures, why = _figures(found, run, measured, margin)
    verdict = overall(figures)
    differs = made_otherwise(found.records[0].provenance, measured[0].provenance)
    lost = _ends([record for record in records if record.status.state != "ok"])
    if as_json:
        told = {
            "point": found.point.label,
            "point_id": found.point.point_id,
            "record": found.run.run_id,
            "run": run.run_id,
            "margin": margin,
            "verdict": verdict,
            "why": why,
            "figures": figures,
            "made_otherwise": differs,
            "not_measured": lost,
        }
        emit("repro", told, ok=verdict == "reproduced")
    else:
        _print(found, figures)
        for difference in differs:
            print(f"made otherwise: {difference}")
        for end in lost:
            print(f"could not be measured every time: {end}")
        print(_sentence(verdict, figures, margin, why))
    return 0 if verdict == "reproduced" else 1


def show_record(found: Recorded) -> None:
    """Print which record is meant, and its figures."""
    first = found.records[0]
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(first.attempt.started_s))
    host = first.provenance.host.get("name", "an unknown machine")
    times = f", {len(found.records)} times" if len(found.records) > 1 else ""
    print(f"{found.point.label} of run {found.run.run_id}: measured {when} on {host}{times}")


def show_figures(found: Recorded) -> None:
    """Print the figures of a throughput point as recorded."""
    from infx.analysis.reproduction import recorded_figures
    from infx.cli.output import table

    side = _observed([_seen(found.run, record) for record in found.records], with_requests=False)
    rows = [(title, _figure(told)) for title, told in recorded_figures(side)]
    if rows:
        table(("FIGURE", "RECORD"), rows)


def _not_measured(
    found: Recorded, run: RunRow, records: Sequence[PointRecord], as_json: bool
) -> int:
    from infx.cli.output import emit, say

    ends = _ends(records)
    if as_json:
        told = {"point": found.point.label, "record": found.run.run_id, "run": run.run_id}
        emit("repro", told | {"verdict": "not-measured", "why": "; ".join(ends)}, ok=False)
    else:
        print(f"could not be measured: {'; '.join(ends) or 'no record'}")
        say(f"look at infx logs {run.run_id} {found.point.label}")
    return NOT_MEASURED


def _ends(records: Sequence[PointRecord]) -> list[str]:
    return list(dict.fromkeys(f"{r.status} {r.status.sentence}".strip() for r in records))


def _figures(
    found: Recorded, run: RunRow, measured: Sequence[PointRecord], margin: float
) -> tuple[tuple[Again, ...], str]:
    """Return the judged figures, and why there are none."""
    from infx.analysis.changes import Sides
    from infx.analysis.reproduction import figures_again

    old = [_seen(found.run, record) for record in found.records]
    new = [_seen(run, record) for record in measured]
    if found.point.mode == "evaluation":
        return _scores(old[0], new, margin)
    alone = len(old) == len(new) == 1
    sides = Sides(before=_observed(old, alone), after=_observed(new, alone))
    if not sides.before or not sides.after:
        return (), "a side has no figures"
    return figures_again(sides, margin), ""


def _scores(old: Seen, new: Sequence[Seen], margin: float) -> tuple[tuple[Again, ...], str]:
    """Return the judged scores of every new run, each against the record."""
    from infx.analysis.answers import compare_scores
    from infx.analysis.pairing import Pair
    from infx.analysis.reproduction import scores_again

    figures: list[Again] = []
    for one in new:
        changes = compare_scores(Pair(before=(old,), after=(one,), differences=()))
        if isinstance(changes, str):
            return (), changes
        figures += scores_again(changes, margin)
    return tuple(figures), ""


def _seen(run: RunRow, record: PointRecord) -> Seen:
    from infx.analysis.pairing import Seen

    return Seen(
        run_id=run.run_id,
        folder=Path(run.folder),
        point=record.point,
        status=record.status,
        record=record,
    )


def _observed(side: Sequence[Seen], with_requests: bool) -> tuple[Observed, ...]:
    """Return the runs of a side; requests that cannot be read any more are left out."""
    from infx.analysis.changes import observe, observe_requests

    read = [observe_requests(one) if with_requests else observe(one) for one in side]
    again = [
        observe(one) if isinstance(got, str) else got for one, got in zip(side, read, strict=True)
    ]
    return tuple(one for one in again if not isinstance(one, str))


def _print(found: Recorded, figures: Sequence[Again]) -> None:
    from infx.cli.output import table

    show_record(found)
    headers = ("FIGURE", "RECORD", "NOW", "CHANGE", "95 % INTERVAL", "VERDICT")
    rows = [
        (
            again.title,
            _figure(again.old),
            _figure(again.new),
            signed(again.ratio - 1),
            _interval(again),
            again.verdict.replace("-", " "),
        )
        for again in figures
    ]
    if rows:
        table(headers, rows)


def _figure(told: Figure) -> str:
    return f"{figure(told.value)} ({told.runs} runs)" if told.runs > 1 else figure(told.value)


def _interval(again: Again) -> str:
    if again.low is None or again.high is None:
        return again.why
    if again.high > _ANYTHING:
        return f"anything, over {again.basis}"
    return f"{signed(again.low - 1)} … {signed(again.high - 1)} over {again.basis}"


def _sentence(verdict: Verdict, figures: Sequence[Again], margin: float, why: str) -> str:
    if verdict == "reproduced":
        return f"reproduced: every figure is within ±{margin * 100:g} % or its interval"
    those = [f"{f.title} {signed(f.ratio - 1)}" for f in figures if f.verdict == verdict]
    told = "; ".join(those) or why
    if verdict == "not-reproduced":
        return f"not reproduced: {told}"
    return f"cannot tell: {told}{_would_tell(figures, margin)}"


def _would_tell(figures: Sequence[Again], margin: float) -> str:
    """Say what to do about it: more runs tell more, the same questions asked again do not."""
    if not figures:
        return ""
    if figures[0].basis == "answers":
        return f"; the questions are too few for ±{margin * 100:g} %: --margin sets another"
    return "; more runs would: --runs 3"
