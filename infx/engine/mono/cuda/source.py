"""A build's source: a kernel file with what it includes as one text, and the key that names it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ARCHITECTURE", "KERNELS", "BuildSource", "build_source"]

KERNELS = Path(__file__).parent / "kernels"
ARCHITECTURE = "sm_90a"
_INCLUDE = re.compile(r'^[ \t]*#include "([^"]+)"[ \t]*$', re.MULTILINE)
_NAME_DIGITS = 24


@dataclass(frozen=True, slots=True)
class BuildSource:
    """``text`` includes nothing; ``defines`` are ``-D`` options, ``key`` names text and options."""

    name: str
    text: str
    defines: tuple[tuple[str, int], ...]

    @property
    def options(self) -> tuple[str, ...]:
        """The options that any compiler of CUDA C++ takes."""
        return tuple(f"-D{name}={value}" for name, value in self.defines)

    @property
    def key(self) -> str:
        """The same for the same machine code, as far as source and options decide it."""
        parts = (ARCHITECTURE, *self.options, self.text)
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        return f"{self.name}-{digest[:_NAME_DIGITS]}"


def build_source(file: str, defines: Mapping[str, int]) -> BuildSource:
    """Return kernels/``file`` with every include of its folder put in where it first stands.

    Raises FileNotFoundError for a file or an include that is not there.
    """
    text = _inlined(file, set())
    return BuildSource(file.removesuffix(".cu"), text, tuple(sorted(defines.items())))


def _inlined(file: str, seen: set[str]) -> str:
    if file in seen:
        return ""
    seen.add(file)
    text = (KERNELS / file).read_text(encoding="utf-8").replace("#pragma once\n", "")
    return _INCLUDE.sub(lambda match: _inlined(match[1], seen), text)
