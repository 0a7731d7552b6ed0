"""infx engine: what shows that mono is right and fast: a probe, a check, a benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli import engine_bench, engine_check
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
    read_widths,
)
from infx.cli.options import Json

if TYPE_CHECKING:
    from collections.abc import Callable

    from infx.engine.config import EngineConfig
    from infx.engine.mono.probe.rows import Subject
    from infx.engine.mono.probe.tally import Tally

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="Show what mono promises: independent rows, equal layers, speed.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("probe", help="Say whether a row's bits depend on that row alone.")(_probe)
    group.command("check", help=engine_check.HELP)(engine_check.check)
    group.command("bench", help=engine_bench.HELP)(engine_bench.bench)
    app.add_typer(group, name="engine")


def _probe(
    device: Device = "cpu",
    model: Model = None,
    weights: Weights = None,
    num_layers: NumLayers = None,
    kv_cache: KvCache = "auto",
    index_cache: IndexCache = "auto",
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, help="worlds of random requests")
    ] = 20,
    widths: Annotated[
        str, typer.Option("--widths", metavar="LIST", help="rows of a step: 1-16, or 1,2,5")
    ] = f"1-{MOST_WIDTH}",
    arm: Annotated[
        str, typer.Option("--arm", metavar="NAME", help="mono, unfused, or reference (torch)")
    ] = "mono",
    replay: Annotated[
        bool, typer.Option("--replay", help="run every step as a replay of a graph (cuda)")
    ] = False,
    as_json: Json = False,
) -> int:
    from infx.cli.output import emit

    chosen, numbers, layers = _arm(arm), read_widths(widths), layers_of(device, num_layers)
    if replay and (device != "cuda" or chosen == "reference"):
        raise bad(f"--replay with --device {device} --arm {arm}: expected cuda, mono or unfused")
    needed = needed_bytes(layers, plain_torch=chosen == "reference")
    config = configured(device, model, weights, kv_cache, index_cache, needed)
    from infx.engine.mono.probe.probing import probe

    on_gpu = device == "cuda"
    subject = _on_gpu(config, layers, chosen, numbers, replay) if on_gpu else _here(config, chosen)
    tally = probe(subject, range(seeds), numbers, _teller(seeds))
    if as_json:
        about = cuda_facts(config, layers) if on_gpu else facts(config)
        told = {"arm": arm, "seeds": seeds, "widths": numbers, "replay": replay, **about}
        emit("engine-probe", told | {"properties": _properties(tally)}, ok=tally.ok)
    else:
        _show(tally)
    return 0 if tally.ok else 1


def _here(config: EngineConfig, arm: Any) -> Subject:
    from infx.engine.mono.probe.host import make_host

    return make_host(config, arm)


def _on_gpu(
    config: EngineConfig, layers: int, arm: Any, widths: list[int], replay: bool
) -> Subject:
    from infx.engine.mono.cuda.probed import OnDevice, device_host
    from infx.engine.mono.cuda.replayed import Replayed

    return device_host(config, layers, arm, widths, Replayed if replay else OnDevice)


def _arm(name: str) -> Any:
    from infx.engine.mono.probe.rows import ARMS

    if name not in ARMS:
        raise bad(f"--arm {name}: expected {', '.join(ARMS)}")
    return name


def _teller(seeds: int) -> Callable[[int, Tally], None]:
    def tell(done: int, tally: Tally) -> None:
        rows = sum(finding.rows for finding in tally.findings.values())
        wrong = sum(finding.differing for finding in tally.findings.values())
        progress("seed", done, seeds, f": {rows} rows compared, {wrong} differ")

    return tell


def _show(tally: Tally) -> None:
    from infx.cli.output import table
    from infx.engine.mono.probe.tally import PROPERTIES

    rows = [
        (PROPERTIES[name], found.rows, found.differing, found.untold or "", found.first or "")
        for name, found in tally.findings.items()
    ]
    table(("PROPERTY", "ROWS", "DIFFER", "NOT TOLD", "FIRST DIFFERENCE"), rows)


def _properties(tally: Tally) -> dict[str, Any]:
    from infx.engine.mono.probe.tally import PROPERTIES

    return {
        name: {
            "meaning": PROPERTIES[name],
            "rows": found.rows,
            "differing": found.differing,
            "untold": found.untold,
            "first": found.first,
        }
        for name, found in tally.findings.items()
    }
