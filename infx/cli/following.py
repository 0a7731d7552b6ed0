"""Looking at a run that another process drives, for `watch` and `ci wait` alike."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.domain.plan import Plan
    from infx.launch.board import Board
    from infx.launch.sweep import Observer
    from infx.store import RunRow, Store

__all__ = ["looks"]

TICK_S = 1.0


def looks(
    store: Store, run: RunRow, plan: Plan, observer: Observer
) -> Iterator[tuple[Board, bool]]:
    """Look once a second: the run's board, and whether somebody drives it; tell the observer what
    changed."""
    from infx.launch.view import snapshot
    from infx.store import holder

    before: dict[str, tuple[str, str]] = {}
    while True:
        driven = bool(holder(Path(run.folder)))
        board = snapshot(store, run, plan)
        for line in board.lines.values():
            now = (line.state, line.phase)
            if before.get(line.job.job_id) not in (None, now):
                observer.notice(f"{line.job.name}: {': '.join(filter(None, now))}")
            before[line.job.job_id] = now
        observer.draw(board)
        yield board, driven
        time.sleep(TICK_S)
