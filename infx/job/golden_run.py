"""A curve collected K by K: each value is kept at once, and none is measured twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import infx
from infx.domain.errors import MeasurementError
from infx.domain.point import Arm
from infx.frameworks.base import Framework
from infx.golden.curve import Curve, Made, Sampling, Source, Subject, Value
from infx.golden.estimate import Batch, Estimate, estimate
from infx.golden.prompts import Prompts
from infx.golden.text import golden_text, record_path
from infx.job import provenance
from infx.job.golden import check_thinking, measure
from infx.job.golden_server import Running, Told, inspect, serving
from infx.job.record import write_whole

__all__ = ["Asked", "Engines", "Launched", "Progress", "Standing", "collect", "save_curve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to measure: the pairs ``wanted`` of a thinking mode and a K.

    ``command`` and ``hardware`` go into the file as told (``hardware`` "": this machine's).
    ``again`` measures what is there, too.
    """

    wanted: tuple[tuple[str, int], ...]
    method: str
    sampling: Sampling
    prompts: Prompts
    source: Source = field(default_factory=Source)
    command: str = ""
    hardware: str = ""
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a collection is: ``phase`` is starting, measuring or measured; ``done`` of ``total``
    batches of this value, ``values`` of ``wanted`` values of all."""

    phase: str
    k: int
    thinking: str = ""
    done: int = 0
    total: int = 0
    values: int = 0
    wanted: int = 0
    estimate: Estimate | None = None


class Engines(Protocol):
    """Gives the server of a K."""

    def running(self, k: int) -> AbstractContextManager[Running]:
        """Return the server that makes ``k`` drafts; it may end with the context."""


@dataclass(frozen=True, slots=True)
class Launched:
    """Starts the engine of each arm; its log stays in ``folder``/kN."""

    framework: Framework
    arms: Mapping[int, Arm]
    folder: Path

    @contextmanager
    def running(self, k: int) -> Iterator[Running]:
        """Start the engine, and end it afterwards."""
        with serving(self.framework, self.arms[k], self.folder / f"k{k}") as server:
            yield server


@dataclass(frozen=True, slots=True)
class Standing:
    """A server that somebody else started: it has one K."""

    server: Running

    @contextmanager
    def running(self, k: int) -> Iterator[Running]:
        """Return it, whatever the K: `inspect` asks the server."""
        yield self.server


def collect(
    engines: Engines,
    asked: Asked,
    curve: Curve | None,
    save: Callable[[Curve], None],
    tell: Callable[[Progress], None],
) -> Curve:
    """Return ``curve`` with each asked value that it lacks; ``save`` gets it first and after each.

    Raises what `inspect`, `check_thinking`, `measure` and the server's start raise, and UsageError
    (``golden-settings``) when the curve is of another subject or sampling.
    """
    if curve is not None:
        joined = curve.joined(curve.subject, asked.sampling, asked.source)
        save(curve)  # a kill between its two files, or the loss of one, left them apart
        curve = joined
    work = _work(asked, curve)
    count = sum(map(len, work.values()))
    step = Progress(phase="starting", k=0, wanted=count)
    for k, modes in work.items():
        tell(replace(step, k=k))
        with engines.running(k) as running:
            told = inspect(running, k, asked.method)
            check_thinking(running, asked.sampling, modes)
            curve = _joined(curve, _subject(running, told), asked)
            for mode in modes:
                step = replace(step, phase="measuring", k=k, thinking=mode)
                value = _value(running, told, asked, step, tell)
                curve = curve.plus(mode, k, value)
                save(curve)
                step = replace(step, phase="measured", values=step.values + 1)
                tell(replace(step, estimate=value.estimate))
        step = Progress(phase="starting", k=0, wanted=count, values=step.values)
    if curve is None:
        raise MeasurementError("counters-missing", "nothing was asked: no K and no mode")
    return curve


def save_curve(curve: Curve, golden: Path) -> None:
    """Write the golden file and its record, each whole. Raises InfraError."""
    from infx.domain.serial import encode_pretty

    write_whole(record_path(golden), encode_pretty(curve).encode())
    write_whole(golden, golden_text(curve, golden.stem).encode())


def _work(asked: Asked, curve: Curve | None) -> dict[int, list[str]]:
    """Return the modes to measure of each K that has any."""
    todo: dict[int, list[str]] = {}
    for mode, k in asked.wanted:
        if asked.again or curve is None or not curve.has(mode, k):
            todo.setdefault(k, []).append(mode)
    return todo


def _joined(curve: Curve | None, subject: Subject, asked: Asked) -> Curve:
    if curve is None:
        return Curve(subject=subject, sampling=asked.sampling, source=asked.source)
    return curve.joined(subject, asked.sampling, asked.source)


def _subject(running: Running, told: Told) -> Subject:
    return Subject(
        framework=running.framework.name,
        model=running.model,
        method=told.method,
        weights=told.weights,
        weights_identity=told.weights_identity,
        computation=told.computation,
    )


def _value(
    running: Running, told: Told, asked: Asked, step: Progress, tell: Callable[[Progress], None]
) -> Value:
    total = -(-len(asked.prompts.chats) // asked.sampling.batch)

    def so_far(batches: Sequence[Batch]) -> None:
        steps = sum(batch.steps for batch in batches)
        now = estimate(batches) if steps else None
        tell(replace(step, done=len(batches), total=total, estimate=now))

    tell(replace(step, total=total))
    began_s = time.monotonic()
    batches = measure(running, asked.sampling, asked.prompts, step.thinking, so_far)
    wall_s = round(time.monotonic() - began_s, 1)
    return Value(batches=batches, made=_made(running, told, asked), wall_s=wall_s)


def _made(running: Running, told: Told, asked: Asked) -> Made:
    found = provenance.collect(Path(infx.__file__).parent)
    host = found.host
    here = ", ".join(host["gpus"]) or f"{host['cpu']}, {host['usable_cores']} cores"
    return Made(
        command=asked.command,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        engine=" ".join(filter(None, (running.framework.name, told.engine))),
        hardware=asked.hardware or (here if running.server else "hardware not told"),
        infx_version=found.infx_version,
        git_revision=found.git_revision,
        git_dirty=found.git_dirty,
    )
