"""Why a job waits: to wait, to warn of, or hopeless. Tables of Slurm's pending reasons.

From Slurm's job_reason_codes and the limits' documentation (22.05 to 25.11). The line between
``wait`` and ``hopeless`` is whose limit it is: one on a job by itself (PerJob, PerNode, Min) never
lets it start, one on what a user, an account, a QOS or an association uses together does when
other jobs end. A reason that infx does not know waits and says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

__all__ = ["Pending", "pending"]

Kind = Literal["wait", "warn", "hopeless"]


@dataclass(frozen=True, slots=True)
class Pending:
    """``hopeless``: never starts unless someone changes it; ``warn``: a person may be needed."""

    kind: Kind
    sentence: str

    @property
    def code(self) -> str:
        """The code of a job that will never start, "" while there is hope."""
        return "never-scheduled" if self.kind == "hopeless" else ""


_WAIT = {
    "None": "the scheduler has not looked at it yet",
    "Priority": "jobs of higher priority wait before it",
    "Resources": "waits for free resources",
    "BeginTime": "its begin time has not come (a requeued job waits two minutes)",
    "Dependency": "waits for another job",
    "JobArrayTaskLimit": "the array runs as many tasks at once as its throttle allows",
    "Licenses": "waits for a licence",
    "Reservation": "waits for its reservation to begin",
    "Prolog": "the prolog of the cluster still runs",
    "Cleaning": "its earlier run is still cleaned up",
    "SchedDefer": "the scheduler deferred it",
    "Constraints": "no node meets its constraints just now",
    "FedJobLock": "waits for the clusters of the federation",
    "BurstBufferResources": "waits for burst buffer space",
    "BurstBufferStageIn": "its burst buffer is being filled",
    "PowerNotAvail": "waits for power",
    "PowerReserved": "waits for power that is reserved",
    "MaxPoweredUpNodes": "as many nodes are powered up as the cluster allows",
    "AssocMaxJobsLimit": "your association runs as many jobs as it may",
    "AssocMaxSubmitJobLimit": "your association has submitted as many jobs as it may",
    "AssociationJobLimit": "your association runs as many jobs as it may",
    "AssociationResourceLimit": "your association uses as much as it may",
    "QOSJobLimit": "the QOS runs as many jobs as it may",
    "QOSResourceLimit": "the QOS uses as much as it may",
}
_WARN = {
    "AccountingPolicy": "a limit of the accounting policy that Slurm does not name",
    "AssociationTimeLimit": "your association has used the time that it may",
    "BurstBufferOperation": "a burst buffer operation failed",
    "FrontEndDown": "no front end node is up",
    "JobHeldAdmin": "held by an administrator, who alone can release it",
    "JobHeldUser": "held: scontrol release lets it go",
    "NodeDown": "a node that it needs is down",
    "PartitionConfig": "the partition's configuration does not allow it now",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition is inactive",
    "QOSTimeLimit": "the QOS has used the time that it may",
    "QOSUsageThreshold": "the account's usage is over the QOS's threshold",
    "ReqNodeNotAvail": "a node that it needs is not available",
    "SystemFailure": "Slurm itself or its file system failed",
}
_HOPELESS = {
    "AccountNotAllowed": "the account may not use the partition",
    "BadConstraints": "no node can meet its constraints",
    "DeadLine": "it cannot end before its deadline",
    "DependencyNeverSatisfied": "the job that it depends on did not end as it must",
    "InvalidAccount": "the account is not valid",
    "InvalidQOS": "the QOS is not valid",
    "JobHoldMaxRequeue": "held, since it was requeued too often",
    "MaxMemPerLimit": "it asks for more memory per CPU or node than is allowed",
    "PartitionNodeLimit": "it asks for a number of nodes that the partition does not allow",
    "PartitionTimeLimit": "its time limit is over the partition's",
    "QOSNotAllowed": "the QOS may not be used in the partition",
    "ReservationDeleted": "its reservation was deleted",
    "ReservationInvalid": "its reservation is not valid",
}
# Slurm's free text, in place of a reason. scontrol writes it with underscores.
_TEXTS: tuple[tuple[str, Kind, str], ...] = (
    (
        "launch failed requeued held",
        "hopeless",
        "its launch failed, and Slurm requeued and held it",
    ),
    ("job requeued in held state", "hopeless", "requeued and held: it starts only when released"),
    (
        "job requeued in special exit state",
        "hopeless",
        "requeued and held after an exit code that the cluster treats so",
    ),
    (
        "Nodes required for job are DOWN, DRAINED or reserved",
        "warn",
        "nodes that it needs are down, drained or reserved for partitions of higher priority",
    ),
)
_NODES: tuple[tuple[str, Kind, str], ...] = (
    ("Reserved for maintenance", "warn", "its nodes are reserved for maintenance before it ends"),
    ("May be reserved for other job", "wait", "its nodes may be reserved for another job"),
    ("UnavailableNodes", "warn", "nodes that it could use are down, drained or reserved"),
)
# Families that Slurm spells for each resource (Cpu, Mem, GRES, Node, Billing, …); first match.
_FAMILIES: tuple[tuple[re.Pattern[str], Kind, str], ...] = (
    (
        re.compile(r"(Assoc|QOS)Max\w+Per(Job|Node)(Limit)?"),
        "hopeless",
        "it asks for more than one job may have",
    ),
    (re.compile(r"QOSMin\w+"), "hopeless", "it asks for less than the QOS wants a job to have"),
    (
        re.compile(r"(QOSMax\w+PerUser(Limit)?|(QOS)?Max\w+PerAccount)"),
        "wait",
        "you or your account use as much as the QOS allows",
    ),
    (
        re.compile(r"(Assoc|QOS)Grp\w*RunMinutes(Limit)?"),
        "wait",
        "the jobs that run have claimed the minutes that may be claimed at once",
    ),
    (
        re.compile(r"(Assoc|QOS)Grp(\w*Minutes|Wall)(Limit)?"),
        "warn",
        "the budget of time is used up; it starts when usage decays or the budget is raised",
    ),
    (re.compile(r"(Assoc|QOS)Grp\w+"), "wait", "the group uses as much as it may together"),
)


def pending(reason: str) -> Pending:
    """Return what a pending reason of squeue, sacct or scontrol means, with Slurm's own text."""
    text = reason.strip().strip("()").strip() or "None"
    plain = text.replace("_", " ")
    for start, kind, sentence in _TEXTS:
        if plain.lower().startswith(start.lower()):
            return _say(kind, sentence, text)
    word = re.split(r"[,(\s]", text, maxsplit=1)[0]
    if word == "ReqNodeNotAvail":
        return _nodes(plain, text)
    return _by_word(word, text)


def _nodes(plain: str, text: str) -> Pending:
    for part, kind, sentence in _NODES:
        if part in plain:
            return _say(kind, sentence, text)
    return _say("warn", _WARN["ReqNodeNotAvail"], text)


def _by_word(word: str, text: str) -> Pending:
    for kind, table in _TABLES:
        if word in table:
            return _say(kind, table[word], text)
    for pattern, kind, sentence in _FAMILIES:
        if pattern.fullmatch(word):
            return _say(kind, sentence, text)
    return _say("wait", "a reason that infx does not know", text)


_TABLES: tuple[tuple[Kind, dict[str, str]], ...] = (
    ("wait", _WAIT),
    ("warn", _WARN),
    ("hopeless", _HOPELESS),
)


def _say(kind: Kind, sentence: str, text: str) -> Pending:
    return Pending(kind, f"{sentence} ({text})")
