"""The entry that a changelog has of a run: written once, its link set later."""

from __future__ import annotations

from infx.changelog.entry import Changelog, Entry, of_run
from infx.changelog.history import LINK_LINE, link_line
from infx.changelog.text import layout

__all__ = ["entry_of", "with_link"]


def entry_of(changelog: Changelog, run: str) -> Entry | None:
    """Return the entry whose description names the run as `draft_entry` does."""
    begins = of_run(run)
    return next(
        (e for e in changelog.entries if any(told.startswith(begins) for told in e.description)),
        None,
    )


def with_link(text: str, entry: Entry, link: str) -> str:
    """Return a changelog's text with this link in the place of that of one entry."""
    found = layout(text)
    parts = [found.head]
    for block in found.blocks:
        is_it = block.line == entry.where.line
        parts += [LINK_LINE.sub(link_line(link), block.text) if is_it else block.text]
        parts += [block.gap]
    return "".join(parts)
