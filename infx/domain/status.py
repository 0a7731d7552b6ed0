"""How a point stands. Closed codes, fail closed: no default hides an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["CANCELLED", "OK", "PENDING", "RUNNING", "State", "Status"]

State = Literal["pending", "running", "measured", "ok", "failed", "invalid", "cancelled", "skipped"]

TERMINAL: frozenset[State] = frozenset({"ok", "failed", "invalid", "cancelled", "skipped"})


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a point, with the code and first useful line of evidence when it is not ok.

    ``measured`` has its raw evidence on disk and awaits a verdict; ``ok`` passed every validity
    rule; ``failed`` has no measurement; ``invalid`` has one that may not enter a frontier.
    """

    state: State
    code: str = ""
    sentence: str = ""

    def __post_init__(self) -> None:
        if self.state in ("failed", "invalid") and not self.code:
            raise ValueError(f"status {self.state!r} needs a code")

    def __str__(self) -> str:
        return f"{self.state}:{self.code}" if self.code else self.state

    @property
    def terminal(self) -> bool:
        """True when no attempt will change it any more."""
        return self.state in TERMINAL


PENDING = Status("pending")
RUNNING = Status("running")
OK = Status("ok")
CANCELLED = Status("cancelled")
