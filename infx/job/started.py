"""What a running server was started with: asked of the operating system, for the engines whose own
pages do not say whether acceptance is real."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psutil

from infx.job.process import listener

__all__ = ["started_with"]


def started_with(processes: Iterable[psutil.Process], port: int) -> dict[str, Any] | None:
    """Return ``argv`` and ``env`` of that one of ``processes`` which listens on ``port``, as the
    kernel keeps them from its start.

    None where there is none, where it is not ours to read, or where one of them is empty: a process
    that renames itself writes over both.
    """
    found = listener(processes, port)
    try:
        told = {} if found is None else {"argv": found.cmdline(), "env": found.environ()}
    except psutil.Error:
        return None
    return told if told and all(told.values()) else None
