"""What later steps of a workflow know of a decision: lines of the file that GITHUB_OUTPUT names."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from infx.ci.decision import CiPlan

__all__ = ["output_lines", "outputs"]


def outputs(made: CiPlan) -> dict[str, str]:
    """Return the values by name: flags are ``true`` or ``false``, several runs or entries have
    spaces between them. ``run`` is the last of ``runs``: it counts where several measured a point.
    """
    asked = made.settings
    return {
        "decision": made.decision,
        "reason": made.reason,
        "pull_request": str(made.pull_request),
        "head_sha": made.head_sha,
        "canary": _flag(asked is not None and asked.canary),
        "fail_fast": _flag(asked is not None and asked.fail_fast),
        "run": made.runs[-1] if made.runs else "",
        "runs": " ".join(made.runs),
        "entries": " ".join(made.entries),
        "jobs": str(len(made.jobs)),
        "points": str(sum(len(job.points) for job in made.jobs)),
        "submission_valid": _flag(made.submission_valid),
        "reusable": _flag(made.reusable),
    }


def output_lines(values: Mapping[str, str]) -> str:
    """Return the values as GitHub reads them. One of several lines stands between two marks that no
    text can hold by design: they are made of its own sha256."""
    return "".join(_line(name, value) for name, value in values.items())


def _line(name: str, value: str) -> str:
    if "\n" not in value and "\r" not in value:
        return f"{name}={value}\n"
    mark = f"infx-{hashlib.sha256(value.encode()).hexdigest()}"
    return f"{name}<<{mark}\n{value}\n{mark}\n"


def _flag(holds: bool) -> str:
    return "true" if holds else "false"
