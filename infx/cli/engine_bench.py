"""infx engine bench: the time of a layer by mono and by the unfused layers, on a CPU or a GPU."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from infx.cli import engine_bench_cpu, engine_bench_cuda
from infx.cli.engine_options import Device, IndexCache, KvCache, Model, bad, read_widths
from infx.cli.options import Json

__all__ = ["HELP", "bench"]

HELP = "Time a layer: mono, unfused, and plain torch on a CPU."


def bench(
    device: Device = "cpu",
    model: Model = None,
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights", metavar="SOURCE", help="cpu: random:SEED, shipped, or a folder (random:0)"
        ),
    ] = None,
    kv_cache: KvCache = "auto",
    index_cache: IndexCache = "auto",
    widths: Annotated[
        str, typer.Option("--widths", metavar="LIST", help="rows of a step: 1,2,4, or 1-16")
    ] = "1,2,4,8,16",
    context: Annotated[
        int | None,
        typer.Option(
            "--context",
            metavar="N",
            min=0,
            help="cpu: tokens before each row (512); cuda: those that a request's last row sees,"
            " itself included (8192)",
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds", metavar="N", min=2, help="cpu: times that all is timed in turn (40)"
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="NAME",
            help="cuda: layers that are sparse (default), sparse_dense"
            " (M3.1's first: a dense MLP) or dense (M3's first: full attention too)",
        ),
    ] = None,
    rows_per_request: Annotated[
        int | None,
        typer.Option(
            "--rows-per-request",
            metavar="N",
            min=1,
            max=16,
            help="cuda: rows of a request, one behind the other: 1, or 1 more than are drafted",
        ),
    ] = None,
    pads: Annotated[
        int | None,
        typer.Option("--pads", metavar="N", min=0, help="cuda: the last rows are nobody's (0)"),
    ] = None,
    layers: Annotated[
        int | None,
        typer.Option(
            "--layers", metavar="N", min=4, max=57, help="cuda: layers in turn (8), 1 GB each"
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="write the JSON to a file too")
    ] = None,
    as_json: Json = False,
) -> int:
    """Run the command."""
    from infx.cli.output import emit

    numbers = read_widths(widths)
    cpu_only = {"--weights": weights, "--rounds": rounds}
    cuda_only = {"--kind": kind, "--rows-per-request": rows_per_request, "--pads": pads}
    cuda_only |= {"--layers": layers}
    _refuse_others(device, cuda_only if device != "cuda" else cpu_only)
    if save:
        _check_writable(save)
    caches = kv_cache, index_cache
    if device == "cuda":
        asked = (caches, numbers, kind, context, rows_per_request, pads)
        setting = engine_bench_cuda.setting_of(*asked)
        told, ok = engine_bench_cuda.measured(model, setting, numbers, layers)
        show = engine_bench_cuda.show
    else:
        host = (device, model, weights, caches, numbers, context, rounds)
        told, ok = engine_bench_cpu.measured(*host), True
        show = engine_bench_cpu.show
    if save:
        save.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    if as_json:
        emit("engine-bench", told, ok=ok)
    else:
        show(told)
    return 0 if ok else 1


def _refuse_others(device: str, given: Mapping[str, Any]) -> None:
    """Raise UsageError for an option of ``given`` that was used: none of them is this device's."""
    other = "cpu" if device == "cuda" else "cuda"
    for option, value in given.items():
        if value is not None:
            raise bad(f"{option} {value} with --device {device}: it is of --device {other} alone")


def _check_writable(path: Path) -> None:
    """Raise UsageError before anything is timed, rather than an error that loses the times."""
    try:
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise bad(f"--save {path}: expected a file to write ({error.strerror})") from error
