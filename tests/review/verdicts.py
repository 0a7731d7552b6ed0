"""What a review says of a bundle, check by check."""

from __future__ import annotations

from infx.review.bundle import Bundle
from infx.review.checks import review
from infx.review.result import CheckResult

__all__ = ["one", "verdicts"]


def verdicts(bundle: Bundle) -> dict[int, str]:
    """The verdict of each check, by its number."""
    return {check.number: check.verdict for check in review(bundle).checks}


def one(bundle: Bundle, number: int) -> CheckResult:
    """The result of one check."""
    return review(bundle).checks[number]
