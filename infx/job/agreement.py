"""Does the running server do what the plan says? Asked of the server, never of the recipe."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from infx.domain.acceptance import Acceptance, Law
from infx.domain.errors import EngineError
from infx.domain.findings import Finding
from infx.domain.point import Arm, Point
from infx.frameworks.base import Launch
from infx.job.log_lines import line_with

__all__ = [
    "REAL_ACCEPTANCE",
    "check_acceptance",
    "logged_faults",
    "option_differences",
    "require_acceptance",
]

REAL_ACCEPTANCE = {"X-Infx-Require": "real-acceptance"}
"""Headers of an evaluation: infx's engine refuses such a request where acceptance is synthetic,
whatever the server said before. Other engines do not know them."""

LENGTH_SLACK = 1e-6

UNTOLD = "no page tells it: let infx read the server's process, here and as the user who runs infx"


def check_acceptance(point: Point, running: Acceptance | None, laws: Collection[Law]) -> None:
    """Raise EngineError (``acceptance-mode``) unless the server's acceptance fits the point.

    An evaluation needs real acceptance, whatever its arm says; a throughput point what its arm
    says, at the same length. None (the engine does not tell) fits a throughput point without
    synthetic acceptance; an evaluation only of an engine without ``laws``, which knows no other.
    """
    evaluation = point.mode == "evaluation"
    planned = Acceptance() if evaluation else point.arm.acceptance
    if evaluation and running is None and laws:
        raise _differs(planned, running, point.mode)
    require_acceptance(planned, running, point.mode)


def require_acceptance(planned: Acceptance, running: Acceptance | None, purpose: str) -> None:
    """Raise EngineError (``acceptance-mode``) unless the server's acceptance is ``planned``, in its
    mode and length; ``purpose`` is what needs it. None fits only real."""
    told = running or Acceptance()
    same_length = planned.length is None or (
        told.length is not None and abs(told.length - planned.length) < LENGTH_SLACK
    )
    if told.mode == planned.mode and (told.mode == "real" or same_length):
        return
    raise _differs(planned, running, purpose)


def option_differences(arm: Arm, server: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return a ``config-differs`` error for other weights than the recipe's revision, and for each
    engine option that the server reports otherwise.

    Axes are compared by the analysis, from the same record.
    """
    found = []
    weights = server.get("weights_identity")
    if arm.model.revision and weights and weights != arm.model.revision:
        text = f"the server's weights are {weights}, planned revision {arm.model.revision}"
        found.append(Finding("config-differs", "error", text))
    for name, planned in arm.options.items():
        running = server.get(name, server.get(name.replace("-", "_")))
        if None not in (planned, running) and running != planned:
            text = f"the server runs {name}={running}, planned {planned}"
            found.append(Finding("config-differs", "error", text))
    return tuple(found)


def logged_faults(launch: Launch, log: Path) -> tuple[Finding, ...]:
    """Return an error for each of the launch's faults that the server's ``log`` tells."""
    told = {code: line_with(log, words) for code, words in launch.log_faults.items()}
    return tuple(Finding(code, "error", f"its log: {line}") for code, line in told.items() if line)


def _differs(planned: Acceptance, running: Acceptance | None, purpose: str) -> EngineError:
    said = _words(running) if running else "not told by the server"
    message = f"{purpose} needs acceptance {_words(planned)}; the running server's is {said}"
    return EngineError("acceptance-mode", message, hint="" if running else UNTOLD)


def _words(acceptance: Acceptance) -> str:
    at = f" at length {acceptance.length}" if acceptance.mode == "synthetic" else ""
    return f"{acceptance.mode}{at}"
