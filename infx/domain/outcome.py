"""How an attempt ended, as the one class that decides what happens next."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from infx.domain.codes import CODES
from infx.domain.identity import content_id
from infx.domain.point import short
from infx.domain.status import Status

__all__ = ["Ending", "Outcome", "ending_of", "outcome_of"]

Outcome = Literal[
    "ok",
    "infra",
    "config",
    "engine",
    "oom",
    "hang",
    "timeout",
    "accuracy",
    "harness",
    "cancelled",
    "void",
]
"""Only ``infra`` is tried again by itself. ``void`` was never run: as if it had not been."""

_FAMILIES: dict[str, Outcome] = {
    "config": "config",
    "plan": "config",
    "usage": "config",
    "infra": "infra",
    "engine": "engine",
    "invalid": "harness",
    "skipped": "cancelled",
}

_CODES: dict[str, Outcome] = {
    "out-of-memory": "oom",
    "too-little-memory": "oom",
    "server-exited": "engine",
    "server-died": "engine",
    "first-request": "engine",
    "server-hung": "hang",
    "client-hung": "hang",
    "evaluation-hung": "hang",
    "time-limit": "timeout",
    "cancelled-outside": "cancelled",
    "submit-refused": "config",
    "client-failed": "harness",
    "srt-no-export": "harness",
    "evaluation-failed": "harness",
    "internal": "harness",
    "wrong-server": "engine",
    "acceptance-off": "engine",
    "mono-coverage": "engine",
    "preemption-storm": "engine",
    "empty-answers": "accuracy",
    "config-differs": "config",
    "context-overflow": "config",
}
"""What differs from its family; every other ``failed`` code is the author's to mend."""


def outcome_of(status: Status) -> Outcome:
    """Return the class of a point's end; ``ok`` for one that is measured."""
    if status.state in ("ok", "measured"):
        return "ok"
    if status.state in ("cancelled", "skipped") or not status.code:
        return "cancelled"
    code = CODES.get(status.code)
    family = _FAMILIES.get(code.family, "config") if code else "harness"
    return _CODES.get(status.code, family)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What became of an attempt. ``fingerprint`` is equal for two ends of one cause: numbers,
    addresses and paths in the sentence do not count."""

    outcome: Outcome
    code: str = ""
    sentence: str = ""
    fingerprint: str = ""
    node: str = ""


def ending_of(statuses: Iterable[Status], node: str = "") -> Ending:
    """Return the ending of an attempt whose points ended so: that of its first bad point.

    A failure of the machine counts before the others: it is what kept points from being measured.
    """
    ends = [status for status in statuses if outcome_of(status) != "ok"]
    if not ends:
        return Ending(outcome="ok", node=node)
    bad = next((status for status in ends if outcome_of(status) == "infra"), ends[0])
    return Ending(
        outcome=outcome_of(bad),
        code=bad.code,
        sentence=bad.sentence,
        fingerprint=_fingerprint(bad),
        node=node,
    )


def _fingerprint(status: Status) -> str:
    cause = re.sub(r"/\S+|0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+(?:\.\d+)*", "#", status.sentence)
    return short(content_id([status.code, cause]))
