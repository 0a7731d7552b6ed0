"""Two arms of one run: points, figures, exports and answers that differ as a test asks."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from infx.analysis.asked import Asked
from infx.analysis.changes import Change, Comparison, Observed
from infx.analysis.export import Export
from infx.analysis.measurements import measure
from infx.analysis.pairing import Seen
from infx.analysis.records import Row, records_of
from infx.analysis.requests import columns_of
from infx.domain.identity import content_id
from infx.domain.point import Point
from infx.domain.record import PointRecord, Score
from infx.domain.status import OK, PENDING, Status
from tests.analysis.made_exports import row, write_run
from tests.report.sample_runs import MINI, evaluation, record, score

Latency = tuple[float, float]
"""TTFT and the rest of a request, in ms."""


def rows_of(latencies: Sequence[Latency]) -> list[dict[str, Any]]:
    """A closed loop of one lane that sends prompt after prompt."""
    rows, at_ms = [], 0.0
    for n, (ttft, rest) in enumerate(latencies):
        made = row(at_ms, ttft + rest, ttft_ms=ttft)
        made["metadata"]["conversation_id"] = f"profiling-{n}"
        rows.append(made)
        at_ms += ttft + rest
    return rows


def observed(rows: Sequence[dict[str, Any]], prompt: bytes = b"hello ") -> Observed:
    records = records_of(msgspec.convert(made, Row) for made in rows)
    export = Export(folder=Path(), summary=None, records=records, cancelled=0)
    prompts = {name: prompt + name.encode() for name in records.prompts}
    return Observed(measurement=measure(export, Asked(), 1), requests=columns_of(records, prompts))


def noisy(n: int, seed: int, factor: float = 1.0) -> list[Latency]:
    rng = random.Random(seed)
    return [
        (20 * rng.lognormvariate(0, 0.2), 200 * factor * rng.lognormvariate(0, 0.2))
        for _ in range(n)
    ]


def mono(of: Point, value: str) -> Point:
    axes = replace(of.arm.axes, mono=value)
    arm = replace(of.arm, axes=axes)
    return replace(
        of, arm=arm, name=f"{of.name}-{value}", point_id=content_id([arm.identity(), of.conc])
    )


def seen(
    of: Point, status: Status = OK, run: str = "r1", folder: Path = Path(), **parts: Any
) -> Seen:
    made: PointRecord | None = record(of, status, **parts) if status is not PENDING else None
    return Seen(run_id=run, folder=folder, point=of, status=status, record=made)


def arm_of(
    folder: Path,
    of: Point,
    latencies: Sequence[Latency],
    run: str = "r1",
    repeat: int = 1,
    group: str = "",
    **parts: Any,
) -> Seen:
    """A measured point with its export on disk."""
    rows = rows_of(latencies)
    made = observed(rows).measurement
    place = f"{run}-{of.label}-{repeat}"
    write_run(folder / place, rows, conc=1)
    sessions = [
        {
            "session_id": r["metadata"]["conversation_id"],
            "payloads": [{"messages": [n], "model": of.name}],
        }
        for n, r in enumerate(rows)
    ]
    (folder / place / "inputs.json").write_text(json.dumps({"data": sessions}))
    found = seen(of, run=run, folder=folder, measurement=made, artifacts={"aiperf": place}, **parts)
    return replace(found, repeat=repeat, group=group)


def answered(folder: Path, right: Sequence[bool], text: str = "42", **parts: Any) -> str:
    rows = [
        {"doc_id": n, "filter": name, "metrics": ["exact_match"], "exact_match": float(ok),
         "resps": [[text]], "doc_hash": f"d{n}", "prompt_hash": f"p{n}", **parts}
        for n, ok in enumerate(right)
        for name in ("strict-match", "robust")
    ]  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "samples.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return folder.name


def scored(folder: Path, value: str, right: Sequence[bool], text: str = "42", **more: Any) -> Seen:
    of = mono(evaluation(MINI, 0.5), value)
    made: Score = replace(score(MINI, {"strict-match": 0.5}, len(right), 0.5, 0.1), **more)
    place = answered(folder / value, right, text)
    return seen(of, folder=folder, score=made, artifacts={"lm-eval": place})


def changes(comparison: Comparison) -> dict[str, Change]:
    return {change.metric: change for change in comparison.changes}
