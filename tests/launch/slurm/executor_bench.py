"""A Slurm executor on a cluster whose answers are played, its clock and its attempts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from infx.job.result import Result, write_result
from infx.launch.executor import JobState, Order
from infx.launch.slurm.executor import SlurmExecutor
from infx.launch.slurm.watch import Pace
from tests.launch.slurm.played import Clock, Played, cluster, facts_text, queued
from tests.launch.slurm.sample_batches import batch
from tests.launch.slurm.test_batch import grouped

IN_ORDER = ("--state=PENDING", "--state=RUNNING --batch --signal=TERM")
"""How parts of an array are told to stop."""


def ids(script: str) -> str:
    """Accept every batch of a call: 100, 101, …"""
    names = re.findall(r"^submit (\S+) ", script, re.MULTILINE)
    return "".join(f"{name}|0|{100 + n}|\n" for n, name in enumerate(names))


def refuse(err: str) -> Any:
    def answer(script: str) -> str:
        names = re.findall(r"^submit (\S+) ", script, re.MULTILINE)
        return "".join(f"{name}|1||{err}\n" for name in names)

    return answer


class Bench:
    """An executor, its clock, and the attempts of a run below a folder."""

    def __init__(self, folder: Path, host: str = "", patience_s: float = 0.0, **site: Any) -> None:
        self.clock = Clock()
        self.transport = Played(host, scontrol=facts_text(), squeue="")
        self.transport.answers["--parsable"] = ids
        reached = {"ssh": host, "folder": "/shared/infx/"} if host else {}
        self.executor = SlurmExecutor(
            cluster(gpus_per_node=0, **reached, **site),
            self.transport,
            python="/opt/py/bin/python",
            pace=Pace(clock=self.clock),
            patience_s=patience_s,
        )
        self.run_dir = folder / "runs" / "r1"
        self.open: list[Order] = []

    def submit(self, count: int = 1) -> dict[str, str]:
        """Submit new attempts; return the ids by name. What was accepted is open from then on."""
        offered = batch(count, run_dir=self.run_dir).orders
        orders = self.executor.arrange(offered, self.open)
        for order in orders:
            order.folder.mkdir(parents=True)
        told = self.executor.submit(orders)
        for order in orders:
            if order.name in told:
                known = replace(order.attempt, scheduler_id=told[order.name])
                self.open.append(replace(order, attempt=known))
        return dict(told)

    def submit_turns(self, count: int) -> dict[str, str]:
        """Submit a group of attempts that take turns in one job."""
        offered = grouped(batch(count, run_dir=self.run_dir).orders)
        orders = self.executor.arrange(offered, self.open)
        for order in orders:
            order.folder.mkdir(parents=True)
        told = dict(self.executor.submit(orders))
        self.open = [
            replace(o, attempt=replace(o.attempt, scheduler_id=told[o.name])) for o in orders
        ]
        return told

    def look(self) -> list[JobState]:
        """Poll when the next question may be asked; return the states in order."""
        self.clock.now_s += 100
        states = self.executor.poll(self.open)
        return [states[order.name] for order in self.open]

    def queue(self, *states: str, reason: str = "None") -> None:
        """What squeue says of the open attempts."""
        lines = [
            queued(order.attempt.scheduler_id, state, order.attempt.batch, reason)
            for order, state in zip(self.open, states, strict=True)
            if state
        ]
        self.transport.answers["squeue"] = "".join(lines)

    def cancels(self) -> list[str]:
        """The scancel lines that were run."""
        lines = "\n".join(self.transport.asked).splitlines()
        return [line for line in lines if line.startswith("scancel")]


def finish(order: Order) -> None:
    """Write the job's record into the attempt's folder."""
    result = Result(
        run_id="r1",
        job_id=order.job.job_id,
        attempt=1,
        unique_name=order.name,
        started_s=0,
        ended_s=1,
        status="ended",
    )
    write_result(result, order.folder)
