"""The state of a run as people watch it: one line a job, fed by events, drawn by someone else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from infx.domain.plan import Job, Plan, marked
from infx.domain.point import Point
from infx.domain.record import PointRecord
from infx.domain.status import Status
from infx.launch.events import Event
from infx.launch.timing import Timing
from infx.store.kept import kept
from infx.store.rows import PointKey

__all__ = ["Board", "JobLine"]

JobPhase = Literal["waiting", "queued", "running", "suspect", "stopping", "ended"]


@dataclass(slots=True)
class JobLine:
    """One job. ``left`` are the labels of points still to be measured, ``told`` those whose end
    the job itself has told already; times are epoch seconds."""

    job: Job
    left: set[str]
    told: set[str] = field(default_factory=set)
    state: JobPhase = "waiting"
    attempt: int = 0
    phase: str = ""
    why: str = ""
    point: str = ""
    verdict: str = ""
    ready: bool = False
    over: bool = False
    launched_s: float = 0.0
    phase_s: float = 0.0
    point_s: float = 0.0
    expected_s: float | None = None

    @property
    def in_queue(self) -> bool:
        """True when a scheduler has said that it waits, and why."""
        return self.state == "queued" and bool(self.why)

    @property
    def busy(self) -> bool:
        """True while its job works: it does not wait in a queue, nor has it told its end (of an
        attempt that took its turn the scheduler tells it later)."""
        return not self.in_queue and not self.over

    @property
    def done(self) -> int:
        """Points that have a result."""
        return len(self.job.points) - len(self.left)


@dataclass(slots=True)
class Board:
    """All jobs of a run. Methods that change it return sentences for people who read lines."""

    run_id: str
    lines: dict[str, JobLine]
    timing: Timing = field(default_factory=Timing)

    @classmethod
    def of(cls, run_id: str, plan: Plan, statuses: Mapping[PointKey, Status]) -> Board:
        """Return the board of a run of which ``statuses`` are known."""
        lines = {}
        for job in plan.jobs:
            left = {p.label for p in job.points if not kept(statuses[job.job_id, p.point_id])}
            lines[job.job_id] = JobLine(job, left, state="waiting" if left else "ended")
        return cls(run_id, lines)

    @property
    def points(self) -> tuple[int, int]:
        """Points that have a result, and all points."""
        lines = self.lines.values()
        return sum(line.done for line in lines), sum(len(line.job.points) for line in lines)

    @property
    def active(self) -> list[JobLine]:
        """The jobs that an executor holds."""
        states = ("queued", "running", "suspect", "stopping")
        return [line for line in self.lines.values() if line.state in states]

    @property
    def waiting(self) -> list[JobLine]:
        """The jobs that no executor holds yet."""
        return [line for line in self.lines.values() if line.state == "waiting"]

    def wanted(self, job_id: str, points: Collection[Point]) -> None:
        """Say that these points of a job are to be measured (again)."""
        line = self.lines[job_id]
        line.left |= {point.label for point in points}
        line.state = "waiting"

    def launched(self, job_id: str, attempt: int, now_s: float, how: str = "launched") -> str:
        """The executor accepted an attempt; ``how`` is its word for that."""
        line = self.lines[job_id]
        line.state, line.attempt, line.ready = "queued", attempt, False
        line.over = False
        line.launched_s = line.phase_s = now_s
        line.phase, line.point, line.verdict, line.why = "launching", "", "", ""
        line.told.clear()
        line.expected_s = self.timing.start_s(line.job)
        again = f", attempt {attempt}" if attempt > 1 else ""
        points = "1 point" if len(line.left) == 1 else f"{len(line.left)} points"
        return f"{line.job.name}: {how}, {points} to measure{again}"

    def event(self, job_id: str, event: Event) -> str:
        """Take one event; the sentence is empty where it changes nothing worth a line."""
        line = self.lines[job_id]
        if line.state == "queued":
            line.state = "running"
        return _HANDLERS[event.event](self, line, event) if event.event in _HANDLERS else ""

    def polled(self, job_id: str, state: JobPhase, why: str) -> str:
        """The executor said where the job is and why; its own events say the rest."""
        line = self.lines[job_id]
        if line.state == "stopping":
            return ""
        changed = (line.state, line.why) != (state, why)
        line.state, line.why = state, why
        return f"{line.job.name}: {state}: {why}" if changed and state == "suspect" else ""

    @property
    def all_told(self) -> bool:
        """Return True when every job that an executor holds has told that it ended."""
        return all(line.over for line in self.active)

    @property
    def queued(self) -> dict[str, int]:
        """Return how many jobs wait in a scheduler's queue, by why."""
        return Counter(line.why for line in self.lines.values() if line.in_queue)

    def stopping(self, job_id: str) -> None:
        """The executor was asked to stop the job."""
        self.lines[job_id].state = "stopping"

    def is_stopping(self, job_id: str) -> bool:
        """Return True when the executor was asked to stop the job."""
        return self.lines[job_id].state == "stopping"

    def ended(self, job_id: str, records: Sequence[PointRecord]) -> list[str]:
        """The attempt is over with these records."""
        line = self.lines[job_id]
        line.left -= {record.point.label for record in records if kept(record.status)}
        line.state, line.phase, line.point, line.expected_s = "ended", "", "", None
        line.verdict = _summary(records)
        return [_verdict(record) for record in records if record.point.label not in line.told]

    def left_s(self, now_s: float) -> float:
        """Return the expected seconds until everything is measured, as many jobs at a time as run
        now (one when none does)."""
        going = [line for line in self.active if line.busy]
        later = [*self.waiting, *(line for line in self.active if line.in_queue)]
        later_s = sum(self.timing.start_s(line.job) + self._points_s(line) for line in later)
        going_s = sum(self._active_s(line, now_s) for line in going)
        return (later_s + going_s) / max(1, len(going))

    def _active_s(self, line: JobLine, now_s: float) -> float:
        """What takes longer than expected takes no time from what comes after it."""
        if not line.ready:
            current_s, since_s = self.timing.start_s(line.job), line.launched_s
        elif point := _point(line):
            current_s, since_s = self.timing.point_s(point), line.point_s
        else:
            current_s, since_s = 0.0, now_s
        later_s = self._points_s(line) - (current_s if line.ready else 0.0)
        return later_s + max(0.0, current_s - (now_s - since_s))

    def _points_s(self, line: JobLine) -> float:
        return sum(self.timing.point_s(p) for p in line.job.points if p.label in line.left)

    def _job_started(self, line: JobLine, event: Event) -> str:
        """What it waited in a queue is no part of its start."""
        line.launched_s = event.t
        _enter(line, "starting", event)
        return ""

    def _starting(self, line: JobLine, event: Event) -> str:
        _enter(line, "starting the server", event)
        line.expected_s = event.expected_s or self.timing.start_s(line.job)
        return f"{line.job.name}: starting the server"

    def _ready(self, line: JobLine, event: Event) -> str:
        line.ready = True
        self.timing.started(line.job, event.t - line.launched_s)
        _enter(line, "server ready", event)
        return f"{line.job.name}: server ready after {event.t - line.launched_s:.0f} s"

    def _point_started(self, line: JobLine, event: Event) -> str:
        line.point, line.point_s = event.point or "", event.t
        _enter(line, "measuring", event)
        point = _point(line)
        line.expected_s = event.expected_s or (self.timing.point_s(point) if point else None)
        expected = f", about {line.expected_s:.0f} s" if line.expected_s else ""
        return f"{_name(line)}: measuring{expected}"

    def _phase(self, line: JobLine, event: Event) -> str:
        _enter(line, event.phase or "", event)
        if event.expected_s:
            line.expected_s = event.expected_s
        return ""

    def _point_ended(self, line: JobLine, event: Event) -> str:
        point = _point(line)
        line.verdict = _verdict_text(event)
        if event.status != "measured":
            line.told.add(event.point or "")
        elif point:
            self.timing.measured(point, event.t - line.point_s)
        name = _name(line)
        took = f" after {event.t - line.point_s:.0f} s" if line.point == event.point else ""
        why = f": {event.sentence}" if event.sentence else ""
        if event.status != "cancelled":
            line.left.discard(event.point or "")
        line.point, line.expected_s = "", None
        _enter(line, "", event)
        return f"{name}: {event.status}{took}{why}"

    def _job_ended(self, line: JobLine, event: Event) -> str:
        line.over = True
        return ""


_HANDLERS = {
    "job-started": Board._job_started,
    "job-ended": Board._job_ended,
    "server-starting": Board._starting,
    "server-ready": Board._ready,
    "point-started": Board._point_started,
    "phase": Board._phase,
    "point-ended": Board._point_ended,
}


def _enter(line: JobLine, phase: str, event: Event) -> None:
    line.phase, line.phase_s = phase, event.t


def _point(line: JobLine) -> Point | None:
    return next((p for p in line.job.points if p.label == line.point), None)


def _name(line: JobLine) -> str:
    point = _point(line)
    return marked(point.name, line.job.repeat) if point else line.job.name


def _verdict_text(event: Event) -> str:
    return f"{event.status}: {event.sentence}" if event.sentence else event.status or ""


def _verdict(record: PointRecord) -> str:
    status = record.status
    tail = f": {status.sentence}" if status.sentence and status.state != "ok" else ""
    return f"{marked(record.point.name, record.attempt.repeat)}: {status}{tail}"


def _summary(records: Sequence[PointRecord]) -> str:
    bad = [record.status for record in records if record.status.state != "ok"]
    return str(bad[-1]) if bad else "ok"
