"""The changelog as text: the blocks that are its entries, and what its bytes may be.

Everything that writes the file puts such blocks together; what is there is never dumped again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from infx.domain.findings import Finding, Where

__all__ = [
    "Block",
    "Layout",
    "byte_findings",
    "decoded",
    "is_bare",
    "layout",
    "readable",
]

_ITEM = re.compile(r"^-(?=[ \n]|\Z)", re.MULTILINE)
_BLANK = " \t\r\n\f\v"
_HEADER = re.compile(r"(#.*\n)+\n")
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_NAMES = {"\t": "a tab", "\r": "a carriage return", "\0": "a NUL", "\ufeff": "a byte-order mark"}


@dataclass(frozen=True, slots=True)
class Block:
    """One entry as written. ``text`` ends with its last line that is not blank, ``gap`` is what
    stands between that and the next block, or the end; ``line`` is its first line, from 1."""

    text: str
    gap: str
    line: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A whole file: what stands before the first entry, and the entries."""

    head: str
    blocks: tuple[Block, ...]

    @property
    def history(self) -> str:
        """All bytes up to the end of the last entry: blank lines after it are not history."""
        parts = [self.head, *(block.text + block.gap for block in self.blocks[:-1])]
        return "".join([*parts, *(block.text for block in self.blocks[-1:])])


def decoded(data: bytes, file: str) -> str | Finding:
    """Return the text of ``data``, or the finding ``not-utf8`` at the first byte that is none."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        sentence = f"byte 0x{data[error.start]:02x} is not UTF-8"
        where = Where(file, before.count("\n") + 1, len(before) - before.rfind("\n"))
        return Finding("not-utf8", "error", sentence, where)


def layout(text: str) -> Layout:
    """Return the blocks of ``text``: each begins with a dash at the margin."""
    starts = [match.start() for match in _ITEM.finditer(text)]
    blocks, line, last = [], 1, 0
    for start, end in pairwise([*starts, len(text)]):
        line += text.count("\n", last, start)
        last = start
        blocks.append(_block(text[start:end], line))
    return Layout(text[: starts[0]] if starts else text, tuple(blocks))


def _block(chunk: str, line: int) -> Block:
    newline = chunk.find("\n", len(chunk.rstrip(_BLANK)))
    end = newline + 1 if newline >= 0 else len(chunk)
    return Block(chunk[:end], chunk[end:], line)


def readable(text: str) -> str:
    """Return ``text`` with a space for each control character, so that one does not hide what else
    is wrong, nor shift the lines that a reader of YAML counts."""
    return _CONTROL.sub(" ", text.removeprefix("\ufeff"))


def is_bare(text: str) -> bool:
    """Return True where nothing but comments and blank lines stands."""
    return all(line.startswith("#") or not line.strip() for line in text.split("\n"))


def byte_findings(text: str, file: str) -> Iterator[Finding]:
    """Yield what the bytes may not be: control characters, gaps between entries, the end."""
    yield from _controls(text, file)
    yield from _gaps(layout(text.removeprefix("\ufeff")), file)


def _controls(text: str, file: str) -> Iterator[Finding]:
    """Yield the first of each kind on every line."""
    for number, line in enumerate(text.split("\n"), 1):
        for char in dict.fromkeys(_CONTROL.findall(line)):
            name = _NAMES.get(char, f"the control character U+{ord(char):04X}")
            where = Where(file, number, line.index(char) + 1)
            yield Finding("control-character", "error", f"{name} stands here", where)


def _gaps(found: Layout, file: str) -> Iterator[Finding]:
    if found.head and not _HEADER.fullmatch(found.head + "\n" * (not found.blocks)):
        sentence = "something else than comments and one blank line stands before the first entry"
        yield _blank(sentence, Where(file, 1, 1))
    for block in found.blocks[:-1]:
        if block.gap != "\n":
            yield _gap(block, file)
    for block in found.blocks[-1:]:
        yield from _end(block, file)


def _gap(block: Block, file: str) -> Finding:
    lines = block.gap.count("\n")
    told = "no blank line" if not lines else f"{lines} blank lines" if lines > 1 else ""
    told = told or "a line of spaces"
    if lines > 1 and block.gap.strip("\n"):
        told += ", one of spaces,"
    sentence = f"{told} after this entry, one empty line is expected"
    return _blank(sentence, Where(file, _after(block), 1))


def _end(block: Block, file: str) -> Iterator[Finding]:
    if not block.text.endswith("\n"):
        last = block.text.rsplit("\n", 1)[-1]
        where = Where(file, block.line + block.text.count("\n"), len(last) + 1)
        yield _blank("the file does not end with a newline", where)
    elif block.gap:
        yield _blank("the file ends with blank lines", Where(file, _after(block), 1))


def _after(block: Block) -> int:
    return block.line + block.text.count("\n")


def _blank(sentence: str, where: Where) -> Finding:
    return Finding("blank-lines", "error", sentence, where)
