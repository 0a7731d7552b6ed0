"""What a check says: a code, a level, a place, a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "Level", "Where"]

Level = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file. Lines and columns count from 1; 0 means the file as a whole."""

    file: str
    line: int = 0
    col: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement of a check.

    ``code`` is a key of `infx.domain.codes.CODES`; ``hint`` is the next step ("did you mean …").
    """

    code: str
    level: Level
    sentence: str
    where: Where | None = None
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        tail = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.code} {self.sentence}{tail}"
