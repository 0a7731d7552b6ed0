"""The engines that infx can launch: one file each, behind one interface."""

from __future__ import annotations

from infx.domain.errors import UsageError
from infx.frameworks.base import Framework
from infx.frameworks.infx import Infx
from infx.frameworks.llamacpp import LlamaCpp

__all__ = ["NAMES", "get"]

_FRAMEWORKS: dict[str, Framework] = {"infx": Infx(), "llamacpp": LlamaCpp()}

NAMES: tuple[str, ...] = tuple(_FRAMEWORKS)


def get(name: str) -> Framework:
    """Return the engine called ``name``. Raises UsageError that lists the names."""
    if name in _FRAMEWORKS:
        return _FRAMEWORKS[name]
    raise UsageError("bad-option", f"no framework {name!r}: expected one of {', '.join(NAMES)}")
