"""The validator: `check` says what is wrong with a table, one code a fault, before it is run.

``python -m infx.engine.mono.check`` walks every shape, kind of layer, kind of cache and width.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from infx.engine.mono.order import Order
from infx.engine.mono.sums import ROW, WEIGHT
from infx.engine.mono.table import LIVE, Access, Dealt, Looked, Region, Selector, Span, Stage, Table

__all__ = ["FAULTS", "Fault", "check", "check_family"]

FAULTS = {
    "named-twice": "two stages, regions or sums have one name",
    "undeclared-region": "a stage touches a region that the table does not declare",
    "unused-region": "a region is never touched, or scratch is written for nobody",
    "wrong-space": "a region lies in a space that cannot be used in this way",
    "ping-pong": "the layer writes the residual buffer that it reads, or names none",
    "scratch-overlap": "two regions of one arena share bytes",
    "out-of-range": "a tile or a counter that does not exist",
    "two-writers": "two stages, or two tasks, write one tile",
    "never-written": "a region, or a tile of it, that its writer does not write",
    "read-before-write": "a stage reads what a later stage, or another task of it, writes",
    "missing-wait": "a stage reads what it has not waited for",
    "unknown-wait": "a stage waits for one that the table does not have",
    "self-wait": "a stage waits for itself",
    "later-wait": "a stage waits for a later one: a deadlock",
    "wrong-wait-count": "a wait for more or fewer arrivals than there are",
    "not-placed": "a task that no block runs",
    "placed-twice": "a task that two blocks run",
    "too-many-blocks": "more blocks than can be resident: those that wait would starve the rest",
    "too-much-shared": "a stage needs more shared memory than a block has",
    "undeclared-sum": "a stage adds in an order that the table does not declare",
    "unused-sum": "a sum that no stage adds",
    "impossible-sum": "a sum of no terms, or lanes that cannot be halved",
    "sum-order": "an order of adding that depends on more than weight coordinates and the row",
    "order-differs": "two widths add in different orders",
    "pads-live": "tasks are made live by something that pads could do",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """``code`` is a key of `FAULTS`; the sentence names the stage, region or sum."""

    code: str
    sentence: str


def check(table: Table) -> list[Fault]:
    """Return all faults of ``table``; none: it neither races nor hangs, and is batch-invariant.

    Where names or axes are wrong nothing else can be said, so those faults come alone.
    """
    unreadable = [*_names(table), *_axes(table)]
    parts = (_regions, _accesses, _waits, _placement, _machine, _sums, _live)
    return unreadable or [fault for part in parts for fault in part(table)]


def check_family(tables: Sequence[Table]) -> list[Fault]:
    """Return where ``tables`` of one layer at several widths differ in the order of a sum."""
    known: dict[str, tuple[int, object]] = {}
    faults = []
    for table in tables:
        for total in table.sums:
            width, first = known.setdefault(total.name, (table.width, total))
            if first != total:
                sentence = f"{total.name}: {first} at {width} rows, {total} at {table.width}"
                faults.append(Fault("order-differs", sentence))
    return faults


def _names(table: Table) -> Iterator[Fault]:
    for parts in (table.stages, table.regions, table.sums):
        for name, count in Counter(part.name for part in parts).items():
            if count > 1:
                yield Fault("named-twice", f"{name} stands {count} times")


def _axes(table: Table) -> Iterator[Fault]:
    for stage in table.stages:
        accesses = (*stage.reads, *stage.writes)
        spans = [s.axis for a in accesses for s in a.at if isinstance(s, Span)]
        spans += [wait.at.axis for wait in stage.waits if wait.at]
        whens = [access.when[0] for access in accesses if access.when]
        groups = [stage.group[0]] if stage.group else []
        alien = {*spans, *whens, *groups} - {"", *(axis for axis, _ in stage.axes)}
        if alien:
            yield Fault("out-of-range", f"{stage.name} has no axis {', '.join(sorted(alien))}")


def _regions(table: Table) -> Iterator[Fault]:
    read = {access.region for stage in table.stages for access in stage.reads}
    written = {access.region for stage in table.stages for access in stage.writes}
    for region in table.regions:
        wasted = region.space in ("scratch", "peer") and region.name not in read
        if wasted or region.name not in read | written:
            yield Fault("unused-region", f"{region.name} is read by no stage")
        yield from _space(region, region.name in read, region.name in written)
    yield from _overlaps(table.regions)


def _space(region: Region, read: bool, written: bool) -> Iterator[Fault]:
    borrowed = region.space in ("weight", "step")
    if borrowed and (written or region.writer):
        yield Fault("wrong-space", f"{region.name} is written in the borrowed {region.space}")
    if region.space == "out" and read:
        yield Fault("wrong-space", f"{region.name} is given out and yet read")
    if region.exchange != (region.space == "peer"):
        yield Fault("wrong-space", f"{region.name} is exchanged between ranks outside peer memory")
    if region.space == "stream" and region.parity != (1 if region.writer else 0):
        yield Fault("ping-pong", f"{region.name} has parity {region.parity}")
    if not (region.writer or borrowed or region.space == "stream"):
        yield Fault("never-written", f"{region.name} has no writer")


def _overlaps(regions: Sequence[Region]) -> Iterator[Fault]:
    for space in ("scratch", "peer"):
        placed = sorted((r for r in regions if r.space == space), key=lambda r: r.offset)
        for before, after in itertools.pairwise(placed):
            end = before.offset + before.bytes * (1 if before.parity is None else 2)
            if after.offset < end:
                sentence = f"{after.name} begins at {after.offset}, {before.name} ends at {end}"
                yield Fault("scratch-overlap", sentence)


def _accesses(table: Table) -> Iterator[Fault]:
    regions = {region.name: region for region in table.regions}
    numbers = {stage.name: number for number, stage in enumerate(table.stages)}
    order = Order(table)
    for stage in table.stages:
        for access in (*stage.reads, *stage.writes):
            region = regions.get(access.region)
            if region is None:
                yield Fault("undeclared-region", f"{stage.name} touches {access.region}")
            elif not _fits(stage, access, region):
                yield Fault("out-of-range", f"{stage.name} touches {access.region}: {access.at}")
            elif region.writer and access in stage.reads:
                yield from _read(stage, access, region, order, numbers)
        yield from _writes(stage, regions)
    yield from _unwritten(table)


def _fits(stage: Stage, access: Access, region: Region) -> bool:
    axis, first, end = access.when or ("", 0, 1)
    known = not axis or 0 <= first < end <= stage.extent(axis)
    if not known or len(access.at) != len(region.tiles):
        return False
    spans = zip(access.at, region.tiles, strict=True)
    return all(
        tiles.start >= 0 and tiles.stop <= count
        for selector, count in spans
        for tiles in _ends(stage, access, selector)
    )


def _ends(stage: Stage, access: Access, selector: Selector) -> list[range]:
    """Return what the first and the last task of the selector's axis select."""
    if not isinstance(selector, Span):
        return []
    indices = _range(stage, access, selector.axis) if selector.axis else range(1)
    return [selector.tiles({selector.axis: i}) for i in (indices[0], indices[-1])]


def _range(stage: Stage, access: Access, axis: str) -> range:
    """Return the indices on ``axis`` of the tasks that do the access."""
    if access.when and access.when[0] == axis:
        return range(access.when[1], access.when[2])
    return range(stage.extent(axis))


def _read(
    stage: Stage, read: Access, region: Region, order: Order, numbers: dict[str, int]
) -> Iterator[Fault]:
    writer = numbers.get(region.writer, -1)
    if region.space == "peer" and region.writer == stage.name:
        return
    if writer >= numbers[stage.name]:
        yield Fault("read-before-write", f"{stage.name} reads {region.name} of {region.writer}")
    elif writer >= 0 and not order.holds(stage, read, region):
        yield Fault("missing-wait", f"{stage.name} reads {region.name} of {region.writer}")


def _writes(stage: Stage, regions: dict[str, Region]) -> Iterator[Fault]:
    counts = Counter(access.region for access in stage.writes)
    for access in stage.writes:
        region = regions.get(access.region)
        # Without a writer it is borrowed memory, which `_space` refuses.
        other = region is not None and region.writer not in ("", stage.name)
        if other or counts[access.region] > 1 or _shared(stage, access):
            yield Fault("two-writers", f"{stage.name} is not alone to write {access.region}")


def _shared(stage: Stage, access: Access) -> bool:
    """Return whether two tasks of the stage write one tile: an axis that chooses no tile."""
    choosing = {
        selector.axis if isinstance(selector, Span) else selector.by
        for selector in access.at
        if not (isinstance(selector, Span) and selector.step < selector.size)
    }
    return any(
        len(_range(stage, access, axis)) > 1 and axis not in choosing for axis, _ in stage.axes
    )


def _unwritten(table: Table) -> Iterator[Fault]:
    writes = {
        (stage.name, access.region): (stage, access)
        for stage in table.stages
        for access in stage.writes
    }
    for region in table.regions:
        if not region.writer:
            continue
        written = writes.get((region.writer, region.name))
        if written is None:
            yield Fault("never-written", f"{region.writer} does not write {region.name}")
        elif _fits(*written, region) and not _covers(*written, region):
            yield Fault("never-written", f"{region.writer} writes a part of {region.name}")


def _covers(stage: Stage, access: Access, region: Region) -> bool:
    for selector, count in zip(access.at, region.tiles, strict=True):
        if isinstance(selector, Dealt | Looked):
            continue
        first, last = _ends(stage, access, selector)
        gaps = selector.axis and selector.step > selector.size
        if first.start > 0 or last.stop < count or gaps:
            return False
    return True


def _waits(table: Table) -> Iterator[Fault]:
    order = {stage.name: number for number, stage in enumerate(table.stages)}
    for number, stage in enumerate(table.stages):
        for wait in stage.waits:
            at = order.get(wait.stage)
            if at is None:
                yield Fault("unknown-wait", f"{stage.name} waits for {wait.stage}")
            elif at == number:
                yield Fault("self-wait", f"{stage.name} waits for itself")
            elif at > number:
                yield Fault("later-wait", f"{stage.name} waits for {wait.stage}")
            else:
                yield from _counts(table, stage, table.stages[at])


def _counts(table: Table, stage: Stage, other: Stage) -> Iterator[Fault]:
    arrivals = other.arrivals(table.machine.blocks)
    for wait in (wait for wait in stage.waits if wait.stage == other.name):
        mismatched = (wait.at is None) != (other.group is None)
        if wait.count != arrivals or mismatched or _uncountable(other):
            sentence = f"{stage.name} waits for {wait.count} arrivals of {other.name}"
            yield Fault("wrong-wait-count", f"{sentence}: there are {arrivals}")
        elif wait.at and not _fits(stage, Access("", (wait.at,)), _counters(other)):
            yield Fault("out-of-range", f"{stage.name} waits for counters of {other.name}")


def _counters(stage: Stage) -> Region:
    return Region(stage.name, "scratch", stage.name, (stage.counters,), 4)


def _uncountable(stage: Stage) -> bool:
    """Return whether the arrivals at a counter depend on data, or on the counter."""
    if stage.group is None:
        return False
    axis, size = stage.group
    return bool(stage.live) or stage.extent(axis) % size != 0


def _placement(table: Table) -> Iterator[Fault]:
    for stage in table.stages:
        blocks = range(table.machine.blocks)
        runs = Counter((block - stage.base) % stage.step for block in blocks)
        # Tasks that are equal modulo the step have the same block.
        for task in range(min(stage.tasks, stage.step)):
            if runs[task] != 1:
                code = "placed-twice" if runs[task] else "not-placed"
                yield Fault(code, f"task {task} of {stage.name} runs on {runs[task]} blocks")
                break


def _machine(table: Table) -> Iterator[Fault]:
    machine = table.machine
    if machine.blocks > machine.resident:
        sentence = f"{machine.blocks} blocks, {machine.resident} can be resident"
        yield Fault("too-many-blocks", sentence)
    for stage in table.stages:
        if stage.shared_bytes > machine.shared_bytes:
            sentence = f"{stage.name} needs {stage.shared_bytes} bytes of {machine.shared_bytes}"
            yield Fault("too-much-shared", sentence)


def _sums(table: Table) -> Iterator[Fault]:
    declared = {total.name for total in table.sums}
    used = {name: stage.name for stage in table.stages for name in stage.sums}
    yield from (
        Fault("undeclared-sum", f"{stage} adds {name}")
        for name, stage in used.items()
        if name not in declared
    )
    yield from (Fault("unused-sum", name) for name in declared if name not in used)
    for total in table.sums:
        alien = set(total.dealt_by) - WEIGHT - ROW
        if alien or total.merged_by not in ("lane", "halving"):
            sentence = f"{total.name} is dealt by {total.dealt_by}, merged by {total.merged_by}"
            yield Fault("sum-order", sentence)
        unpaired = total.merged_by == "halving" and total.lanes & (total.lanes - 1)
        if min(total.extent, total.chunk, total.lanes) < 1 or unpaired:
            yield Fault("impossible-sum", f"{total}")


def _live(table: Table) -> Iterator[Fault]:
    for stage in table.stages:
        for name in stage.live:
            if name not in LIVE:
                yield Fault("pads-live", f"{stage.name} is live by {name}, not one of {[*LIVE]}")


if __name__ == "__main__":
    from infx.engine.mono.walk import main

    raise SystemExit(main())
