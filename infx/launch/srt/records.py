"""From what srt's client left to the records of points: each export is a measurement to judge."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

import infx
from infx.domain.artifacts import SUMMARY
from infx.domain.errors import EngineError
from infx.domain.findings import Finding
from infx.domain.point import FixedLengths, Point
from infx.domain.record import Attempt, EngineCounters, PointRecord, Provenance
from infx.domain.status import Status
from infx.frameworks import get
from infx.frameworks.base import Framework
from infx.frameworks.srt import expressible
from infx.job.agreement import check_acceptance, option_differences
from infx.job.record import write_record
from infx.launch.executor import Order
from infx.launch.slurm.evidence import run_dir_of
from infx.launch.srt.client import EVIDENCE, PAGES
from infx.launch.srt.outputs import LOGS, exports, worker_logs

__all__ = ["UNSUPPORTED", "ended", "gather", "matched", "refuse"]

UNSUPPORTED = "srt's client measures throughput only"


class _Phase(msgspec.Struct, frozen=True):
    kind: str = ""
    concurrency: float | None = None


class _Length(msgspec.Struct, frozen=True):
    mean: float | None = None


class _Prompts(msgspec.Struct, frozen=True):
    osl: _Length | None = None


class _Dataset(msgspec.Struct, frozen=True):
    osl: _Length | None = None
    prompts: _Prompts | None = None


class _Config(msgspec.Struct, frozen=True):
    phases: list[_Phase] = []
    datasets: list[_Dataset] = []


class _Summary(msgspec.Struct, frozen=True):
    """The part of aiperf's summary that tells what a run was asked."""

    input_config: _Config = _Config()


def gather(order: Order, job: Path, attempt: Attempt) -> set[str]:
    """Write point.json for each point that an export of ``job`` measured; return their ids.

    ``attempt`` is the order's as it ended. Raises InfraError where the folder cannot be written.
    """
    framework = get(order.job.arm.framework)
    answers = _answers(framework, job / LOGS / EVIDENCE / PAGES)
    found = matched(expressible(order.job.points), job)
    for point, folder in found:
        record = _record(point, folder, job, framework, answers)
        places = {name: os.path.relpath(p, run_dir_of(order)) for name, p in _places(folder, job)}
        record = replace(record, attempt=attempt, artifacts=places)
        write_record(record, order.folder / "points" / point.label)
    return {point.point_id for point, _ in found}


def refuse(order: Order, attempt: Attempt) -> None:
    """Write point.json for each point that srt's client cannot measure. Raises as `gather`."""
    able = {point.point_id for point in expressible(order.job.points)}
    status = Status("failed", "srt-unsupported", UNSUPPORTED)
    for point in (p for p in order.job.points if p.point_id not in able):
        record = PointRecord(point=point, status=status, attempt=attempt)
        write_record(record, order.folder / "points" / point.label)


def matched(points: Sequence[Point], job: Path) -> list[tuple[Point, Path]]:
    """Return the points that have an export, each with its folder.

    Infx's own client puts it into the point's folder; of another's the export itself tells its
    concurrency and output length.
    """
    left = exports(job)
    found: list[tuple[Point, Path]] = []
    for fits in (_is_own, _fits):
        for point in (p for p in points if p.point_id not in {q.point_id for q, _ in found}):
            fitting = next((folder for folder in left if fits(point, folder)), None)
            if fitting:
                found.append((point, fitting))
                left.remove(fitting)
    return found


def _is_own(point: Point, folder: Path) -> bool:
    return folder.parts[-3:] == (EVIDENCE, point.label, "aiperf")


def _fits(point: Point, folder: Path) -> bool:
    if folder.parts[-3] == EVIDENCE:  # another point's own
        return False
    try:
        config = msgspec.json.decode((folder / SUMMARY).read_bytes(), type=_Summary).input_config
    except (OSError, msgspec.DecodeError):
        return False
    load = point.workload
    concs = {phase.concurrency for phase in config.phases if phase.kind == "profiling"}
    lengths = {length.mean for length in _lengths(config)}
    asked = {load.osl} if isinstance(load, FixedLengths) else set()  # sessions have their own
    return concs == {point.conc} and lengths == asked


def _lengths(config: _Config) -> Iterator[_Length]:
    for dataset in config.datasets:
        length = dataset.osl or (dataset.prompts.osl if dataset.prompts else None)
        if length:
            yield length


def _record(
    point: Point, folder: Path, job: Path, framework: Framework, answers: Mapping[str, Any]
) -> PointRecord:
    server = dict(framework.resolved(answers)) if answers else {}
    status = Status("measured")
    try:
        check_acceptance(point, framework.acceptance(answers), framework.laws)
    except EngineError as error:
        status = Status("failed", error.code, str(error))
    return PointRecord(
        point=point,
        status=status,
        attempt=Attempt(run_id="", job_id="", number=0),
        findings=(*_remarks(point), *option_differences(point.arm, server)),
        counters=_counters(framework, folder.parent),
        provenance=Provenance(infx_version=infx.__version__, env=point.arm.env, server=server),
    )


def _remarks(point: Point) -> Iterator[Finding]:
    if isinstance(point.workload, FixedLengths):
        text = "prompts are aiperf's own: the chat template's tokens come on top of isl"
        yield Finding("srt-prompts", "info", text)


def _counters(framework: Framework, folder: Path) -> EngineCounters | None:
    texts = []
    for name in ("metrics-before.txt", "metrics-after.txt"):
        with suppress(OSError):
            texts.append((folder / name).read_text(errors="replace"))
    return framework.counters(*texts) if len(texts) == 2 else None


def _answers(framework: Framework, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, page in enumerate(framework.pages):
        with suppress(OSError, ValueError):
            found[page] = json.loads((folder / f"{number}.json").read_bytes())
    return found


def _places(folder: Path, job: Path) -> Iterator[tuple[str, Path]]:
    yield "aiperf", folder
    yield "srt", job
    if logs := worker_logs(job):
        yield "server-log", logs[0]


def ended(attempt: Attempt, scheduler_id: str, node: str) -> Attempt:
    """Return an attempt as it ended now, with what the scheduler told of it."""
    known = {"scheduler_id": scheduler_id, "node": node}
    told = {name: text for name, text in known.items() if text}
    return replace(attempt, ended_s=time.time(), **told)  # type: ignore[arg-type]
