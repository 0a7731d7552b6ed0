"""Jobs on a cluster, through Slurm's own commands; they go on without infx."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from infx.config.sites import Cluster
from infx.domain.errors import InfraError, UsageError
from infx.domain.plan import Job
from infx.job.spec import JobSpec, Site
from infx.launch.executor import JobState, Order
from infx.launch.policy import Policy
from infx.launch.prepare import prepared_python
from infx.launch.slurm import evidence, facts, submission
from infx.launch.slurm.backlog import Backlog
from infx.launch.slurm.batch import Batch, Shape, unit_shape
from infx.launch.slurm.cancel import Cancels, Hopeless
from infx.launch.slurm.evidence import Files, run_dir_of
from infx.launch.slurm.queue import Row
from infx.launch.slurm.script import Places, render
from infx.launch.slurm.submit import Refusal
from infx.launch.slurm.verdict import alive, state_of
from infx.launch.slurm.watch import Key, Pace, Silence, key_of, look
from infx.launch.transport import Transport

__all__ = ["SlurmExecutor"]

UNKNOWN = JobState(phase="unknown")


class SlurmExecutor:
    """Submits, follows and cancels by name. Whatever a command says or does not say, only a row of
    Slurm and the job's own record together end an attempt (see `verdict`)."""

    tick_s = 1.0
    durable = True

    def __init__(
        self,
        cluster: Cluster,
        transport: Transport,
        *,
        python: str = "",
        pace: Pace | None = None,
        patience_s: float = 60.0,
    ) -> None:
        """``python`` is the interpreter on the nodes ("": the prepared one, else what the site
        says, else this one); ``patience_s`` how long an end that only one side tells is waited
        for."""
        assert cluster.slurm  # the reader of the file sees to it
        self.name, self._cluster, self._site = cluster.name, cluster, cluster.slurm
        self.policy = Policy(retries=cluster.slurm.retries)
        self._transport, self._python = transport, python
        self._files = Files(transport, cluster.slurm.folder)
        self._backlog = Backlog(cluster, cluster.slurm)
        self._pace, self._patience_s = pace or Pace(), patience_s
        self._facts: facts.Facts | None = None
        self._states: dict[str, JobState] = {}
        self._batches: dict[str, Batch] = {}
        self._held: Sequence[Order] = ()
        self._differs: dict[str, float] = {}
        self._told: list[str] = []
        self._cancels = Cancels(transport, self._told.append)
        self._hopeless = Hopeless(self._cancels)
        self._silence = Silence(self.name, self._told.append)

    # Before a run

    def check(self, jobs: Sequence[Job]) -> None:
        """Ask the cluster what it is and what it would say to the plan's jobs.

        Raises UsageError ``cluster-refuses``, InfraError ``scheduler-down``, ``slurm-missing`` and
        what the transport raises.
        """
        found = self._ask()
        shapes = self._shapes(jobs)
        facts.check_shapes(found, self._cluster, shapes)
        for shape in shapes:
            self._try(found, shape, len(jobs))

    def _shapes(self, jobs: Sequence[Job]) -> list[Shape]:
        """Return what the jobs need, those of a group together."""
        gpus, longest_s = self._cluster.gpus_per_node > 0, self._backlog.longest_s
        found: dict[str, list[Job]] = {}
        for job in jobs:
            found.setdefault(job.unit, []).append(job)
        shapes = [unit_shape(unit, gpus=gpus, longest_s=longest_s) for unit in found.values()]
        return list(dict.fromkeys(shapes))

    def _try(self, found: facts.Facts, shape: Shape, jobs: int) -> None:
        script = self._script(Batch(name="infx-test", shape=shape, orders=()), "/tmp")
        facts.check_size(found, self._cluster, len(script.encode()))
        refusal = submission.test_only(self._transport, script)
        hard = refusal and refusal.kind == "config"
        if refusal and hard and not facts.passes(found, self._cluster, refusal.sentence):
            where = f"{self._cluster.where}: cluster {self.name!r}"
            raise UsageError("cluster-refuses", f"{where}: {refusal.sentence}")

    def scripts(self, orders: Sequence[Order]) -> list[str]:
        """Return the exact scripts of ``orders``. Only the interpreter of a prepared cluster has
        to be asked for; raises UsageError ``not-prepared`` and what the transport raises."""
        there = self._files.there(run_dir_of(orders[0]))
        parts = self._backlog.cut(orders, self._site.jobs_at_once)
        return [self._script(batch, there) for batch in parts]

    # Submit

    def arrange(self, orders: Sequence[Order], held: Collection[Order]) -> list[Order]:
        """Return orders up to the limits of the queue, told their batches."""
        chosen = self._backlog.fitting([self._servable(order) for order in orders], held)
        self._batches = {batch.name: batch for batch in chosen}
        return [order for batch in chosen for order in batch.numbered()]

    def _servable(self, order: Order) -> Order:
        """Return it without its exclusions where they leave no node to run on."""
        if order.exclude and self._facts and not self._facts.leaves_any(self._site, order.exclude):
            return replace(order, exclude=())
        return order

    def placed(self, spec: JobSpec) -> JobSpec:
        """Return the spec with paths as they are there, and what the site knows."""
        limits = self._cluster.limits
        site = Site(
            models=self._site.models,
            container=self._site.container,
            start_limit_s=limits.start,
            point_limit_s=limits.point,
        )
        return replace(spec, run_dir=self._files.there(Path(spec.run_dir)), site=site)

    def submit(self, orders: Sequence[Order]) -> Mapping[str, str]:
        """Write the batches' files, bring them there and submit them in few calls."""
        run_dir = run_dir_of(orders[0])
        there = self._files.there(run_dir)
        for batch in self._batches.values():
            submission.write_batch(batch, run_dir, self._script(batch, there))
        try:
            self._files.bring(orders)
        except InfraError as error:
            self._wait(f"the jobs' files cannot be brought to {self._transport.host}: {error}")
            return {}
        told = submission.submit(self._transport, list(self._batches), there)
        accepted: dict[str, str] = {}
        refused: list[tuple[Refusal, Batch]] = []
        for batch in self._batches.values():
            answer = told[batch.name]
            if answer.refusal and answer.refusal.kind in ("limit", "down"):
                refused.append((answer.refusal, batch))
            else:
                accepted |= self._take(batch, answer)
        if refused:
            self._hold_back(*refused[0])
        return accepted

    def _take(self, batch: Batch, answer: submission.Submitted) -> dict[str, str]:
        self._pace.hurry()
        refusal = answer.refusal
        if refusal and refusal.kind == "config":
            ended = JobState(phase="ended", code=refusal.code, sentence=refusal.sentence)
            self._states |= {order.name: ended for order in batch.orders}
        elif refusal:
            self._told.append(f"looking for {batch.name}: {refusal.sentence}")
        elif answer.job_id:
            self._backlog.accepted()
        return {order.name: batch.task_id(answer.job_id, n) for n, order in enumerate(batch.orders)}

    def _hold_back(self, refusal: Refusal, batch: Batch) -> None:
        too_many = batch.jobs if refusal.kind == "limit" else 0
        self._wait(f"not accepted yet: {refusal.sentence}", too_many)

    def _wait(self, sentence: str, too_many: int = 0) -> None:
        self._told.append(f"{sentence}; once more in {self._backlog.hold(too_many):.0f} s")

    # Follow

    def poll(self, orders: Sequence[Order]) -> Mapping[str, JobState]:
        """Return where each is, as of the last time that Slurm was asked and answered."""
        self._held = orders
        running = (o for o in orders if self._states.get(o.name, UNKNOWN).phase == "running")
        if any(evidence.has_result(order) for order in running):
            self._pace.hurry()
        going = [o for o in orders if self._states.get(o.name, UNKNOWN).phase != "ended"]
        if going and self._pace.due():
            self._look(going)
        return {order.name: self._states.get(order.name, UNKNOWN) for order in orders}

    def _look(self, orders: Sequence[Order]) -> None:
        rows = look(self._transport, orders, accounting=self._has_accounting())
        self._silence.heard(rows)
        if rows is None:
            self._pace.asked(changed=False)
            return
        known = self._with_files(orders, rows)
        found = {order.name: self._state(order, rows.get(key_of(order))) for order in known}
        self._pace.asked(changed=any(self._states.get(n) != s for n, s in found.items()))
        self._states |= found
        self._cancels.again(self._held)

    def _with_files(self, orders: Sequence[Order], rows: Mapping[Key, Row]) -> list[Order]:
        """Return the orders whose files are here as far as they are needed: of those that run what
        they say, of those that ended all, a few at a time."""
        going = [order for order in orders if alive(rows.get(key_of(order)))]
        ended = [order for order in orders if not alive(rows.get(key_of(order)))]
        if not self._fetched(going, whole=False):
            return []
        return going + [order for order in ended[: self._files.at_once] if self._fetched([order])]

    def _fetched(self, orders: Sequence[Order], *, whole: bool = True) -> bool:
        try:
            self._files.fetch(orders, orders if whole else ())
        except InfraError as error:
            self._told.append(f"the jobs' files cannot be fetched: {error}")
            return False
        return True

    def _state(self, order: Order, row: Row | None) -> JobState:
        sight = evidence.sight(order, row, self._patience_s, self._held)
        if not sight.one_sided:
            self._differs.pop(order.name, None)
            return self._settled(order, state_of(sight, self._patience_s))
        since = self._differs.setdefault(order.name, time.monotonic())
        sight = replace(sight, differs_s=time.monotonic() - since)
        return self._settled(order, state_of(sight, self._patience_s))

    def _settled(self, order: Order, state: JobState) -> JobState:
        """End what can never start; make sure that what is given up does not go on unseen."""
        state = self._hopeless.settled(order, state)
        if state.phase == "ended" and (state.void or state.code == "job-lost"):
            self._cancels.want(order)
            if state.void and not self._given_up(order):
                return replace(state, phase="suspect", void=False)
        return state

    def _given_up(self, order: Order) -> bool:
        try:
            return self._files.give_up(order)
        except InfraError as error:
            self._told.append(f"{order.name} cannot be given up yet: {error}")
            return False

    def _has_accounting(self) -> bool:
        try:
            return (self._facts or self._ask()).config.accounting
        except InfraError:
            return False

    def _ask(self) -> facts.Facts:
        self._facts = found = facts.ask(self._transport, self.name)
        self._backlog.largest_array = found.config.max_array_size
        self._backlog.longest_s = facts.longest_s(found, self._cluster)
        return found

    # Stop

    def cancel(self, orders: Sequence[Order], *, at_once: bool = False) -> None:
        """Ask jobs to end in order, or at once; see `Cancels.send`."""
        self._cancels.send(orders, self._held, at_once=at_once)
        self._pace.hurry()

    def notices(self) -> list[str]:
        """Return what was not told yet."""
        told = list(self._told)
        self._told.clear()
        return told

    def close(self) -> None:
        """Let go of the transport; the jobs go on."""
        self._transport.close()

    def _interpreter(self) -> str:
        """Return the interpreter on the nodes, which a site may have in a prepared bundle.

        Raises UsageError ``not-prepared``.
        """
        if not self._python and self._site.folder:
            self._python = prepared_python(self._transport, self._site.folder) or ""
        if not self._python:
            self._python = self._site.python or ("" if self._transport.host else sys.executable)
        if not self._python:
            message = f"cluster {self.name!r} has no interpreter for infx's jobs"
            hint = f"run infx cluster prepare {self.name}, or set `python` in its entry"
            raise UsageError("not-prepared", message, hint=hint)
        return self._python

    def _script(self, batch: Batch, run_dir: str) -> str:
        folder = submission.batch_dir(run_dir, batch.name)
        places = Places(run_dir=run_dir, folder=folder, python=self._interpreter())
        return render(batch, self._cluster, places, today=date.today().isoformat())
