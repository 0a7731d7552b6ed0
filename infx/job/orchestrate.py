"""The job: serve, probe, measure, evaluate, record. One server, its points one after another."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from infx import frameworks
from infx.domain.errors import EngineError, InfraError, InfxError
from infx.domain.findings import Finding
from infx.domain.point import Agentic, Point
from infx.domain.record import Attempt, PointRecord, Provenance, Score
from infx.domain.status import Status
from infx.frameworks.base import Framework
from infx.job import client, provenance
from infx.job.agreement import check_acceptance, logged_faults, option_differences
from infx.job.allocation import allocation
from infx.job.container import Wrapping, wrapping
from infx.job.counters import Scraper
from infx.job.events import Events
from infx.job.ports import free_port
from infx.job.power import sampled
from infx.job.prompt_file import write_prompts
from infx.job.readiness import wait_ready
from infx.job.record import fresh_folder, write_record, writing
from infx.job.server import LOG, Server
from infx.job.sessions import checked_trace
from infx.job.signals import Stopped, settled, uninterrupted
from infx.job.spec import JobSpec
from infx.job.work import Work

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


class Job:
    """One attempt of a job. `run` leaves a point.json for every point, whatever happens.

    ``statuses`` maps the label of each point with a record to its status.
    """

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
        self.allocation = allocation(os.environ, spec.scheduler_id)
        self.statuses: dict[str, str] = {}
        self._events = Events(folder)
        self._provenance = Provenance()
        self._arm = spec.site.placed(spec.job.arm)
        self._left = {point.point_id: point for point in spec.job.points}
        self._started_s = time.time()
        self._start_s = 0.0
        self._tokenizer = ""
        self._open: Work | None = None
        self._wrapping = Wrapping()

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
            with settled(), self._serving(framework) as server:
                self._measure_all(server)
        except InfraError:
            raise
        except InfxError as error:
            self.close(_failed(error))

    def _measure_all(self, server: Server) -> None:
        try:
            for point in self._spec.job.points:
                self._measure(point, server)
                if self._left:
                    server.check("server-died")
        except Stopped as stop:
            self.close(stop.status)  # before the server ends: whoever stops us may lose patience
            raise

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
        arm, spec = self._arm, self._spec
        self._provenance = provenance.collect(self._folder, env=arm.env, allocated=self.allocation)
        prefix = self._wrap()
        self._events.tell("server-starting")
        port = free_port(spec.host, spec.unique_name, spec.port)
        server = Server(framework, arm, self._folder, host=spec.host, port=port, prefix=prefix)
        try:
            server.start(os.environ)
            self._start_s = wait_ready(server, arm.start_limit_s)
            resolved = framework.resolved(server.answers())
            argv = server.argv
            self._provenance = replace(self._provenance, server_argv=argv, server=dict(resolved))
            self._events.tell("server-ready")
            yield server
        finally:
            server.stop()

    def _wrap(self) -> tuple[str, ...]:
        """Return the words before the server's command: none without a container."""

        def tell(phase: str) -> None:
            self._events.tell("phase", phase=phase)

        spec = self._spec
        self._wrapping = wrapping(
            self._arm,
            spec.site.container,
            folder=self._folder,
            step=f"{spec.unique_name}-server",
            tell=tell,
        )
        return self._wrapping.words

    # One point

    def _measure(self, point: Point, server: Server) -> None:
        work = self._begin(point)
        with ExitStack() as sampling:  # ends after the record: a TERM meanwhile takes nothing back
            self._finish(work, self._filled(work, server, sampling))

    def _filled(self, work: Work, server: Server, sampling: ExitStack) -> Status:
        """Return the status of the point after all was done to fill its record."""
        try:
            with settled():
                self._fill(work, server, sampling)
        except InfraError:
            raise
        except InfxError as error:
            return _failed(error)
        except (ConnectionError, TimeoutError) as error:
            return _failed(_silent(server, error))
        return Status("measured")

    def _fill(self, work: Work, server: Server, sampling: ExitStack) -> None:
        point = work.record.point
        server.check("server-died")
        framework = server.framework
        check_acceptance(point, framework.acceptance(server.answers()), framework.laws)
        if point.mode == "evaluation":
            self._score(work, server)
        else:
            self._time(work, server, sampling)
        faults = logged_faults(server.launch, server.log)
        work.record = replace(work.record, findings=(*work.record.findings, *faults))

    def _begin(self, point: Point) -> Work:
        folder = fresh_folder(self._folder / "points" / point.label)
        self._events.tell("point-started", point=point.label)
        attempt = self._attempt(time.time())
        findings = (*self._wrapping.remarks, *self._differences())
        record = replace(self._untouched(point).record, attempt=attempt, findings=findings)
        self._open = Work(record, folder, {"server-start": round(self._start_s, 3)})
        return self._open

    def _time(self, work: Work, server: Server, sampling: ExitStack) -> None:
        point = work.record.point
        scraper = Scraper(server, work.folder)
        tokenizer = self._own_tokenizer(server)
        self._events.tell("phase", point=point.label, phase="aiperf")
        artifacts = work.folder / "aiperf"
        prompts = _prompts(point, tokenizer, work.folder)
        words = client.arguments(point, server.site.url, tokenizer, prompts, artifacts)
        self._add(work, "aiperf", artifacts, ("aiperf", *words))
        scraper.begin()
        self._sample(work, sampling)
        with work.phase("client"):
            client.measure(
                words,
                server,
                scraper,
                load=point.workload,
                tokenizer=tokenizer,
                artifacts=artifacts,
                version=point.harness.aiperf,
                limit_s=self._spec.limit_s(point),
            )
        work.record = replace(work.record, counters=scraper.end())

    def _sample(self, work: Work, sampling: ExitStack) -> None:
        log = sampling.enter_context(sampled(self._arm, self._folder, os.environ))
        if log:
            artifacts = {**work.record.artifacts, "power": self._relative(log)}
            work.record = replace(work.record, artifacts=artifacts)

    def _score(self, work: Work, server: Server) -> None:
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

    def _add(self, work: Work, name: str, folder: Path, argv: tuple[str, ...]) -> None:
        made = replace(self._provenance, client_argv=argv)
        artifacts = {**work.record.artifacts, name: self._relative(folder)}
        work.record = replace(work.record, provenance=made, artifacts=artifacts)

    def _finish(self, work: Work, status: Status) -> None:
        attempt = replace(work.record.attempt, ended_s=time.time())
        work.record = replace(
            work.record, status=status, attempt=attempt, phases_s=dict(work.phases_s)
        )
        point = work.record.point
        with uninterrupted():
            write_record(work.record, work.folder)
            del self._left[point.point_id]
            self.statuses[point.label] = str(status)
        self._events.tell(
            "point-ended", point=point.label, status=str(status), sentence=status.sentence or None
        )

    def _untouched(self, point: Point) -> Work:
        record = PointRecord(
            point=point,
            status=Status("running"),
            attempt=self._attempt(self._started_s),
            provenance=self._provenance,
            findings=self._wrapping.remarks,
            artifacts={"server-log": self._relative(self._folder / LOG)},
        )
        return Work(record, self._folder / "points" / point.label)

    def _attempt(self, started_s: float) -> Attempt:
        spec = self._spec
        return Attempt(
            run_id=spec.run_id,
            job_id=spec.job.job_id,
            number=spec.attempt,
            unique_name=spec.unique_name,
            scheduler_id=self.allocation.scheduler_id,
            started_s=started_s,
            node=self.allocation.node,
            batch=spec.batch,
            task=spec.task,
            repeat=spec.job.repeat,
        )

    def _differences(self) -> tuple[Finding, ...]:
        return option_differences(self._spec.job.arm, self._provenance.server)

    def _relative(self, path: Path) -> str:
        return os.path.relpath(path, self._spec.run_dir)


def _prompts(point: Point, tokenizer: str, folder: Path) -> Path:
    """Return what the client sends: a local trace, unchanged, or a file of prompts written here."""
    if isinstance(point.workload, Agentic):
        return checked_trace(point.workload)
    return write_prompts(point, tokenizer, folder)


def _failed(error: InfxError) -> Status:
    return Status("failed", error.code, str(error))


def _silent(server: Server, error: OSError) -> InfxError:
    """A page that does not answer: the server is dying or stuck."""
    try:
        server.check("server-died")
    except EngineError as died:
        return died
    return EngineError("server-hung", f"the server does not answer: {error}")
