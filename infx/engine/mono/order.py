"""Whether waits put a read after its write: the happens-before of a table, from its data alone."""

from __future__ import annotations

from collections.abc import Iterator

from infx.engine.mono.table import Access, Region, Span, Stage, Table

__all__ = ["Order"]


class Order:
    """Which stages are over when: before any task of a stage starts, and when all its tasks end."""

    def __init__(self, table: Table) -> None:
        self._stages: dict[str, Stage] = {}
        self._before: dict[str, set[str]] = {}
        self._with: dict[str, set[str]] = {}
        for stage in table.stages:
            self._before[stage.name] = self._over(stage, full=True)
            # Tasks that data leave out wait for nothing; for barriers blocks wait all the same.
            more = set() if stage.live else self._over(stage, full=False)
            self._with[stage.name] = self._before[stage.name] | more
            self._stages[stage.name] = stage

    def holds(self, stage: Stage, read: Access, region: Region) -> bool:
        """Return whether each task of ``stage`` starts after those that write what it reads."""
        if region.writer in self._before[stage.name]:
            return True
        writer = self._stages[region.writer]
        write = next((access for access in writer.writes if access.region == region.name), None)
        if write is None or writer.group is None:
            return False
        waits = list(_selected(stage, writer))
        spans = [*waits, *(selector for selector in read.at if isinstance(selector, Span))]
        axes = {span.axis for span in spans} | ({read.when[0]} if read.when else set())
        for at in stage.indices(axes):
            waited = {counter for span in waits for counter in span.tiles(at)}
            if read.applies(at) and not waited.issuperset(_needed(writer, write, read, at)):
                return False
        return True

    def _over(self, stage: Stage, full: bool) -> set[str]:
        """Return what is over by the waits of each task (``full``), or of all tasks together."""
        over: set[str] = set()
        for name in {wait.stage for wait in stage.waits} & self._stages.keys():
            earlier = self._stages[name]
            spans = [span for span in _selected(stage, earlier) if not (full and span.axis)]
            counters = {c for span in spans for i in _along(stage, span) for c in span.tiles(i)}
            if earlier.group is None or len(counters) == earlier.counters:
                over |= {name} | self._with[name]
        return over


def _selected(stage: Stage, earlier: Stage) -> Iterator[Span]:
    return (wait.at for wait in stage.waits if wait.stage == earlier.name and wait.at)


def _along(stage: Stage, span: Span) -> list[dict[str, int]]:
    """Return an index for each number on the span's axis."""
    return [{span.axis: i} for i in range(stage.extent(span.axis) if span.axis else 1)]


def _needed(writer: Stage, write: Access, read: Access, at: dict[str, int]) -> range:
    """Return the writer's counters at which the tiles arrive that the task at ``at`` reads."""
    assert writer.group is not None
    axis, size = writer.group
    tasks = range(writer.extent(axis))
    if write.when and write.when[0] == axis:
        tasks = range(write.when[1], write.when[2])
    for wrote, reads in zip(write.at, read.at, strict=True):
        if isinstance(wrote, Span) and wrote.axis == axis and isinstance(reads, Span):
            tiles = reads.tiles(at)
            first = -(-(tiles.start - wrote.first - wrote.size + 1) // wrote.step)
            last = (tiles.stop - 1 - wrote.first) // wrote.step
            tasks = range(max(first, tasks.start), min(last + 1, tasks.stop))
    return range(tasks.start // size, (tasks.stop - 1) // size + 1)
