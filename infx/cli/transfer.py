"""How far the packing of a large run is: a bar on a terminal, a line each 10 s elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.store.exchange import Progress

__all__ = ["meter"]

LINE_EACH_S = 10.0
QUIET_BYTES = 8 << 20
"""A run below this size is packed in less than a second."""


@contextmanager
def meter() -> Iterator[Progress]:
    """Give what is to be told of the bytes that are done."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    with _bar() as progress:
        yield progress


def _lines() -> Progress:
    from infx.cli.output import say

    last_s = time.monotonic()

    def tell(what: str, done: int, whole: int) -> None:
        nonlocal last_s
        if time.monotonic() - last_s >= LINE_EACH_S:
            last_s = time.monotonic()
            say(f"{what} {done >> 20} of {whole >> 20} MiB")

    return tell


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as shown:
        task = shown.add_task("", total=None, visible=False)

        def tell(what: str, done: int, whole: int) -> None:
            visible = whole > QUIET_BYTES
            shown.update(task, description=what, completed=done, total=whole, visible=visible)

        yield tell
