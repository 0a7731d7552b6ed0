"""The loop: submit, poll, follow, gather what ended, tell the observer; until all is measured."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from infx.domain.plan import Job, Plan
from infx.domain.point import Point
from infx.domain.serial import encode
from infx.domain.status import Status
from infx.job.spec import JobSpec
from infx.launch.board import Board
from infx.launch.collect import collect
from infx.launch.events import FILE as EVENTS
from infx.launch.events import Tail
from infx.launch.executor import Executor, JobState, Order
from infx.launch.runs import check_space, to_measure
from infx.launch.stop import Stop
from infx.store import Judge, RunRow, Store, attempt_dir, writing

__all__ = ["Observer", "Sweep"]


class Observer(Protocol):
    """Shows a run to people."""

    def notice(self, sentence: str) -> None:
        """Something changed."""

    def draw(self, board: Board) -> None:
        """Called a few times a second with the state as it is."""


class Sweep:
    """Drives one run with one executor. The caller holds the run's lock.

    Attempts that an earlier driver launched and nobody saw end are adopted: followed to their end
    before their job is run again.
    """

    def __init__(
        self,
        store: Store,
        run: RunRow,
        plan: Plan,
        executor: Executor,
        judge: Judge,
        observer: Observer,
    ) -> None:
        self._store, self._run, self._plan = store, run, plan
        self._executor, self._judge, self._observer = executor, judge, observer
        self._dir = Path(run.folder)
        self._jobs = {job.job_id: job for job in plan.jobs}
        self._board = Board.of(run.run_id, plan, self._statuses())
        self._waiting: dict[str, tuple[Point, ...]] = {}
        self._open: dict[str, tuple[Order, Tail]] = {}
        self._cancelled = False

    def run(self, *, retry_failed: bool = False) -> bool:
        """Measure what is left. Return True when all was tried, False when it was cancelled.

        A first request to stop cancels open jobs and waits for their evidence, a second kills
        them. Raises InfraError when nothing can go on.
        """
        self._waiting = to_measure(self._plan, self._statuses(), retry_failed=retry_failed)
        for job_id, points in self._waiting.items():
            self._board.wanted(job_id, points)
        self._adopt()
        self._store.set_state(self._run.run_id, "running")
        with Stop(self._dir) as stop:
            try:
                self._loop(stop)
            except KeyboardInterrupt:
                self._kill()
            finally:
                self._executor.close()
        self._store.set_state(self._run.run_id, "cancelled" if self._cancelled else "ended")
        return not self._cancelled

    def _loop(self, stop: Stop) -> None:
        while self._open or (self._waiting and not self._cancelled):
            if stop.requested and not self._cancelled:
                self._cancel()
            self._submit()
            self._follow()
            self._observer.draw(self._board)
            if self._open:
                time.sleep(self._executor.tick_s)

    # Submit

    def _submit(self) -> None:
        room = self._executor.capacity - len(self._open)
        held = {order.attempt.job_id for order, _ in self._open.values()}
        ready = [job_id for job_id in self._waiting if job_id not in held][: max(0, room)]
        if self._cancelled or not ready:
            return
        check_space(self._dir)
        with writing(self._dir):
            orders = [self._order(self._jobs[job_id], self._waiting[job_id]) for job_id in ready]
        accepted = self._executor.submit(orders)
        for order in orders:
            if order.name in accepted:
                self._launched(order, accepted[order.name])

    def _order(self, job: Job, points: tuple[Point, ...]) -> Order:
        job = replace(job, points=points)
        attempt = self._store.intend(self._run.run_id, job.job_id)
        folder = attempt_dir(self._dir, job, attempt.number)
        folder.mkdir(parents=True)
        spec = JobSpec(
            run_id=self._run.run_id,
            run_dir=str(self._dir),
            job=job,
            attempt=attempt.number,
            unique_name=attempt.unique_name,
        )
        (folder / "job.json").write_bytes(encode(spec))
        return Order(attempt=attempt, job=job, folder=folder)

    def _launched(self, order: Order, scheduler_id: str) -> None:
        self._store.launched(order.name, scheduler_id)
        attempt = replace(order.attempt, scheduler_id=scheduler_id, started_s=time.time())
        self._hold(replace(order, attempt=attempt))
        del self._waiting[attempt.job_id]
        self._tell(self._board.launched(attempt.job_id, attempt.number, attempt.started_s))

    def _hold(self, order: Order) -> None:
        self._open[order.name] = (order, Tail(order.folder / EVENTS))

    def _adopt(self) -> None:
        for attempt in self._store.attempts(self._run.run_id, open_only=True):
            job = self._jobs[attempt.job_id]
            folder = attempt_dir(self._dir, job, attempt.number)
            self._hold(Order(attempt=attempt, job=job, folder=folder, adopted=True))

    # Follow

    def _follow(self) -> None:
        orders = [order for order, _ in self._open.values()]
        states = self._executor.poll(orders) if orders else {}
        for order in orders:
            self._read(order)
            if states[order.name].phase == "ended":
                self._end(order, states[order.name])

    def _read(self, order: Order) -> None:
        if order.adopted:
            return
        for event in self._open[order.name][1].read():
            self._tell(self._board.event(order.attempt.job_id, event))

    def _end(self, order: Order, state: JobState) -> None:
        self._read(order)  # what it wrote between the last look and its end
        records = collect(order, state, self._dir, self._judge, cancelled=self._cancelled)
        self._store.end_attempt(order.name, records)
        del self._open[order.name]
        if order.adopted:
            self._again(order.job)
            return
        for sentence in self._board.ended(order.attempt.job_id, records):
            self._tell(sentence)

    def _again(self, job: Job) -> None:
        left = to_measure(replace(self._plan, jobs=(job,)), self._statuses())
        self._waiting.pop(job.job_id, None)
        self._waiting |= left

    # Stop

    def _cancel(self) -> None:
        self._cancelled = True
        self._tell("stopping: the running job ends and keeps its evidence; once more kills it")
        orders = [order for order, _ in self._open.values()]
        self._executor.cancel(orders)
        for order in orders:
            if not order.adopted:
                self._board.stopping(order.attempt.job_id)

    def _kill(self) -> None:
        self._cancelled = True
        orders = [order for order, _ in self._open.values()]
        self._executor.cancel(orders, at_once=True)
        for order in orders:
            self._end(order, JobState("ended"))

    def _statuses(self) -> Mapping[str, Status]:
        return {row.point_id: row.status for row in self._store.points(self._run.run_id)}

    def _tell(self, sentence: str) -> None:
        if sentence:
            self._observer.notice(sentence)
