"""What commands print: data on stdout, talk on stderr, or one JSON object."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TextIO

if TYPE_CHECKING:
    from infx.domain.findings import Finding

__all__ = ["colours", "duration", "emit", "say", "table", "talking"]

MISSING = "-"


def emit(
    command: str, data: object, *, ok: bool = True, diagnostics: Iterable[Finding] = ()
) -> None:
    """Print the one object of ``--json``: ``{schema, ok, data, diagnostics}``. A reader who leaves
    (``| head``) changes no exit code."""
    from infx.domain.serial import to_plain

    whole = {
        "schema": f"infx.{command}/1",
        "ok": ok,
        "data": to_plain(data),
        "diagnostics": [to_plain(finding) for finding in diagnostics],
    }
    with talking("stdout"):
        print(json.dumps(whole, indent=2, ensure_ascii=False))


def say(sentence: str) -> None:
    """Print a line for people to stderr."""
    with talking():
        print(sentence, file=sys.stderr, flush=True)


@contextmanager
def talking(stream: Literal["stdout", "stderr"] = "stderr") -> Iterator[None]:
    """Keep a listener that leaves (a closed terminal, ``| head``) from ending what is talked of, or
    from changing its exit code: from then on the stream is /dev/null."""
    try:
        yield
        getattr(sys, stream).flush()
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, {"stdout": 1, "stderr": 2}[stream])
        os.close(nowhere)


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows to stdout: a rich table on a terminal, aligned plain text elsewhere."""
    texts = [[MISSING if cell in (None, "") else str(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _rich_table(headers, texts)
        return
    widths = [max(len(cell) for cell in column) for column in zip(headers, *texts, strict=True)]
    for row in (headers, *texts):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(line.rstrip())


def colours(stream: TextIO) -> bool:
    """Return True when ``stream`` is a terminal that wants colour (NO_COLOR, TERM=dumb)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not plain


def duration(seconds: float) -> str:
    """Return ``42 s``, ``3 min 20 s`` or ``2 h 05 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def _rich_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown: Any = Table(*headers, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))
    Console().print(shown)
