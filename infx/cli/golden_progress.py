"""A collection as people watch it: a bar on a terminal, one line a change elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from infx.cli.output import say, talking

if TYPE_CHECKING:
    from infx.job.golden_run import Progress

__all__ = ["teller"]

HEARTBEAT_S = 30.0


class PlainTeller:
    """One line for each change, and one each 30 s in between."""

    def __init__(self) -> None:
        self._last_s = time.monotonic()

    def __enter__(self) -> PlainTeller:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def tell(self, now: Progress) -> None:
        """Print what began or ended; batches now and then only."""
        change = now.phase != "measuring" or not now.done
        if change or time.monotonic() - self._last_s >= HEARTBEAT_S:
            self._last_s = time.monotonic()
            say(f"{time.strftime('%H:%M:%S')} {_sentence(now)}")


class LiveTeller:
    """A bar over all values on stderr; what is measured stays above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), auto_refresh=False)
        self._task: Any = None

    def __enter__(self) -> LiveTeller:
        self._bar.start()
        self._task = self._bar.add_task("", total=None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with talking():
            self._bar.stop()

    def tell(self, now: Progress) -> None:
        """Redraw the bar; print a value that is measured above it."""
        part = now.done / now.total if now.total else 0.0
        with talking():
            if now.phase == "measured":
                self._bar.console.print(_sentence(now), highlight=False)
            self._bar.update(
                self._task,
                description=_sentence(now),
                completed=now.values + part,
                total=now.wanted,
            )
            self._bar.refresh()


def teller() -> LiveTeller | PlainTeller:
    """Return what fits stderr."""
    return LiveTeller() if sys.stderr.isatty() else PlainTeller()


def _sentence(now: Progress) -> str:
    from infx.golden.text import shown

    of = f"{now.values} of {now.wanted} values"
    if now.phase == "starting":
        return f"{of}: K={now.k}, the engine starts"
    length = f"{now.estimate.length:.3f} {shown(now.estimate)}" if now.estimate else ""
    what = f"{of}: K={now.k} thinking {now.thinking}"
    if now.phase == "measured":
        return f"{what}: {length}"
    if not now.done:
        return f"{what}, {now.total} batches of prompts"
    return f"{what}, batch {now.done} of {now.total}{f', so far {length}' if length else ''}"
