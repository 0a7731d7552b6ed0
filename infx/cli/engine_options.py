"""Options that the commands of `infx engine` share, and the configuration they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli.engine_cuda import LAYERS, configured_on_cuda

if TYPE_CHECKING:
    from infx.engine.config import EngineConfig

__all__ = [
    "MOST_WIDTH",
    "Device",
    "IndexCache",
    "KvCache",
    "Model",
    "NumLayers",
    "Weights",
    "bad",
    "configured",
    "facts",
    "layers_of",
    "progress",
    "read_widths",
]

Device = Annotated[str, typer.Option("--device", metavar="NAME", help="cpu or cuda")]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="shape: mini on cpu, m3_tp4_rank on cuda"),
]
Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="SOURCE",
        help="random:SEED (default: random:0), shipped (default of check on cpu), or a folder",
    ),
]
NumLayers = Annotated[
    int | None,
    typer.Option("--num-layers", metavar="N", min=1, help="random layers on cuda (2): 1 GB each"),
]
KvCache = Annotated[
    str,
    typer.Option(
        "--kv-cache-dtype", metavar="TYPE", help="fp32 (auto), bf16, fp8 (auto on cuda) or mxfp4"
    ),
]
IndexCache = Annotated[
    str, typer.Option("--index-cache-dtype", metavar="TYPE", help="the same, for index keys")
]
MOST_WIDTH = 16
# Lines of progress of a whole run.
TOLD = 10


def configured(
    device: str,
    model: str | None,
    weights: str | None,
    kv: str,
    index: str,
    needed_bytes: int = 0,
    **more: Any,
) -> EngineConfig:
    """Return the configuration; a GPU must have ``needed_bytes`` free.

    Raises RefusalError or UsageError for one whose layers are not compiled here.
    """
    from infx.engine.config import EngineConfig
    from infx.engine.deployment import refuse_compiled
    from infx.engine.memory import refuse_too_large
    from infx.engine.refusal import RefusalError
    from infx.engine.shapes import NULL
    from infx.engine.weights import shape_of_source

    if device == "cuda":
        return configured_on_cuda(model, weights, kv, index, needed_bytes, **more)
    if device != "cpu":
        raise RefusalError("mono-device", f"--device {device}: no such device; use cpu or cuda")
    model, weights = model or "mini", weights or "random:0"
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


def layers_of(device: str, asked: int | None) -> int:
    """Return how many random layers a GPU gets. Raises UsageError where a model has its own."""
    if asked and device != "cuda":
        raise bad(f"--num-layers {asked} with --device {device}: the model has its own; leave it")
    return asked or LAYERS


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
