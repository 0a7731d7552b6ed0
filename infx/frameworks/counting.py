"""Shares and growths between two scrapes, as several engines need them."""

from __future__ import annotations

from infx.frameworks.prometheus import Page

__all__ = ["acceptance_length", "grown", "share", "whole"]


def grown(start: Page, end: Page, *names: str) -> float | None:
    """Return the growth of the first of ``names`` that is on the page; None: none is."""
    growths = (end.since(start, name) for name in names)
    return next((growth for growth in growths if growth is not None), None)


def share(part: float | None, of: float | None) -> float | None:
    """Return ``part`` / ``of``; None when one is not told or nothing happened."""
    return part / of if part is not None and of else None


def acceptance_length(accepted: float | None, steps: float | None) -> float | None:
    """Return tokens a verify step: the accepted drafts of one, and the target's own token."""
    drafts = share(accepted, steps)
    return None if drafts is None else 1 + drafts


def whole(count: float | None) -> int | None:
    """Return a counter as a whole number; None stays None."""
    return None if count is None else round(count)
