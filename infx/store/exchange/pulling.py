"""Pulling runs and the live curves from a place."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from infx.domain.errors import InfxError, UsageError
from infx.store.exchange.arrival import STAGED, Pulled, pull_run
from infx.store.exchange.parcel import Progress
from infx.store.exchange.places import Box, Place, locked, parcel_name, run_of
from infx.store.live import LIVE, Live, read_live, write_live
from infx.store.names import LAST, named
from infx.store.store import Store
from infx.store.writing import writing

__all__ = ["Incoming", "pull"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """What became of each run, and the live curves of the place, if it has any; ``refused`` are the
    errors of runs that could not be brought."""

    pulled: tuple[Pulled, ...]
    live: Live | None
    refused: tuple[InfxError, ...] = ()


def pull(
    store: Store,
    place: Place,
    names: Sequence[str],
    project: Path,
    progress: Progress = lambda *_: None,
) -> Incoming:
    """Bring the named runs of a place beside ``store`` (none is named: all), and its live curves.

    A run that cannot be brought (see `arrival.pull_run`) keeps no other from it. Errors: see
    `Place.read`; UsageError ``unknown-run``.
    """
    results = store.path.parent

    def use(box: Box) -> Incoming:
        parcels = {run_id: name for name in box.names() if (run_id := run_of(name))}
        chosen = [_named(text, parcels, place.shown) for text in names] or sorted(parcels)
        pulled: list[Pulled] = []
        refused: list[InfxError] = []
        for run_id in dict.fromkeys(chosen):
            path = box.get(parcel_name(run_id))
            assert path is not None  # the place has listed it
            try:
                pulled.append(pull_run(store, path, run_id, project, progress))
            except InfxError as error:
                refused.append(error)
        return Incoming(pulled=tuple(pulled), live=_live(box, results), refused=tuple(refused))

    with writing(results), locked(results):
        for left in results.glob(f"{STAGED}*"):  # of a pull that was killed
            shutil.rmtree(left, ignore_errors=True)
        return place.read(use)


def _named(text: str, parcels: dict[str, str], place: str) -> str:
    if not parcels:
        hint = "push one there first: infx store push PLACE RUN"
        raise UsageError("unknown-run", f"there are no runs in {place}", hint=hint)
    if text == LAST:
        return max(parcels)
    newest = ", ".join(sorted(parcels)[-5:])
    return named(text, parcels, "unknown-run", f"run in {place}", f"its newest: {newest}")


def _live(box: Box, results: Path) -> Live | None:
    path = box.get(LIVE)
    if path is None:
        return None
    live = read_live(path)
    write_live(live, results / LIVE)
    return live
