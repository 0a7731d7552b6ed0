"""The builds of a bench: both arms for each width, compiled side by side before they are used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from infx.engine.mono.cuda.arms import Arms
from infx.engine.mono.cuda.compiling import compile_all

__all__ = ["Builds"]


class Builds:
    """Arms by width; ``defines`` replace numbers of kernels, ``folder`` keeps their cubins."""

    def __init__(self, defines: Mapping[str, int], folder: Path | None = None) -> None:
        self._defines, self._folder = defines, folder
        self._arms: dict[int, Arms] = {}

    def arms(self, rows: int) -> Arms:
        """Return the arms for ``rows`` rows."""
        if rows not in self._arms:
            self._arms[rows] = Arms(rows, self._defines, self._folder)
        return self._arms[rows]

    def compile(self, widths: Iterable[int]) -> int:
        """Compile both arms for ``widths``, a process a core; return how many builds there are."""
        sources = [source for rows in sorted(set(widths)) for source in self.arms(rows).sources]
        compile_all(sources, self._folder)
        return len(sources)
