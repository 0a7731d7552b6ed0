"""What a compiled build is named by, and the numbers that it may bake in.

A cache of builds that overlooks one value runs another build's kernel (a public system had every
rank run rank 3's, since a value that its kernel closed over was not in the key). So a build is made
from a `BuildKey` and from nothing else: the key holds every value, the table follows from it, and
a back end takes its constants from `constants` of that table.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from infx.engine.mono.plan import make_table
from infx.engine.mono.shape import Caches, Formats, Grain, Kind, LayerShape, Machine
from infx.engine.mono.table import Stage, Table

__all__ = ["FRAMEWORK", "BuildKey", "constants", "source_digest"]

FRAMEWORK = Path(__file__).parent


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BuildKey:
    """Everything that a build depends on.

    ``back_end`` and ``target`` say who compiles for what (numba for the host's instruction set,
    cuda for sm_90a); ``compiler`` is its version; ``sources`` the digest of all that is compiled
    and of this framework (`source_digest`); ``debug`` bounds waits and records who gave up.
    """

    back_end: str
    target: str
    compiler: str
    sources: str
    shape: LayerShape
    kind: Kind
    width: int
    machine: Machine
    grain: Grain
    caches: Caches
    formats: Formats
    tapped: bool
    debug: bool

    @property
    def text(self) -> str:
        """The key as canonical JSON: equal texts are equal keys."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True, separators=(",", ":"))

    @property
    def digest(self) -> str:
        """The sha256 of the text in hex: the build's file name."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def table(self) -> Table:
        """Return the table that the build runs."""
        return make_table(
            self.shape,
            self.kind,
            self.width,
            self.machine,
            self.grain,
            self.caches,
            self.formats,
            self.tapped,
        )


def source_digest(folders: Iterable[Path]) -> str:
    """Return the sha256 in hex over names and bytes of all sources (.py, .cu, .cuh) in ``folders``.

    Raises FileNotFoundError for a folder without any: a digest of nothing names nothing.
    """
    total = hashlib.sha256()
    for folder in folders:
        found = sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".cu", ".cuh"))
        if not found:
            raise FileNotFoundError(f"{folder} holds no source (.py, .cu, .cuh) to digest")
        for path in found:
            name, data = path.relative_to(folder).as_posix().encode(), path.read_bytes()
            # Lengths first: no bytes can pass from a name to a file or to the next one.
            total.update(b"%d %d " % (len(name), len(data)) + name + data)
    return total.hexdigest()


def constants(table: Table) -> dict[str, int | float]:
    """Return the numbers that a back end bakes in, by name (upper case, as macros or globals).

    Of a stage X: X_TASKS, X_<AXIS>, X_BASE, X_SHARED, X_COUNTER (the first of its counters),
    X_GROUP and X_WAIT_<STAGE>; of a region R: R_OFFSET, R_TILE_BYTES; of a sum S: SUM_S_EXTENT,
    SUM_S_CHUNK, SUM_S_LANES.
    """
    named: dict[str, int | float] = {"WIDTH": table.width, "BLOCKS": table.machine.blocks}
    named |= {f"SHAPE_{name}": value for name, value in dataclasses.asdict(table.shape).items()}
    counter = 0
    for stage in table.stages:
        named |= _of_stage(stage, counter)
        counter += stage.counters
    for region in table.regions:
        if region.space in ("scratch", "peer"):
            named[f"{region.name}_OFFSET"] = region.offset
        named[f"{region.name}_TILE_BYTES"] = region.tile_bytes
    for total in table.sums:
        sizes = {"EXTENT": total.extent, "CHUNK": total.chunk, "LANES": total.lanes}
        named |= {f"SUM_{total.name}_{name}": size for name, size in sizes.items()}
    named |= {"COUNTERS": counter, "SCRATCH": table.arena("scratch"), "PEER": table.arena("peer")}
    return {name.upper(): value for name, value in named.items()}


def _of_stage(stage: Stage, counter: int) -> dict[str, int | float]:
    own = {
        "TASKS": stage.tasks,
        "BASE": stage.base,
        "SHARED": stage.shared_bytes,
        "COUNTER": counter,
        "GROUP": stage.group[1] if stage.group else 0,
        **dict(stage.axes),
        **{f"WAIT_{wait.stage}": wait.count for wait in stage.waits},
    }
    return {f"{stage.name}_{name}": number for name, number in own.items()}
