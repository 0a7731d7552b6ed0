"""The engine's batch as a step of mono's library."""

from __future__ import annotations

import numpy as np

from infx.engine.batch import Batch
from infx.engine.mono.step import StepRows

__all__ = ["step_rows"]


def step_rows(batch: Batch, *, prefill: bool) -> StepRows:
    """Return ``batch`` as mono takes it."""
    rows = batch.rows
    slots = np.zeros(rows, dtype=np.int64)
    slots[batch.live.numpy()] = batch.slots.numpy()
    most = max(group.table.shape[1] for group in batch.groups)
    pages = np.zeros((rows, most), dtype=np.int32)
    for group in batch.groups:
        table = group.table.numpy()
        pages[group.slice, : table.shape[1]] = np.repeat(table, group.rows, axis=0)
    return StepRows(
        batch_ids=batch.batch_ids.numpy(),
        positions=batch.positions.numpy(),
        slots=slots,
        pages=pages,
        prefill=prefill,
        requests=len(batch.firsts),
    )
