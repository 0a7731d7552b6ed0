"""Concurrent appends to the changelog, put together entry by entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from infx.changelog.entry import PLACEHOLDER
from infx.changelog.history import LINK_LINE, History, ended, history_of
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

    History must be untouched on both sides, but for links made canonical. One side may have entries
    among it, as a branch has that is rebased commit by commit: they stay where they are. An entry
    that both have stands once; one whose link is a placeholder gives way to the same entry with a
    link on the other side. Ours stand first unless ``ours_last``; every order gives the same set of
    entries.
    """
    mine, other = history_of(base, ours, "ours"), history_of(base, theirs, "theirs")
    if refused := _refused(layout(base), mine, other):
        return refused
    lead = other if other.inserted else mine
    history = _history(layout(base), mine, other, lead)
    there = _texts(lead.inserted)
    first, second = (_texts(side.added) for side in ((other, mine) if ours_last else (mine, other)))
    first, second = _kept(first, second), _kept(second, first)
    first = [text for text in first if text not in there]
    second = [text for text in second if text not in (*there, *first)]
    head = _head(layout(base), ours, theirs)
    text = _joined(Layout(head, tuple(history)).history, [*first, *second])
    counts = (len(second), len(first)) if ours_last else (len(first), len(second))
    return Merged(text, counts[0] + len(mine.inserted), counts[1] + len(other.inserted))


def _refused(base: Layout, ours: History, theirs: History) -> tuple[Finding, ...]:
    changes = (*ours.changes, *theirs.changes)
    if ours.inserted and theirs.inserted:
        changes += (*ours.insertions, *theirs.insertions)
    return changes or tuple(_corrected_twice(base, ours, theirs))


def _corrected_twice(base: Layout, ours: History, theirs: History) -> Iterator[Finding]:
    for old, mine, other in zip(base.blocks, ours.stood, theirs.stood, strict=True):
        was, a, b = (ended(block.text) for block in (old, mine, other))
        if was not in (a, b) and a != b:
            sentence = f"both sides changed the link of the entry of line {old.line}"
            yield Finding("merge-refused", "error", sentence, Where("ours", mine.line, 1))


def _history(base: Layout, ours: History, theirs: History, lead: History) -> list[Block]:
    """Return the blocks of ``lead`` to the last that stood there, each as the side has it that
    corrected it."""
    newest = {}
    for old, mine, other, at in zip(base.blocks, ours.stood, theirs.stood, lead.stood, strict=True):
        is_other = ended(mine.text) == ended(old.text)
        newest[at.line] = replace(old, text=(other if is_other else mine).text)
    every = sorted((*lead.stood, *lead.inserted), key=lambda block: block.line)
    return [newest.get(block.line, block) for block in every]


def _head(base: Layout, *sides: str) -> str:
    """Return what stands before the entries: a side may begin the file."""
    if base.blocks:
        return base.head
    heads = (head.rstrip("\n") for head in (base.head, *(layout(text).head for text in sides)))
    return next((f"{head}\n" for head in heads if head), "")


def append(text: str, entries: str) -> str:
    """Return ``text`` with ``entries`` below it; blank lines at its end become one."""
    return _joined(layout(text).history, _texts(layout(entries).blocks))


def _joined(history: str, entries: Sequence[str]) -> str:
    """Return entries below history, each apart by one empty line."""
    apart = [ended(history)] if history.strip() else []
    return "\n".join([*apart, *entries])


def _texts(blocks: Iterable[Block]) -> list[str]:
    return [ended(block.text) for block in blocks]


def _kept(entries: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the entries less those that ``others`` have with a link instead of a placeholder."""
    linked = {_unlinked(text) for text in others if not _is_open(text)}
    return [text for text in entries if not (_is_open(text) and _unlinked(text) in linked)]


def _is_open(text: str) -> bool:
    found = LINK_LINE.search(text)
    return found is not None and found["link"].rpartition("/")[2] == PLACEHOLDER


def _unlinked(text: str) -> str:
    return LINK_LINE.sub("", text)
