"""The entry that a changelog has of a run: written once, in the place of what announced it, its
link set later."""

from __future__ import annotations

from collections.abc import Callable

from infx.changelog.entry import PLACEHOLDER, PLANNED, Changelog, Entry, of_run
from infx.changelog.history import LINK_LINE, ended, link_line
from infx.changelog.text import layout

__all__ = ["announcement_of", "entry_of", "in_place_of", "with_link"]


def entry_of(changelog: Changelog, run: str) -> Entry | None:
    """Return the entry whose description names the run as `draft_entry` does."""
    begins = of_run(run)
    return next(
        (e for e in changelog.entries if any(told.startswith(begins) for told in e.description)),
        None,
    )


def announcement_of(changelog: Changelog, entry: Entry) -> Entry | None:
    """Return what announced the ``entry``: it names the same or less, tells of plans alone, and is
    of a pull request that is still open (no history holds a placeholder), or of the entry's own."""
    return next(
        (
            one
            for one in changelog.entries
            if one.keys_told <= entry.keys_told
            and all(told.startswith(PLANNED) for told in one.description)
            and one.pr_link in (PLACEHOLDER, entry.pr_link)
        ),
        None,
    )


def in_place_of(text: str, entry: Entry, other: str) -> str:
    """Return a changelog's text with ``other`` in the place of one entry."""
    return _mapped(text, entry, lambda block: ended(other))


def with_link(text: str, entry: Entry, link: str) -> str:
    """Return a changelog's text with this link in the place of that of one entry."""
    return _mapped(text, entry, lambda block: LINK_LINE.sub(link_line(link), block))


def _mapped(text: str, entry: Entry, change: Callable[[str], str]) -> str:
    found = layout(text)
    parts = [found.head]
    for block in found.blocks:
        is_it = block.line == entry.where.line
        parts += [change(block.text) if is_it else block.text, block.gap]
    return "".join(parts)
