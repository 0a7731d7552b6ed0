"""infx engine check: mono against the unfused layers, over the steps of a model that is served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli.engine_cuda import cuda_facts, needed_bytes
from infx.cli.engine_options import (
    MOST_WIDTH,
    Device,
    IndexCache,
    KvCache,
    Model,
    NumLayers,
    Weights,
    bad,
    configured,
    facts,
    layers_of,
    progress,
)
from infx.cli.options import Json

if TYPE_CHECKING:
    from infx.engine.config import EngineConfig
    from infx.engine.mono.probe.acceptance import AcceptanceCheck
    from infx.engine.mono.probe.mono_check import MonoCheck
    from infx.engine.mono.probe.serving import Decode

__all__ = ["HELP", "check"]

HELP = "Compare mono with the unfused layers on served steps, bit by bit."
# Drafts a step of each method: what the shipped drafts were trained for.
DRAFTS = {"none": 0, "eagle3": 3, "dspark": 7}
# Tokens of each request; one comes after another for as many steps as are asked.
OUTPUT_TOKENS, CONTEXT = 64, 1024
TITLES = {"unfused": "unfused layers", "reference": "plain torch"}


def check(
    device: Device = "cpu",
    model: Model = None,
    weights: Weights = None,
    num_layers: NumLayers = None,
    kv_cache: KvCache = "auto",
    index_cache: IndexCache = "auto",
    method: Annotated[
        str,
        typer.Option(
            "--speculative-method", metavar="NAME", help="none, eagle3 (K=3) or dspark (K=7)"
        ),
    ] = "eagle3",
    steps: Annotated[
        int, typer.Option("--steps", metavar="N", min=1, help="decode steps to look at")
    ] = 40,
    acceptance: Annotated[
        bool, typer.Option("--acceptance", help="compare accepted drafts instead of layers")
    ] = False,
    as_json: Json = False,
) -> int:
    """Run the command."""
    if method not in DRAFTS or (acceptance and not DRAFTS[method]):
        wanted = [name for name, drafts in DRAFTS.items() if drafts or not acceptance]
        raise bad(f"--speculative-method {method}: expected {', '.join(wanted)}")
    if acceptance and device == "cuda":
        raise bad("--acceptance with --device cuda: no model is served there; use --device cpu")
    drafts, layers = DRAFTS[method], layers_of(device, num_layers)
    config = configured(
        device,
        model,
        weights or ("shipped" if device == "cpu" else None),
        kv_cache,
        index_cache,
        needed_bytes(layers, plain_torch=True),
        method=method,
        k=drafts,
        max_num_seqs=MOST_WIDTH // (drafts + 1),
        max_model_len=CONTEXT,
    )
    told = {"method": method, "k": drafts}
    if device == "cuda":
        found = _on_gpu(config, layers, steps)
        return _show_layers(found, cuda_facts(config, layers) | told, as_json)
    told = facts(config) | told
    return (_acceptance if acceptance else _layers)(config, steps, told, as_json)


def _on_gpu(config: EngineConfig, layers: int, steps: int) -> MonoCheck:
    """Return what random layers made of random steps: no model is served on a GPU yet."""
    from infx.engine.mono.cuda.probed import decodes, device_check

    found = device_check(config, layers, steps)
    for decode in decodes(config, layers):
        more = found(decode)
        progress("step", found.seen, steps)
        if not more:
            break
    return found


def _layers(config: EngineConfig, steps: int, told: dict[str, Any], as_json: bool) -> int:
    from infx.engine.mono.probe.mono_check import mono_check

    found = mono_check(config, steps)
    _serve(config, found, steps)
    return _show_layers(found, told, as_json)


def _show_layers(found: MonoCheck, told: dict[str, Any], as_json: bool) -> int:
    from infx.cli.output import emit, say, table

    if as_json:
        emit("engine-check", told | {"steps": found.seen, "layers": found.layers}, ok=found.ok)
        return 0 if found.ok else 1
    rows = [
        (
            number,
            layer.rows,
            ", ".join(f"{part} {count}" for part, count in layer.differing.items()) or 0,
            f"{layer.greatest:.1e}" if layer.greatest else 0,
            f"{layer.from_reference:.1e}",
            layer.first or "",
        )
        for number, layer in enumerate(found.layers)
    ]
    table(("LAYER", "ROWS", "DIFFER", "MOST APART", "FROM TORCH", "FIRST DIFFERENCE"), rows)
    say("MOST APART: the largest |mono - unfused| of an output; FROM TORCH: |mono - plain torch|")
    return 0 if found.ok else 1


def _acceptance(config: EngineConfig, steps: int, told: dict[str, Any], as_json: bool) -> int:
    from infx.cli.output import emit, table
    from infx.engine.mono.probe.acceptance import AcceptanceCheck

    found = AcceptanceCheck(config, steps)
    _serve(config, found, steps)
    against = found.against["unfused"]
    ok = found.verifies > 0 and against.lengths == against.top1 == 1
    if as_json:
        emit("engine-acceptance", told | _agreement(found), ok=ok)
        return 0 if ok else 1
    rows = [
        (
            TITLES[arm],
            f"{other.equal_lengths} of {other.verifies} ({other.lengths:.2%})",
            f"{other.equal_rows} of {other.rows} ({other.top1:.2%})",
            f"{found.acceptance_length('mono'):.3f}",
            f"{found.acceptance_length(arm):.3f}",
        )
        for arm, other in found.against.items()
    ]
    table(("MONO AGAINST", "EQUAL LENGTHS", "EQUAL TOP-1", "AL OF MONO", "AL OF IT"), rows)
    return 0 if ok else 1


def _agreement(found: AcceptanceCheck) -> dict[str, Any]:
    return {
        "steps": found.seen,
        "verifies": found.verifies,
        "acceptance_length": {arm: found.acceptance_length(arm) for arm in found.emitted},
        "against": {
            arm: {
                "rows": other.rows,
                "top1": other.top1,
                "verifies": other.verifies,
                "lengths": other.lengths,
            }
            for arm, other in found.against.items()
        },
    }


def _serve(config: EngineConfig, found: MonoCheck | AcceptanceCheck, steps: int) -> None:
    from infx.engine.mono.probe.serving import prompts, serve

    # Twice what the steps can take, since steps with a prompt in them are not looked at.
    most = 2 * (1 + steps * config.rows_per_request // OUTPUT_TOKENS)

    def watched(decode: Decode) -> bool:
        more = found(decode)
        progress("step", found.seen, steps)
        return more

    serve(config, prompts(config.max_num_seqs * most), OUTPUT_TOKENS, watched)
