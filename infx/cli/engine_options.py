"""Options that the commands of `infx engine` share, and the configuration they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from infx.engine.config import EngineConfig

__all__ = [
    "MOST_WIDTH",
    "Device",
    "IndexCache",
    "KvCache",
    "Model",
    "Weights",
    "bad",
    "configured",
    "facts",
    "progress",
    "read_widths",
]

Device = Annotated[str, typer.Option("--device", metavar="NAME", help="cpu or cuda")]
Model = Annotated[str, typer.Option("--model", metavar="NAME", help="shape of the model")]
Weights = Annotated[
    str, typer.Option("--weights", metavar="SOURCE", help="random:SEED, shipped, or a folder")
]
KvCache = Annotated[
    str, typer.Option("--kv-cache-dtype", metavar="TYPE", help="fp32 (auto), bf16, fp8 or mxfp4")
]
IndexCache = Annotated[
    str, typer.Option("--index-cache-dtype", metavar="TYPE", help="the same, for index keys")
]
MOST_WIDTH = 16
# Lines of progress of a whole run.
TOLD = 10


def configured(
    device: str, model: str, weights: str, kv: str, index: str, **more: Any
) -> EngineConfig:
    """Return the configuration. Raises RefusalError or UsageError for one not compiled here."""
    from infx.engine.config import EngineConfig
    from infx.engine.deployment import refuse_compiled
    from infx.engine.memory import refuse_too_large
    from infx.engine.refusal import RefusalError
    from infx.engine.shapes import NULL
    from infx.engine.weights import shape_of_source

    if device != "cpu":
        missing = "this build has no kernels for it" if device == "cuda" else "no such device"
        raise RefusalError("mono-device", f"--device {device}: {missing}; use --device cpu")
    if model == NULL:
        raise bad(f"--model {NULL}: it has no layers; name a shape, as mini")
    config = EngineConfig(
        model=model,
        weights=weights,
        kv_cache_dtype=kv,
        index_cache_dtype=index,
        block_size=shape_of_source(model, weights).block_size,
        **more,
    )
    refuse_too_large(config)
    refusal = refuse_compiled(config)
    if refusal:
        raise RefusalError(refusal.code, refusal.sentence)
    return config


def facts(config: EngineConfig) -> dict[str, Any]:
    """Return what a result says of its model."""
    kinds = config.cache_kinds
    return {
        "device": "cpu",
        "model": config.model,
        "weights": config.weights,
        "kv_cache": kinds.kv,
        "index_cache": kinds.index,
    }


def read_widths(text: str) -> list[int]:
    """Return the widths of ``1-16`` or ``1,2,5``, ascending. Raises UsageError."""
    found: set[int] = set()
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    except ValueError:
        found = set()
    if not found or min(found) < 1 or max(found) > MOST_WIDTH:
        raise bad(f"--widths {text[:60]}: expected 1-{MOST_WIDTH}, or as 1,2,5")
    return sorted(found)


def progress(what: str, done: int, of: int, more: str = "") -> None:
    """Say on stderr how far a run is: once it has begun, and ten times in all."""
    from infx.cli.output import say

    if done in (1, of) or done % max(1, of // TOLD) == 0:
        say(f"{what} {done} of {of}{more}")


def bad(sentence: str) -> Exception:
    """Return the error of an option that cannot be."""
    from infx.domain.errors import UsageError

    return UsageError("bad-option", sentence)
