"""The loop: submit, poll, follow, gather what ended, tell the observer; until all is measured."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from infx.domain.plan import Job, Plan
from infx.domain.record import Attempt
from infx.domain.serial import encode
from infx.job.spec import JobSpec
from infx.launch.board import Board
from infx.launch.collect import collect, ending_in
from infx.launch.events import FILE as EVENTS
from infx.launch.events import Tail
from infx.launch.executor import Executor, JobState, Order
from infx.launch.fanout import Fanout
from infx.launch.runs import check_space, to_measure
from infx.launch.stop import SIGNALS, Stop
from infx.launch.waiting import Waiting
from infx.store import Judge, RunRow, Store, attempt_dir, kept, writing
from infx.store.layout import SPEC

__all__ = ["Asked", "Observer", "Sweep"]


class Observer(Protocol):
    """Shows a run to people."""

    def notice(self, sentence: str) -> None:
        """Something changed."""

    def draw(self, board: Board) -> None:
        """Called a few times a second with the state as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How a run is driven.

    ``retry_failed`` measures failed and invalid points again; ``time_limit_s`` those that passed a
    smaller limit; ``canary`` and ``fail_fast`` as in `Fanout`; ``cancel`` stops what is open and
    launches nothing.

    A scheduler's jobs are let go at ``until_s`` (seconds since the epoch), what may go being
    submitted first. Who only ``waits`` goes on with a drive that was let go: what that gave up
    stays so, and whatever signal comes only lets go again.
    """

    retry_failed: bool = False
    time_limit_s: int = 0
    canary: bool = False
    fail_fast: bool = False
    cancel: bool = False
    until_s: float = float("inf")
    waits: bool = False


@dataclass(slots=True)
class _Held:
    """An open attempt: the order, its events, and where it was when it was last polled."""

    order: Order
    tail: Tail
    state: JobState | None = None


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
        asked: Asked = Asked(),
    ) -> None:
        self._store, self._run, self._plan, self._asked = store, run, plan, asked
        self._executor, self._judge, self._observer = executor, judge, observer
        self._dir = Path(run.folder)
        self._jobs = {job.job_id: job for job in plan.jobs}
        chosen = frozenset(plan.canaries)
        fanout = Fanout(canary=asked.canary, fail_fast=asked.fail_fast, chosen=chosen)
        self._waiting = Waiting(store, run.run_id, plan, executor.policy, fanout)
        self._board = Board.of(run.run_id, plan, self._waiting.statuses())
        self._open: dict[str, _Held] = {}
        self._cancelled = False
        self._reasons: set[str] = set()

    def run(self) -> bool:
        """Measure what is left. Return True when all was tried, False when it was stopped before.

        A first request to stop cancels open jobs and waits for their evidence, a second kills
        them; a hang-up lets a scheduler's jobs go on: the run's state stays ``running`` then.
        Raises InfraError when nothing can go on.
        """
        self._want()
        self._adopt()
        if self._run.state == "ended" and not self._unfinished:
            self._executor.close()
            return True  # it keeps the time at which it ended
        self._store.set_state(self._run.run_id, "running")
        with self._listening() as stop:
            stop.forget()
            try:
                self._loop(stop)
            except KeyboardInterrupt:
                self._kill()
            finally:
                self._executor.close()
            if stop.detached and self._unfinished and not self._cancelled:
                self._tell_let_go()
                return False
        self._store.set_state(self._run.run_id, "cancelled" if self._cancelled else "ended")
        return not self._cancelled

    @property
    def _unfinished(self) -> bool:
        return bool(self._open or self._waiting.jobs)

    def _listening(self) -> Stop:
        if not self._executor.durable:
            return Stop(self._dir)
        letting_go = SIGNALS if self._asked.waits else (signal.SIGHUP,)
        return Stop(self._dir, letting_go=letting_go, until_s=self._asked.until_s)

    def _want(self) -> None:
        self._waiting.jobs = to_measure(
            self._plan,
            self._waiting.statuses(),
            retry_failed=self._asked.retry_failed,
            time_limit_s=self._asked.time_limit_s,
        )
        if self._asked.waits:
            self._waiting.go_on()
        for job in self._waiting.jobs.values():
            self._board.wanted(job.job_id, job.points)

    def _loop(self, stop: Stop) -> None:
        while self._open or (self._waiting.jobs and not self._cancelled):
            if (stop.requested or self._asked.cancel) and not self._cancelled:
                self._cancel()
            self._submit()
            self._follow()
            self._observer.draw(self._board)
            if self._unfinished:
                time.sleep(self._executor.tick_s)
            if stop.detached:
                return

    # Submit

    def _submit(self) -> None:
        self._leave_out()
        if self._cancelled or not self._waiting.jobs:
            return
        held = self._orders()
        ready = self._waiting.ready([order.job for order in held])
        orders = self._executor.arrange(self._next_orders(ready), held) if ready else []
        if not orders:
            return
        check_space(self._dir)
        self._store.intend([order.attempt for order in orders])
        with writing(self._dir):
            for order in orders:
                self._write(order)
        accepted = self._executor.submit(orders)
        self._store.withdraw([order.name for order in orders if order.name not in accepted])
        self._launched([order for order in orders if order.name in accepted], accepted)

    def _next_orders(self, jobs: Sequence[Job]) -> list[Order]:
        attempts = self._store.next_attempts(self._run.run_id, [job.job_id for job in jobs])
        excluded = self._waiting.excluded(jobs)
        return [self._order(*parts) for parts in zip(attempts, jobs, excluded, strict=True)]

    def _order(self, attempt: Attempt, job: Job, exclude: tuple[str, ...] = ()) -> Order:
        folder = attempt_dir(self._dir, job, attempt.number)
        return Order(attempt=attempt, job=job, folder=folder, exclude=exclude)

    def _write(self, order: Order) -> None:
        """Make the attempt's folder; one of an order that was withdrawn is used again."""
        order.folder.parent.mkdir(exist_ok=True)
        order.folder.mkdir(exist_ok=True)
        spec = JobSpec(
            run_id=self._run.run_id,
            run_dir=str(self._dir),
            job=order.job,
            attempt=order.attempt.number,
            unique_name=order.name,
            batch=order.attempt.batch,
            task=order.attempt.task,
        )
        (order.folder / SPEC).write_bytes(encode(self._executor.placed(spec)))

    def _launched(self, orders: Sequence[Order], ids: Mapping[str, str]) -> None:
        now_s = time.time()
        self._store.launched({order.name: ids[order.name] for order in orders})
        for order in orders:
            attempt = replace(order.attempt, scheduler_id=ids[order.name], started_s=now_s)
            self._hold(replace(order, attempt=attempt))
            self._waiting.launched(attempt.job_id)
            how = (
                f"submitted as {attempt.scheduler_id or 'unknown'}" if attempt.batch else "launched"
            )
            self._tell(self._board.launched(attempt.job_id, attempt.number, now_s, how))

    def _hold(self, order: Order) -> None:
        self._open[order.name] = _Held(order, Tail(order.folder / EVENTS))

    def _adopt(self) -> None:
        statuses = self._waiting.statuses()
        attempts = self._store.attempts(self._run.run_id, open_only=True)
        for attempt in (a for a in attempts if a.unique_name not in self._open):
            job = self._jobs[attempt.job_id]
            left = tuple(p for p in job.points if not kept(statuses[job.job_id, p.point_id]))
            order = self._order(attempt, replace(job, points=left or job.points))
            self._hold(replace(order, adopted=True))
            self._waiting.adopted(attempt.job_id)
            number, since_s = attempt.number, attempt.started_s
            self._tell(self._board.launched(attempt.job_id, number, since_s, "followed again"))

    # Follow

    def _follow(self) -> None:
        orders = self._orders()
        states = self._executor.poll(orders) if orders else {}
        for sentence in self._executor.notices():
            self._tell(sentence)
        for order in orders:
            self._see(self._open[order.name], states[order.name])
        self._tell_queue()

    def _tell_queue(self) -> None:
        """Say why jobs wait, once for all of them, when there is a new reason."""
        queued = self._board.queued
        if queued.keys() - self._reasons:
            told = "; ".join(f"{n} queued: {why}" for why, n in queued.items())
            self._tell(told)
        self._reasons = set(queued)

    def _see(self, held: _Held, state: JobState) -> None:
        order = held.order
        if state.scheduler_id and not order.attempt.scheduler_id:
            self._store.launched({order.name: state.scheduler_id})
            attempt = replace(order.attempt, scheduler_id=state.scheduler_id)
            held.order = order = replace(order, attempt=attempt)
        if state.phase != "queued":
            self._read(held)
        if state.phase == "ended":
            self._end(order, state)
        elif state.phase != "unknown":
            if state != held.state:
                self._tell(self._board.polled(order.attempt.job_id, state.phase, state.sentence))
            held.state = state

    def _read(self, held: _Held) -> None:
        for event in held.tail.read():
            self._tell(self._board.event(held.order.attempt.job_id, event))

    def _end(self, order: Order, state: JobState) -> None:
        self._read(self._open.pop(order.name))  # what it wrote between the last look and its end
        given_up = self._given_up(order)
        if order.adopted and self._run.state == "cancelled" and state.code == "cancelled-outside":
            # Killed by the cancelled drive that did not wait for its end.
            state = replace(state, code="", void=True, sentence="the run was cancelled before")
        records = collect(order, state, self._dir, self._judge, cancelled=given_up)
        ending = ending_in(order, state, records)
        self._store.end_attempt(order.name, records, ending)
        job_id = order.attempt.job_id
        for sentence in self._board.ended(job_id, records):
            self._tell(sentence)
        job, why = (None, "") if given_up else self._waiting.again(order, records, ending)
        self._tell(why)
        if job:
            self._board.wanted(job_id, job.points)
            return
        if state.void and not given_up:  # it never starts, however often it is submitted
            lost = replace(state, void=False, code="job-lost")
            records = collect(order, lost, self._dir, self._judge, cancelled=False)
            for record in records:
                self._store.save(record)
        self._waiting.over(job_id, [record.status for record in records])

    # Stop

    def _given_up(self, order: Order) -> bool:
        return self._cancelled or self._waiting.stopped(order.job)

    def _leave_out(self) -> None:
        """Skip the waiting jobs of entries that were stopped, and end those that are open."""
        for job_id, records in self._waiting.leave_out():
            for sentence in self._board.ended(job_id, records):
                self._tell(sentence)
        going = [order for order in self._orders() if self._waiting.stopped(order.job)]
        self._stop([o for o in going if not self._board.is_stopping(o.attempt.job_id)])

    def _cancel(self) -> None:
        self._cancelled = True
        self._tell("stopping: running jobs end and keep their evidence; once more kills them")
        self._stop(self._orders())

    def _stop(self, orders: Sequence[Order]) -> None:
        if not orders:
            return
        self._executor.cancel(orders)
        for order in orders:
            self._board.stopping(order.attempt.job_id)

    def _kill(self) -> None:
        self._cancelled = True
        self._adopt()  # a submit that was interrupted may have come through
        orders = self._orders()
        self._executor.cancel(orders, at_once=True)
        if not self._executor.durable:  # a scheduler's job ends later: infx resume gathers it
            for order in orders:
                self._end(order, JobState(phase="ended"))

    def _tell_let_go(self) -> None:
        """What was not accepted yet, or comes after a canary, waits for the next drive."""
        left = f"{len(self._waiting.jobs)} not submitted yet" if self._waiting.jobs else ""
        told = ", ".join(filter(None, ["the jobs go on" if self._open else "", left]))
        self._tell(f"let go: {told}; infx resume {self._run.run_id} follows them")

    def _orders(self) -> list[Order]:
        return [held.order for held in self._open.values()]

    def _tell(self, sentence: str) -> None:
        if sentence:
            self._observer.notice(sentence)
