"""Which ended attempt is tried again: only what the machine failed, and not for ever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from infx.domain.outcome import Ending, Outcome

__all__ = ["RETRIED", "Decision", "Policy", "bad_nodes", "decide", "repeats"]

RETRIED = frozenset({"infra", "void"})
"""Outcomes that may be followed by a new attempt without being asked."""

RECURRING = frozenset({"preempted"})
"""Ends that say nothing of the job, however often they come."""

MOST_VOIDS = 10
"""A job that was submitted so often and never started: something swallows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """New attempts after failures of the machine: of one job, and of a whole run.

    A node that failed ``per_node`` attempts of a run gets no more of them. ``voids`` is how often a
    job may be submitted and not start; None where only the end of its driver does that.
    """

    retries: int = 2
    per_node: int = 2
    per_run: int = 20
    voids: int | None = MOST_VOIDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """``again`` on any node but ``exclude``; ``why`` says it to people."""

    again: bool
    why: str = ""
    exclude: tuple[str, ...] = ()


def decide(job: Sequence[Ending], run: Sequence[Ending], policy: Policy) -> Decision:
    """Return what follows the last of a job's endings, given all endings of its run."""
    last = job[-1]
    if last.outcome not in RETRIED:
        return Decision(again=False)
    void = last.outcome == "void"
    if why := _hopeless_void(job, policy) if void else _hopeless(job, run, policy):
        return Decision(again=False, why=why)
    return Decision(again=True, why=last.sentence, exclude=bad_nodes(job, run, policy))


def _hopeless_void(job: Sequence[Ending], policy: Policy) -> str:
    voids = _count(job, "void")
    hopeless = policy.voids is not None and voids >= policy.voids
    return f"{job[-1].sentence}, {voids} times" if hopeless else ""


def _hopeless(job: Sequence[Ending], run: Sequence[Ending], policy: Policy) -> str:
    if repeats(job):
        return "it failed twice in the same way"
    if _count(job, "infra") > policy.retries:
        return f"{policy.retries} new attempts are the limit of a job"
    if _count(run, "infra") > policy.per_run:
        return f"{policy.per_run} new attempts are the limit of a run"
    return ""


def _count(endings: Sequence[Ending], outcome: Outcome) -> int:
    return sum(ending.outcome == outcome for ending in endings)


def repeats(job: Sequence[Ending]) -> bool:
    """Return True when a job's last two ends (void ones aside) have the same cause."""
    told = [ending for ending in job if ending.outcome != "void"]
    if len(told) < 2 or told[-1].code in RECURRING:
        return False
    return bool(told[-1].fingerprint) and told[-1].fingerprint == told[-2].fingerprint


def bad_nodes(job: Sequence[Ending], run: Sequence[Ending], policy: Policy) -> tuple[str, ...]:
    """Return the nodes that failed this job, and those that failed many others."""
    blamed = Counter(ending.node for ending in run if _blames_node(ending))
    own = {ending.node for ending in job if _blames_node(ending)}
    return tuple(sorted(own | {node for node, n in blamed.items() if n >= policy.per_node}))


def _blames_node(ending: Ending) -> bool:
    return bool(ending.node) and ending.outcome == "infra" and ending.code not in RECURRING
