"""The job: serve, probe, measure, evaluate, record. One server, its points one after another."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from infx import frameworks
from infx.domain.errors import EngineError, InfraError, InfxError
from infx.domain.findings import Finding
from infx.domain.point import Point
from infx.domain.record import Attempt, PointRecord, Provenance, Score
from infx.domain.status import Status
from infx.frameworks.base import Framework
from infx.job import client, provenance
from infx.job.agreement import check_acceptance, option_differences
from infx.job.counters import Scraper
from infx.job.events import Events
from infx.job.prompt_file import write_prompts
from infx.job.readiness import wait_ready
from infx.job.record import fresh_folder, write_record, writing
from infx.job.server import LOG, Server
from infx.job.signals import Stopped, uninterrupted
from infx.job.spec import JobSpec

__all__ = ["Evaluate", "Job"]


class Evaluate(Protocol):
    """Scores a point against a server's base URL, with its evidence in ``folder``."""

    def __call__(
        self,
        point: Point,
        base_url: str,
        folder: Path,
        *,
        limit_s: float,
        watch: Callable[[int, int], None],
    ) -> Score:
        """Return the score. ``watch`` is told the answers so far, and may raise."""


@dataclass(slots=True)
class _Work:
    """A point's record as it grows."""

    record: PointRecord
    folder: Path
    phases_s: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase, whether it ends well or not."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.phases_s[name] = round(time.monotonic() - started, 3)


class Job:
    """One attempt of a job. `run` leaves a point.json for every point, whatever happens."""

    def __init__(
        self,
        spec: JobSpec,
        folder: Path,
        *,
        evaluate: Evaluate,
        find: Callable[[str], Framework] = frameworks.get,
    ) -> None:
        """``folder`` is the attempt's own; ``find`` gives an engine by its name."""
        self._spec, self._folder, self._evaluate, self._find = spec, folder, evaluate, find
        self._events = Events(folder)
        self._provenance = Provenance()
        self._left = {point.point_id: point for point in spec.job.points}
        self._started_s = time.time()
        self._start_s = 0.0
        self._tokenizer = ""
        self._open: _Work | None = None

    def run(self) -> None:
        """Measure every point. Raises Stopped after writing what is left as cancelled or too late,
        InfraError when results cannot be written."""
        self._events.tell("job-started")
        try:
            with writing(self._folder):
                self._run()
        except Stopped as stop:
            self.close(stop.status)
            raise
        except InfraError as error:
            self._events.tell("job-ended", status=f"failed:{error.code}", sentence=str(error))
            raise
        self._events.tell("job-ended")

    def _run(self) -> None:
        try:
            framework = self._find(self._spec.job.arm.framework)
            self._refuse(framework)
            with self._serving(framework) as server:
                for point in self._spec.job.points:
                    self._measure(point, server)
        except InfraError:
            raise
        except InfxError as error:
            self.close(_failed(error))

    def close(self, status: Status) -> None:
        """Write what is left with ``status``; its evidence stays where it is."""
        for point in list(self._left.values()):
            work = self._open if self._open and self._open.record.point == point else None
            self._finish(work or self._untouched(point), status)

    def _refuse(self, framework: Framework) -> None:
        for refusal in framework.refusals(self._spec.job.arm):
            raise EngineError(refusal.code, refusal.sentence)

    @contextmanager
    def _serving(self, framework: Framework) -> Iterator[Server]:
        arm, spec = self._spec.job.arm, self._spec
        self._provenance = provenance.collect(self._folder, env=arm.env)
        self._events.tell("server-starting")
        server = Server(framework, arm, self._folder, host=spec.host, port=spec.port)
        try:
            server.start(os.environ)
            self._start_s = wait_ready(server, arm.start_limit_s)
            resolved = framework.resolved(server.answers())
            argv = server.launch.argv
            self._provenance = replace(self._provenance, server_argv=argv, server=dict(resolved))
            self._events.tell("server-ready")
            yield server
        finally:
            server.stop()

    # One point

    def _measure(self, point: Point, server: Server) -> None:
        work = self._begin(point)
        try:
            server.check("server-died")
            check_acceptance(point, server.framework.acceptance(server.answers()))
            if point.mode == "evaluation":
                self._score(work, server)
            else:
                self._time(work, server)
            status = Status("measured")
        except InfraError:
            raise
        except InfxError as error:
            status = _failed(error)
        except (ConnectionError, TimeoutError) as error:
            status = _failed(_silent(server, error))
        self._finish(work, status)

    def _begin(self, point: Point) -> _Work:
        folder = fresh_folder(self._folder / "points" / point.label)
        self._events.tell("point-started", point=point.label)
        attempt = self._attempt(time.time())
        record = replace(
            self._untouched(point).record, attempt=attempt, findings=self._differences()
        )
        self._open = _Work(record, folder, {"server-start": round(self._start_s, 3)})
        return self._open

    def _time(self, work: _Work, server: Server) -> None:
        point = work.record.point
        scraper = Scraper(server, work.folder)
        tokenizer = self._own_tokenizer(server)
        self._events.tell("phase", point=point.label, phase="aiperf")
        artifacts = work.folder / "aiperf"
        prompts = write_prompts(point, tokenizer, work.folder)
        words = client.arguments(point, server.site.url, tokenizer, prompts, artifacts)
        self._add(work, "aiperf", artifacts, ("aiperf", *words))
        scraper.begin()
        with work.phase("client"):
            client.measure(
                words,
                server,
                scraper,
                tokenizer=tokenizer,
                artifacts=artifacts,
                version=point.harness.aiperf,
                limit_s=self._spec.limit_s(point),
            )
        work.record = replace(work.record, counters=scraper.end())

    def _score(self, work: _Work, server: Server) -> None:
        point = work.record.point
        self._events.tell("phase", point=point.label, phase="lm-eval")
        self._add(work, "lm-eval", work.folder / "lm-eval", ())
        log_start = server.log_bytes
        with work.phase("evaluation"):
            score = self._evaluate(
                point,
                server.site.url,
                work.folder / "lm-eval",
                limit_s=self._spec.limit_s(point),
                watch=lambda _answered, _of: server.check("server-died", log_start),
            )
        work.record = replace(work.record, score=score)

    def _own_tokenizer(self, server: Server) -> str:
        if not self._tokenizer:
            folder = self._folder / "tokenizer"
            self._tokenizer = server.framework.tokenizer(server.arm, folder)
        return self._tokenizer

    def _add(self, work: _Work, name: str, folder: Path, argv: tuple[str, ...]) -> None:
        made = replace(self._provenance, client_argv=argv)
        artifacts = {**work.record.artifacts, name: self._relative(folder)}
        work.record = replace(work.record, provenance=made, artifacts=artifacts)

    def _finish(self, work: _Work, status: Status) -> None:
        attempt = replace(work.record.attempt, ended_s=time.time())
        work.record = replace(
            work.record, status=status, attempt=attempt, phases_s=dict(work.phases_s)
        )
        point = work.record.point
        with uninterrupted():
            write_record(work.record, work.folder)
            del self._left[point.point_id]
        self._events.tell(
            "point-ended", point=point.label, status=str(status), sentence=status.sentence or None
        )

    def _untouched(self, point: Point) -> _Work:
        record = PointRecord(
            point=point,
            status=Status("running"),
            attempt=self._attempt(self._started_s),
            provenance=self._provenance,
            artifacts={"server-log": self._relative(self._folder / LOG)},
        )
        return _Work(record, self._folder / "points" / point.label)

    def _attempt(self, started_s: float) -> Attempt:
        spec = self._spec
        return Attempt(
            run_id=spec.run_id,
            job_id=spec.job.job_id,
            number=spec.attempt,
            unique_name=spec.unique_name,
            scheduler_id=spec.scheduler_id,
            started_s=started_s,
        )

    def _differences(self) -> tuple[Finding, ...]:
        return option_differences(self._spec.job.arm, self._provenance.server)

    def _relative(self, path: Path) -> str:
        return os.path.relpath(path, self._spec.run_dir)


def _failed(error: InfxError) -> Status:
    return Status("failed", error.code, str(error))


def _silent(server: Server, error: OSError) -> InfxError:
    """A page that does not answer: the server is dying or stuck."""
    try:
        server.check("server-died")
    except EngineError as died:
        return died
    return EngineError("server-hung", f"the server does not answer: {error}")
