"""The engines that infx can launch: one file each, behind one interface."""

from __future__ import annotations

from infx.domain.errors import UsageError
from infx.frameworks.atom import Atom
from infx.frameworks.base import Framework
from infx.frameworks.infx import Infx
from infx.frameworks.llamacpp import LlamaCpp
from infx.frameworks.sglang import Sglang
from infx.frameworks.trtllm import TrtLlm
from infx.frameworks.vllm import Vllm

__all__ = ["NAMES", "get"]

_FRAMEWORKS: dict[str, Framework] = {
    "infx": Infx(),
    "llamacpp": LlamaCpp(),
    "vllm": Vllm(),
    "sglang": Sglang(),
    "atom": Atom(),
    "trtllm": TrtLlm(),
}

NAMES: tuple[str, ...] = tuple(_FRAMEWORKS)


def get(name: str) -> Framework:
    """Return the engine called ``name``. Raises UsageError that lists the names."""
    if name in _FRAMEWORKS:
        return _FRAMEWORKS[name]
    raise UsageError("bad-option", f"no framework {name!r}: expected one of {', '.join(NAMES)}")
