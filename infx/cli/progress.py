"""A run as people watch it: a live table on a terminal, one line a change elsewhere."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from infx.cli.output import duration, say, talking

if TYPE_CHECKING:
    from infx.launch.board import Board, JobLine

__all__ = ["LivePrinter", "PlainPrinter", "printer"]

HEARTBEAT_S = 30.0
REFRESH_S = 0.25
MOST_ROWS = 20
"""Jobs shown at once; the others are counted."""
MOST_REASON = 22
"""Letters of a queue's reason in a row; the line below the table has it whole."""
MOST_NOTICES = 3
"""Changes shown below the table: what two jobs say must not hide what the scheduler says."""


class PlainPrinter:
    """One line for each change, and one each 30 s in which nothing changed."""

    def __init__(self) -> None:
        self._last_s = time.monotonic()

    def __enter__(self) -> PlainPrinter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def notice(self, sentence: str) -> None:
        """Print the change."""
        self._last_s = time.monotonic()
        say(f"{time.strftime('%H:%M:%S')} {sentence}")

    def draw(self, board: Board) -> None:
        """Print where the run is when nothing was printed for a while."""
        if time.monotonic() - self._last_s >= HEARTBEAT_S:
            self.notice(_heartbeat(board, time.time()))


class LivePrinter:
    """A table on stderr with a row for each job, redrawn in place, and a bar with the time left.

    It has no thread of its own: the local executor forks, and a fork copies one thread only.
    """

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), auto_refresh=False)
        self._next_s = 0.0
        self._notices: deque[str] = deque(maxlen=MOST_NOTICES)

    def __enter__(self) -> LivePrinter:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with talking():
            self._live.stop()

    def notice(self, sentence: str) -> None:
        """Show the change under the table, with those before it."""
        self._notices.append(f"{time.strftime('%H:%M:%S')} {sentence}")
        self._next_s = 0.0

    def draw(self, board: Board) -> None:
        """Redraw, a few times a second at the most."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + REFRESH_S
        with talking():
            width = self._live.console.width
            told = "\n".join(self._notices)
            self._live.update(_picture(board, told, time.time(), width), refresh=True)


def printer() -> LivePrinter | PlainPrinter:
    """Return what fits stderr."""
    return LivePrinter() if sys.stderr.isatty() else PlainPrinter()


def _heartbeat(board: Board, now_s: float) -> str:
    done, total = board.points
    running = [line for line in board.active if line.busy]
    doing = [
        f"{line.job.name}: {line.phase or line.state} for {duration(now_s - line.phase_s)}"
        for line in running[:3]
    ]
    if len(running) > 3:
        doing.append(f"{len(running) - 3} more run")
    if queued := sum(board.queued.values()):
        doing.append(f"{queued} queued")
    return f"{done} of {total} points, {_left(board, now_s)}; {'; '.join(doing) or 'waiting'}"


def _left(board: Board, now_s: float) -> str:
    if not board.active:
        return "nothing is running" if board.waiting else "done"
    seconds = board.left_s(now_s)
    return f"about {duration(seconds)} left" if seconds else "longer than expected"


def _picture(board: Board, told: str, now_s: float, width: int) -> Any:
    from rich.console import Group
    from rich.text import Text

    lines = _chosen(board)
    shown = _table([_row(line, now_s) for line in lines], width)
    parts = [shown, _bar(board, now_s)]
    if more := len(board.lines) - len(lines):
        parts.insert(1, Text(f"and {more} more jobs"))
    return Group(*parts, Text(told, style="dim", no_wrap=True, overflow="ellipsis"))


def _table(rows: Sequence[tuple[str, ...]], width: int) -> Any:
    """Return the rows as a table in which a narrow terminal cuts names and verdicts only."""
    from rich.table import Table
    from rich.text import Text

    headers = ("JOB", "DONE", "NOW", "TIME", "LAST VERDICT")
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    room = max(24, width - sum(widths[1:4]) - 2 * len(headers))
    verdict = min(widths[4], max(room - widths[0], room // 3))
    most = (room - verdict, None, None, None, verdict)
    shown = Table(box=None, pad_edge=False, header_style="bold", expand=False)
    for header, limit in zip(headers, most, strict=True):
        shown.add_column(header, no_wrap=True, overflow="ellipsis", max_width=limit)
    for name, *rest in rows:
        shown.add_row(*map(Text, (_tail(name, room - verdict), *rest)))
    return shown


def _tail(name: str, width: int) -> str:
    """The end of a job's name tells it from the others of its entry."""
    return name if len(name) <= width else f"…{name[1 - width :]}"


def _chosen(board: Board) -> list[JobLine]:
    """Return the rows to show: those that run, then the newest that ended and the next ones."""
    lines = list(board.lines.values())
    if len(lines) <= MOST_ROWS:
        return lines
    order = {"running": 0, "stopping": 0, "suspect": 0, "queued": 1, "waiting": 2, "ended": 3}
    chosen = sorted(lines, key=lambda line: order[line.state])[:MOST_ROWS]
    return [line for line in lines if line in chosen]


def _row(line: JobLine, now_s: float) -> tuple[str, ...]:
    busy = line.state in ("running", "stopping", "suspect", "queued")
    now = line.phase if line.state == "running" and line.phase else line.state
    now = f"queued{_reason(line.why)}" if line.in_queue else "done" if _told(line) else now
    done = f"{line.done}/{len(line.job.points)}"
    return line.job.name, done, now, _time(line, now_s) if busy else "", line.verdict


def _told(line: JobLine) -> bool:
    return line.over and line.state == "running"


def _reason(why: str) -> str:
    """Return Slurm's own word, which stands last and in brackets, for a narrow column."""
    word = why[why.rindex("(") + 1 : -1] if why.endswith(")") else "None"
    short = word if len(word) <= MOST_REASON else f"{word[: MOST_REASON - 1]}…"
    return f" ({short})" if word != "None" else ""


def _time(line: JobLine, now_s: float) -> str:
    """Return how long it does what it does, and how long that is expected to take, where anybody
    knows: not in a queue."""
    known = line.expected_s and not line.in_queue and line.state != "stopping"
    expected = f" of {duration(line.expected_s)}" if line.expected_s and known else ""
    return duration(now_s - (line.point_s if line.point else line.launched_s)) + expected


def _bar(board: Board, now_s: float) -> Any:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    done, total = board.points
    row = Table.grid(padding=(0, 1))
    row.add_row(
        ProgressBar(total=max(total, 1), completed=done, width=40),
        Text(f"{done} of {total} points, {_left(board, now_s)}"),
    )
    return row
