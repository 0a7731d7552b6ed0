"""Concurrent appends to the changelog, put together entry by entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from infx.changelog.entry import PLACEHOLDER
from infx.changelog.history import LINK_LINE, ended, history_of
from infx.changelog.text import Block, Layout, layout
from infx.domain.findings import Finding, Where

__all__ = ["Merged", "append", "merge"]


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged file, and how many entries each side appended to it."""

    text: str
    ours: int
    theirs: int


def merge(
    base: str, ours: str, theirs: str, *, ours_last: bool = False
) -> Merged | tuple[Finding, ...]:
    """Return both sides' new entries below the history of ``base``, or why they cannot be merged.

    History must be untouched on both sides, but for links made canonical. An entry that both have
    stands once; one whose link is a placeholder gives way to the same entry with a link on the
    other side. Ours stand first unless ``ours_last``; every order gives the same set of entries.
    """
    sides = {"ours": ours, "theirs": theirs}
    refused = [f for name, text in sides.items() for f in history_of(base, text, name).findings]
    old, mine, other = layout(base), layout(ours), layout(theirs)
    history = list(_history(old, mine, other)) if not refused else []
    refused += [found for found in history if isinstance(found, Finding)]
    if refused:
        return tuple(refused)
    order = (other, mine) if ours_last else (mine, other)
    first, second = (_appended(old, side) for side in order)
    first, second = _kept(first, second), _kept(second, first)
    second = [text for text in second if text not in first]
    stood = [block for block in history if isinstance(block, Block)]
    text = _joined(Layout(old.head, tuple(stood)).history, [*first, *second])
    counts = (len(second), len(first)) if ours_last else (len(first), len(second))
    return Merged(text, *counts)


def append(text: str, entries: str) -> str:
    """Return ``text`` with ``entries`` below it; blank lines at its end become one."""
    return _joined(layout(text).history, [ended(block.text) for block in layout(entries).blocks])


def _joined(history: str, entries: Sequence[str]) -> str:
    """Return entries below history, each apart by one empty line."""
    apart = [ended(history)] if history.strip() else []
    return "\n".join([*apart, *entries])


def _history(base: Layout, ours: Layout, theirs: Layout) -> Iterator[Block | Finding]:
    """Yield each block that stood there as the side has it that corrected it; a finding where both
    did, otherwise."""
    for old, mine, other in zip(base.blocks, ours.blocks, theirs.blocks, strict=False):
        was, a, b = (ended(block.text) for block in (old, mine, other))
        if was not in (a, b) and a != b:
            sentence = f"both sides changed the link of the entry of line {old.line}"
            yield Finding("merge-refused", "error", sentence, Where("ours", mine.line, 1))
        yield replace(old, text=b if a == was else a)


def _appended(base: Layout, side: Layout) -> list[str]:
    return [ended(block.text) for block in side.blocks[len(base.blocks) :]]


def _kept(entries: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the entries less those that ``others`` have with a link instead of a placeholder."""
    linked = {_unlinked(text) for text in others if not _is_open(text)}
    return [text for text in entries if not (_is_open(text) and _unlinked(text) in linked)]


def _is_open(text: str) -> bool:
    found = LINK_LINE.search(text)
    return found is not None and found["link"].rpartition("/")[2] == PLACEHOLDER


def _unlinked(text: str) -> str:
    return LINK_LINE.sub("", text)
