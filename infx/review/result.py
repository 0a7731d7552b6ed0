"""What a check says, and what all of them say together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["CheckResult", "Evidence", "Review", "Said", "Verdict", "whole"]

Verdict = Literal["PASS", "WARN", "FAIL", "N/A"]

_WORST: tuple[Verdict, ...] = ("FAIL", "WARN", "PASS")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something seen: ``where`` is a file of the bundle, with a line or a name in it."""

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Said:
    """A verdict, why, and what it was seen in."""

    verdict: Verdict
    sentence: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The verdict of one check, why, and what it was seen in."""

    number: int
    name: str
    verdict: Verdict
    sentence: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """All results in their order, of the pull request at ``head``; ``note`` is the bundle's, and
    ``rules`` name those of the repository that stood for infx's own."""

    repository: str
    pull_request: int
    head: str
    verdict: Verdict
    checks: tuple[CheckResult, ...]
    note: str = ""
    rules: tuple[str, ...] = ()

    def exit_code(self, *, strict: bool) -> int:
        """Return 1 on FAIL, and on WARN where ``strict``, else 0."""
        return int(self.verdict == "FAIL" or (strict and self.verdict == "WARN"))


def whole(checks: tuple[CheckResult, ...]) -> Verdict:
    """Return the worst verdict; N/A where no check applies."""
    said = {check.verdict for check in checks}
    return next((verdict for verdict in _WORST if verdict in said), "N/A")
