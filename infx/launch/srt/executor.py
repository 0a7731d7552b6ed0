"""Jobs that srt-slurm runs: submitted by srtctl, followed by Slurm's own commands by name.

The intent and the job's name are in the store before `srtctl apply` runs; the name is the recipe's,
so Slurm knows the job by it: one that was accepted unseen is found again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from infx.config.sites import Cluster
from infx.domain.errors import InfraError, UsageError
from infx.domain.plan import Job
from infx.frameworks.srt import expressible
from infx.job.spec import JobSpec
from infx.launch.executor import JobState, Order
from infx.launch.policy import Policy
from infx.launch.slurm import facts
from infx.launch.slurm.cancel import Cancels, Hopeless
from infx.launch.slurm.queue import Row
from infx.launch.slurm.states import phase
from infx.launch.slurm.watch import Pace, Silence, key_of, look
from infx.launch.srt import apply, outputs, records
from infx.launch.srt.apply import Given
from infx.launch.srt.outputs import Outputs
from infx.launch.srt.recipes import given_of, recipe_of
from infx.launch.srt.verdict import Left, Sight, final, is_gone, state_of
from infx.launch.transport import Transport

__all__ = ["SrtExecutor"]

UNKNOWN = JobState(phase="unknown")

HELD_BACK_S = (15.0, 240.0)
"""After a limit refused a job nothing is offered for so long, twice as long each time."""


class SrtExecutor:
    """Runs each job's throughput points as one srt job; what else it holds is refused."""

    tick_s = 1.0
    durable = True

    def __init__(
        self,
        cluster: Cluster,
        transport: Transport,
        *,
        pace: Pace | None = None,
        patience_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``patience_s`` is how long an end that only one side tells is waited for."""
        assert cluster.srt  # the reader of the file sees to it
        self.name, self._cluster, self._site = cluster.name, cluster, cluster.srt
        self.policy = Policy(retries=cluster.srt.retries)
        self._transport, self._outputs = transport, Outputs(transport, cluster.srt.folder)
        self._pace, self._patience_s, self._clock = pace or Pace(), patience_s, clock
        self._states: dict[str, JobState] = {}
        self._held: Sequence[Order] = ()
        self._differs: dict[str, float] = {}
        self._late: dict[str, float] = {}
        self._told: list[str] = []
        self._cancels = Cancels(transport, self._told.append)
        self._hopeless = Hopeless(self._cancels)
        self._silence = Silence(self.name, self._told.append)
        self._until, self._wait_s = float("-inf"), HELD_BACK_S[0]
        self._accounting: bool | None = None

    # Before a run

    def check(self, jobs: Sequence[Job]) -> None:
        """Ask srtctl and Slurm what they are, and srtctl what it says of a recipe of each kind.

        Raises UsageError ``srtctl-old``, ``srt-unsupported``, ``srt-refused``; InfraError
        ``srtctl-missing``, ``slurm-missing``, ``scheduler-down`` and what the transport raises.
        """
        self._refuse_groups(jobs)
        apply.check_version(self._transport, self._site, self.name)
        self._accounting = facts.ask(self._transport, self.name).config.accounting
        able = [job for job in jobs if expressible(job.points)]
        made = [recipe_of(job, self._cluster, "infx-test") for job in able]
        faults = [f.sentence for r in made for f in r.findings if f.level == "error"]
        if faults or not able:
            told = "; ".join(dict.fromkeys(faults)) or "the plan has no throughput point"
            raise UsageError("srt-unsupported", f"{self._where()}: {told}")
        kinds = {(job.arm.framework, job.arm.recipe): job for job in able}
        for job in kinds.values():
            given = given_of(job, self._cluster, "infx-test")
            said, warnings = apply.dry_run(self._transport, self._site, given)
            if said:
                raise UsageError("srt-refused", f"{self._where()}: srtctl says: {said}")
            self._told += [f"srtctl: {warning}" for warning in warnings]

    def _refuse_groups(self, jobs: Sequence[Job]) -> None:
        if any(job.group for job in jobs):
            text = "arms cannot take turns: srt-slurm gives each of them an allocation of its own"
            hint = "measure them apart, as often as needed: --repeats N without --interleave"
            raise UsageError("srt-unsupported", f"{self._where()}: {text}", hint=hint)

    def scripts(self, orders: Sequence[Order]) -> list[str]:
        """Return the exact recipes of ``orders``."""
        return [self._given(order).text for order in orders if expressible(order.job.points)]

    # Submit

    def arrange(self, orders: Sequence[Order], held: Collection[Order]) -> list[Order]:
        """Return those that fit beside the held ones, none while srt's Slurm is held back from."""
        if self._clock() < self._until:
            return []
        most = self._site.jobs_at_once
        chosen = orders[: max(0, most - len(held))] if most else orders
        return [replace(o, attempt=replace(o.attempt, batch=o.name)) for o in chosen]

    def placed(self, spec: JobSpec) -> JobSpec:
        """Return it: no job of infx reads it."""
        return spec

    def submit(self, orders: Sequence[Order]) -> Mapping[str, str]:
        """Submit each with a call of its own; after one that is held back the rest waits."""
        accepted: dict[str, str] = {}
        for order in orders:
            told = self._submit(order)
            if told is None:
                return accepted
            accepted[order.name] = told
        self._wait_s = HELD_BACK_S[0]
        return accepted

    def _submit(self, order: Order) -> str | None:
        """Return the id, "" where nobody knows it, None when it was surely not accepted."""
        self._pace.hurry()
        if not expressible(order.job.points):
            self._end(order, "srt-unsupported", records.UNSUPPORTED)
            return ""
        given = self._given(order)
        try:
            self._outputs.bring(order, given.text)
        except InfraError as error:
            if not self._transport.host:
                raise
            self._hold_back(f"its recipe cannot be brought there: {error}")
            return None
        told = apply.applied(self._transport, self._script(order, given))
        refusal = told.refusal
        if refusal and refusal.kind in ("limit", "down"):
            self._hold_back(refusal.sentence)
            return None
        if refusal and refusal.kind == "config":
            self._end(order, refusal.code, refusal.sentence)
        elif len(told.job_ids) > 1:
            self._too_many(order, told.job_ids)
        elif not told.job_ids:
            why = refusal.sentence if refusal else "srtctl gave no id of a job"
            self._told.append(f"looking for {order.name}: {why}")
        return told.job_ids[0] if told.job_ids else ""

    def _script(self, order: Order, given: Given) -> str:
        there = self._outputs.there(order)
        output = f"{there}/{outputs.OUTPUT}"
        file, name = outputs.RECIPE, order.name
        return apply.apply_script(
            self._site, given, folder=there, file=file, output=output, name=name
        )

    def _too_many(self, order: Order, job_ids: Sequence[str]) -> None:
        """A recipe of infx is one job; what srtctl made of it otherwise measures none of ours."""
        self._cancels.send([order], self._held, at_once=True)
        self._end(order, "srt-refused", f"srtctl made jobs {', '.join(job_ids)} of one recipe")

    def _hold_back(self, sentence: str) -> None:
        self._told.append(f"not accepted yet: {sentence}; once more in {self._wait_s:.0f} s")
        self._until = self._clock() + self._wait_s
        self._wait_s = min(self._wait_s * 2, HELD_BACK_S[1])

    def _end(self, order: Order, code: str, sentence: str) -> None:
        self._states[order.name] = JobState(phase="ended", code=code, sentence=sentence)

    # Follow

    def poll(self, orders: Sequence[Order]) -> Mapping[str, JobState]:
        """Return where each is, as of the last time that Slurm was asked and answered."""
        self._held = orders
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
        found = {order.name: self._seen(order, rows.get(key_of(order))) for order in orders}
        self._pace.asked(changed=any(self._states.get(n) != s for n, s in found.items()))
        self._states |= found
        self._cancels.again(self._held)

    def _seen(self, order: Order, row: Row | None) -> JobState:
        """Return where an attempt is; the records of one that ended are written."""
        alive = row is not None and not is_gone(row) and phase(row.state) != "ended"
        if alive or self._fetched(order):
            state = self._settled(order, state_of(self._sight(order, row, alive), self._patience_s))
            return self._gathered(order, state) if state.phase == "ended" else state
        return self._states.get(order.name, UNKNOWN)

    def _sight(self, order: Order, row: Row | None, alive: bool) -> Sight:
        job = None if alive else outputs.job_folder(order)
        if alive or (job and not is_gone(row)):
            self._differs.pop(order.name, None)
            return Sight(row=row, outputs=job is not None)
        since_s = self._differs.setdefault(order.name, self._clock())
        quiet = job is None or outputs.quiet_s(job) > self._patience_s
        differs_s = self._clock() - since_s
        return Sight(row=row, outputs=job is not None, differs_s=differs_s, quiet=quiet)

    def _settled(self, order: Order, state: JobState) -> JobState:
        """End what can never start; make sure that what is given up does not go on unseen."""
        state = self._hopeless.settled(order, state)
        if state.phase == "ended" and state.void:
            self._cancels.want(order)
            return state if self._given_up(order) else replace(state, phase="suspect", void=False)
        return state

    def _gathered(self, order: Order, state: JobState) -> JobState:
        job = outputs.job_folder(order)
        if state.void or (job is None and state.code):
            return state
        left = None
        if job:
            attempt = records.ended(order.attempt, state.scheduler_id, state.node)
            measured = records.gather(order, job, attempt)
            records.refuse(order, attempt)
            client, line = (job / outputs.BENCHMARK_LOG).is_file(), outputs.useful_line(job)
            points = len(expressible(order.job.points))
            left = Left(points=points, measured=len(measured), client=client, line=line)
        code, sentence, remark = final(state, left)
        if code == "srt-no-export" and self._may_come(order):
            return replace(state, phase="suspect", sentence=sentence)
        if code == "job-lost":  # Slurm may have forgotten a job that goes on
            self._cancels.want(order)
        return replace(state, code=code, sentence=sentence, remark=remark)

    def _may_come(self, order: Order) -> bool:
        """Return whether exports of a job that succeeded may still show on a shared disk."""
        since_s = self._late.setdefault(order.name, self._clock())
        return self._clock() - since_s < self._patience_s

    def _fetched(self, order: Order) -> bool:
        try:
            self._outputs.fetch(order)
        except InfraError as error:
            self._told.append(f"the outputs of {order.name} cannot be fetched: {error}")
            return False
        return True

    def _given_up(self, order: Order) -> bool:
        try:
            return self._outputs.give_up(order)
        except InfraError as error:
            self._told.append(f"{order.name} cannot be given up yet: {error}")
            return False

    def _has_accounting(self) -> bool:
        if self._accounting is None:
            try:
                self._accounting = facts.ask(self._transport, self.name).config.accounting
            except InfraError:
                return False
        return self._accounting

    # Stop

    def cancel(self, orders: Sequence[Order], *, at_once: bool = False) -> None:
        """Cancel jobs as Slurm does: srt's own job stops its steps on that TERM and keeps what it
        wrote, so there is no gentler way."""
        self._cancels.send(orders, self._held, at_once=True)
        self._pace.hurry()

    def notices(self) -> list[str]:
        """Return what was not told yet."""
        told = list(self._told)
        self._told.clear()
        return told

    def close(self) -> None:
        """Let go of the transport; the jobs go on."""
        self._transport.close()

    def _given(self, order: Order) -> Given:
        return given_of(order.job, self._cluster, order.name)

    def _where(self) -> str:
        return f"{self._cluster.where}: cluster {self.name!r}"
