"""What became of the entries that stood in the changelog before, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from infx.changelog.text import Block, Layout, layout
from infx.domain.findings import Finding, Where

__all__ = ["LINK", "LINK_LINE", "History", "ended", "history_of", "link_line"]

LINK = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/pull/[1-9][0-9]*", re.ASCII)
"""The canonical address of a pull request."""

LINK_LINE = re.compile(r"^  pr-link: *([\"']?)(?P<link>\S+)\1 *$", re.MULTILINE)
"""The line of an entry's link: deeper ones are of a text that spells one."""


@dataclass(frozen=True, slots=True)
class History:
    """``added`` are the blocks after those that stood there, ``inserted`` those among them, which
    ``insertions`` tell; ``corrected`` are those of which the link alone was made canonical.
    ``changes`` are all other changes; without any ``stood`` has a block for each of the base.
    ``boundary`` is the line at which what stood there has ended."""

    added: tuple[Block, ...]
    inserted: tuple[Block, ...]
    corrected: tuple[Block, ...]
    stood: tuple[Block, ...]
    changes: tuple[Finding, ...]
    insertions: tuple[Finding, ...]
    boundary: int

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that history does not allow."""
        return (*self.changes, *self.insertions)


def history_of(base: str, head: str, file: str) -> History:
    """Return what ``head``, which findings call ``file``, has done to ``base``.

    Blank lines after the last entry of ``base`` are not history.
    """
    return _Comparison(layout(base), layout(head), file).history()


def link_line(link: str) -> str:
    """Return the line that a link stands on, as infx writes it."""
    return f"  pr-link: {link}"


def ended(text: str) -> str:
    """Return a block's text with the newline that the end of a file may lack."""
    return text if text.endswith("\n") else f"{text}\n"


class _Comparison:
    """Walks the blocks of both sides and sorts what it meets."""

    def __init__(self, base: Layout, head: Layout, file: str) -> None:
        self._base, self._head, self._file = base, head, file
        self._added: list[Block] = []
        self._inserted: list[Block] = []
        self._corrected: list[Block] = []
        self._stood: list[Block] = []
        self._changes: list[Finding] = []
        self._boundary = 1

    def history(self) -> History:
        if not self._has_its_header():
            self._changed("what stands before the first entry is not as it was", 1, 1)
        for first, last, others in self._parts():
            is_end = last == len(self._base.blocks)
            for index, block in zip_longest(range(first, last), others):
                self._meet(index, block, is_end)
        return History(
            added=tuple(self._added),
            inserted=tuple(self._inserted),
            corrected=tuple(self._corrected),
            stood=tuple(self._stood),
            changes=tuple(self._changes),
            insertions=tuple(map(self._insertion, self._inserted)),
            boundary=self._boundary,
        )

    def _insertion(self, block: Block) -> Finding:
        sentence = "an entry is inserted among those that stood there"
        return self._finding(sentence, block.line, 1)

    def _has_its_header(self) -> bool:
        """An empty file may get one; the blank line that sets it apart comes with an entry."""
        was, now = self._base.head, self._head.head
        if self._base.blocks:
            return was == now
        return was.rstrip("\n") in ("", now.rstrip("\n"))

    def _parts(self) -> Iterator[tuple[int, int, Sequence[Block]]]:
        """Yield runs of blocks of the base (first, last) with those that stand in their place."""
        olds, news = ([ended(b.text) for b in side.blocks] for side in (self._base, self._head))
        same = _common(olds, news)
        yield 0, same, self._head.blocks[:same]
        codes = SequenceMatcher(None, olds[same:], news[same:], autojunk=False).get_opcodes()
        for _, i1, i2, j1, j2 in codes:
            yield i1 + same, i2 + same, self._head.blocks[j1 + same : j2 + same]

    def _meet(self, index: int | None, block: Block | None, is_end: bool) -> None:
        """Take a block of the base, or None, and what stands in its place, or None; ``is_end``:
        no block of the base stands below."""
        if index is not None and block is not None:
            self._compare(index, block)
        elif index is not None:
            self._gone(self._base.blocks[index])
        elif block is not None and is_end:
            self._added.append(block)
        elif block is not None:
            self._inserted.append(block)

    def _compare(self, index: int, block: Block) -> None:
        old = self._base.blocks[index]
        self._stood.append(block)
        end = block.line + block.text.count("\n")
        self._boundary = max(self._boundary, end)
        if ended(old.text) != ended(block.text):
            self._differ(old, block)
        if index + 1 < len(self._base.blocks) and old.gap != block.gap:
            self._changed("the blank lines after this entry are not as they were", end, 1)

    def _differ(self, old: Block, new: Block) -> None:
        if _is_correction(old.text, new.text):
            self._corrected.append(new)
            return
        pairs = zip_longest(old.text.split("\n"), new.text.split("\n"), fillvalue="")
        number, was, now = next((n, a, b) for n, (a, b) in enumerate(pairs) if a != b)
        sentence = f"the entry of line {old.line} is not as it was: here stood `{was[:80]}`"
        self._changed(sentence, new.line + number, _common(was, now) + 1)

    def _gone(self, old: Block) -> None:
        self._changed(f"the entry of line {old.line} of the base is gone", self._boundary, 1)

    def _changed(self, sentence: str, line: int, col: int) -> None:
        self._changes.append(self._finding(sentence, line, col))

    def _finding(self, sentence: str, line: int, col: int) -> Finding:
        return Finding("history-changed", "error", sentence, Where(self._file, line, col))


def _is_correction(old: str, new: str) -> bool:
    """Return True when nothing but the link differs, and the new one is canonical and plain."""
    was, now = LINK_LINE.search(old), LINK_LINE.search(new)
    if not was or not now or was["link"] == now["link"] or not LINK.fullmatch(now["link"]):
        return False
    if now[0] != link_line(now["link"]):
        return False
    return old[: was.start()] == new[: now.start()] and old[was.end() :] == new[now.end() :]


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the length of the common beginning."""
    shorter = min(len(a), len(b))
    return next((n for n in range(shorter) if a[n] != b[n]), shorter)
