"""Golden files and verdicts as tables and as JSON; a collection while it goes on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infx.cli.output import say, talking

if TYPE_CHECKING:
    from infx.cli.golden_driving import Held
    from infx.domain.findings import Finding
    from infx.golden.curve import Curve
    from infx.golden.judging import Verdict
    from infx.job.golden_run import Progress

__all__ = [
    "Row",
    "check_cells",
    "collected_rows",
    "differing",
    "golden_data",
    "print_golden",
    "telling",
]

HEARTBEAT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A collected value; lengths in tokens a step, ``half_width`` None when it is unknown."""

    thinking: str
    k: int
    length: float
    half_width: float | None
    steps: int
    batches: int
    wall_s: float

    @property
    def is_wide(self) -> bool:
        """True when the interval is wider than what a check lets a length change by."""
        from infx.golden.judging import RELATIVE

        return self.half_width is not None and self.half_width > RELATIVE * self.length

    @property
    def cells(self) -> tuple[object, ...]:
        """The row of a table."""
        return (
            self.thinking,
            self.k,
            f"{self.length:.3f}",
            _width(self.half_width),
            self.steps,
            self.batches,
            f"{self.wall_s:.0f}",
        )


def collected_rows(curve: Curve) -> list[Row]:
    """Return the values of a curve, by mode and K."""
    return [
        Row(
            thinking=mode,
            k=k,
            length=value.estimate.length,
            half_width=value.estimate.half_width,
            steps=value.estimate.steps,
            batches=value.estimate.batches,
            wall_s=value.wall_s,
        )
        for mode, values in curve.values.items()
        for k, value in values.items()
    ]


def check_cells(verdict: Verdict) -> tuple[object, ...]:
    """Return a verdict as the row of a table."""
    return (
        verdict.thinking,
        verdict.k,
        f"{verdict.golden:.2f}",
        _width(verdict.interval),
        f"{verdict.now.length:.3f}",
        _width(verdict.now.half_width),
        f"{verdict.tolerance:.3f}",
        "yes" if verdict.holds else "no",
    )


def differing(name: str, verdict: Verdict) -> Finding:
    """Return the finding of a value that does not hold."""
    from infx.domain.findings import Finding

    return Finding(
        "golden-differs",
        "error",
        f"{name} says {verdict.golden:.2f} at K={verdict.k} with thinking {verdict.thinking}; now "
        f"it is {verdict.now.length:.3f}, and {verdict.tolerance:.3f} apart would be agreement",
    )


def golden_data(golden: Held) -> dict[str, Any]:
    """Return a golden file for --json."""
    record = golden.record
    return {
        "file": str(golden.path),
        "model": golden.model,
        "comments": _comments(golden.path),
        "values": [
            {"thinking": mode, "k": k, "length": length, "half_width": width, "steps": steps}
            for mode, k, length, width, steps in _values(golden)
        ],
        "subject": record.subject if record else None,
        "sampling": record.sampling if record else None,
    }


def print_golden(golden: Held) -> None:
    """Print a golden file: where it is from, and its lengths with their intervals."""
    from infx.cli.output import table

    print(f"{golden.path.stem}: {golden.model}  ({golden.path})")
    for line in _comments(golden.path):
        print(f"  {line}".rstrip())
    rows = [(mode, k, f"{al:.2f}", _width(w), steps) for mode, k, al, w, steps in _values(golden)]
    table(("THINKING", "K", "LENGTH", "±", "STEPS"), rows)


def _values(golden: Held) -> list[tuple[str, int, float, float | None, int | None]]:
    from infx.cli.golden_driving import measured

    found = []
    for mode, lengths in golden.lengths.items():
        for k, length in lengths.items():
            now = measured(golden, mode, k)
            found.append(
                (mode, k, length, now.half_width if now else None, now.steps if now else None)
            )
    return found


def _comments(path: Path) -> list[str]:
    """Return the comments at a file's head: what a public golden file says about its source."""
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    head = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return [line.removeprefix("#").strip() for line in lines[:head] if line.strip("# ")]


def _width(half_width: float | None) -> str:
    return "" if half_width is None else f"{half_width:.3f}"


@contextmanager
def telling() -> Iterator[Callable[[Progress], None]]:
    """Give what shows a collection's progress on stderr: a bar on a terminal, else lines."""
    if not sys.stderr.isatty():
        yield _Lines().tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), auto_refresh=False)
    bar.start()
    task = bar.add_task("", total=None)
    try:
        yield lambda now: _redraw(bar, task, now)
    finally:
        with talking():
            bar.stop()


class _Lines:
    """One line for each change, and one each 30 s in between."""

    def __init__(self) -> None:
        self._last_s = time.monotonic()

    def tell(self, now: Progress) -> None:
        change = now.phase != "measuring" or not now.done
        if change or time.monotonic() - self._last_s >= HEARTBEAT_S:
            self._last_s = time.monotonic()
            say(f"{time.strftime('%H:%M:%S')} {_sentence(now)}")


def _redraw(bar: Any, task: Any, now: Progress) -> None:
    """Redraw a bar over all values; what is measured stays above it."""
    part = now.done / now.total if now.total else 0.0
    with talking():
        if now.phase == "measured":
            bar.console.print(_sentence(now), highlight=False)
        done, what = now.values + part, _sentence(now)
        bar.update(task, description=what, completed=done, total=now.wanted)
        bar.refresh()


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
