"""Whether weights and cache fit in memory, computed from their sizes before any is made."""

from __future__ import annotations

from infx.engine.cache import page_bytes
from infx.engine.config import EngineConfig
from infx.engine.free_memory import free_bytes
from infx.engine.ranks.division import shape_of_rank
from infx.engine.refusal import RefusalError
from infx.engine.weights import draft_sizes, target_sizes, total_bytes

__all__ = ["needed_bytes", "refuse_too_large"]


def needed_bytes(config: EngineConfig) -> tuple[int, int]:
    """Return the bytes of the float32 weights, the draft's too, and of the cache's pages.

    Those of all ranks: each reads the whole target before it cuts its part, and keeps the pages of
    its own kv heads; those of the draft are rank 0's.
    """
    shape = config.shape
    weights = config.tp * total_bytes(target_sizes(shape))
    if config.method != "none":
        weights += total_bytes(draft_sizes(shape, config.method))
    kinds = config.cache_kinds
    page = config.tp * page_bytes(shape_of_rank(shape, config.tp), kinds)
    page += page_bytes(shape, kinds, config.draft_layers, config.features)
    page -= page_bytes(shape, kinds)
    return weights, config.pages * page


def refuse_too_large(config: EngineConfig) -> None:
    """Raise RefusalError (``too-little-memory``) when weights and cache need more than is free."""
    weights, cache = needed_bytes(config)
    free = free_bytes()
    if weights + cache <= free:
        return
    raise RefusalError(
        "too-little-memory",
        f"--model {config.model}: the weights need {_gb(weights)} and the cache of {config.pages}"
        f" pages {_gb(cache)}, {weights + cache} bytes together; {_gb(free)} are free"
        f" ({free} bytes); use a smaller model, or lower --num-blocks, --max-num-seqs or"
        " --max-model-len",
    )


def _gb(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
