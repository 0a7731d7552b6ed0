"""LMCache beside an engine: the variables that give it the host's memory."""

from __future__ import annotations

from collections.abc import Mapping

from infx.domain.point import Arm
from infx.frameworks.refusing import offload_bytes_a_rank

__all__ = ["LMCACHE_OWNED", "lmcache_env"]

LOCAL = "LMCACHE_LOCAL_CPU"
SIZE = "LMCACHE_MAX_LOCAL_CPU_SIZE"
GIB = 1 << 30

LMCACHE_OWNED: Mapping[str, str] = dict.fromkeys((LOCAL, SIZE), "the axis kv-offload-gb")
"""The variables that a recipe does not set, and what says them instead."""


def lmcache_env(arm: Arm) -> dict[str, str]:
    """Return its environment: its size is in GiB a rank, and ranks must agree on hashed keys."""
    size = f"{offload_bytes_a_rank(arm) / GIB:.2f}"
    return {"PYTHONHASHSEED": "0", LOCAL: "True", SIZE: size}
