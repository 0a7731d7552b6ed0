"""A point while it is measured."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from infx.domain.record import PointRecord

__all__ = ["Work"]


@dataclass(slots=True)
class Work:
    """A point's record as it grows."""

    record: PointRecord
    folder: Path
    phases_s: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase, whether it ends well or not."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.phases_s[name] = round(time.monotonic() - started, 3)
