"""infx golden: acceptance lengths, collected on a live engine, checked and shown."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infx.cli.golden_asking import (
    Conc,
    Count,
    Framework,
    Hardware,
    Ks,
    KwargsOff,
    KwargsOn,
    Matrices,
    ModelId,
    OutputLen,
    PromptFile,
    Sampled,
    Seed,
    Shots,
    Temperature,
    Thinking,
    TopK,
    TopP,
    Url,
    k_range,
    modes,
)
from infx.cli.options import Json, Results

if TYPE_CHECKING:
    from infx.cli.golden_driving import Collected
    from infx.golden.judging import Verdict

__all__ = ["register"]

EntryName = Annotated[
    str, typer.Argument(metavar="[NAME]", help="an entry of -c, or a recipe; not with --url")
]
Method = Annotated[
    str, typer.Option("--method", metavar="NAME", help="eagle3, dspark … (default: the entry's)")
]

_HEADERS = ("THINKING", "K", "LENGTH", "±", "STEPS", "BATCHES", "SECONDS")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="Acceptance lengths: collect, check, show.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("collect", help="Measure acceptance lengths on a live engine.")(_collect)
    group.command("check", help="Measure again and say whether a golden file still holds.")(_check)
    group.command("show", help="Show golden files: lengths, intervals, source.")(_show)
    app.add_typer(group, name="golden")


def _collect(
    name: EntryName = "",
    config: Matrices = None,
    url: Url = None,
    framework: Framework = "infx",
    model: ModelId = "",
    method: Method = "",
    k: Ks = None,
    thinking: Thinking = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="the golden file (default: golden_al/MODEL_METHOD.yaml)",
        ),
    ] = None,
    prompts: PromptFile = None,
    count: Count = None,
    shots: Shots = None,
    seed: Seed = None,
    conc: Conc = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    top_k: TopK = None,
    output_len: OutputLen = None,
    kwargs_on: KwargsOn = None,
    kwargs_off: KwargsOff = None,
    hardware: Hardware = "",
    again: Annotated[
        bool, typer.Option("--again", help="measure values that are there too")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="forget what the file holds")] = False,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli.golden_driving import Collecting, collect
    from infx.cli.golden_engine import Choice
    from infx.cli.options import results_dir

    sampled = Sampled(
        prompt_file=prompts,
        count=count,
        shots=shots,
        seed=seed,
        conc=conc,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        output_len=output_len,
        kwargs={"on": kwargs_on, "off": kwargs_off},
    )
    choice = Choice(
        name=name,
        matrices=tuple(config or ()),
        url=url or "",
        framework=framework,
        model=model,
        method=method,
        hardware=hardware,
    )
    asked = Collecting(
        ks=k_range(k) if k else (),
        modes=modes(thinking or "on,off"),
        output=output,
        logs=results_dir(results) / "golden" / (name or "url"),
        command=shlex.join(["infx", *sys.argv[1:]]),
        again=again,
        fresh=fresh,
    )
    return _collected(collect(choice, sampled, asked), as_json)


def _check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="a name in golden_al/, or a path")],
    name: Annotated[
        str,
        typer.Argument(metavar="[NAME]", help="the engine (default: the one that was measured)"),
    ] = "",
    config: Matrices = None,
    url: Url = None,
    framework: Framework = "infx",
    model: ModelId = "",
    method: Method = "",
    k: Ks = None,
    thinking: Thinking = None,
    prompts: PromptFile = None,
    count: Count = None,
    shots: Shots = None,
    seed: Seed = None,
    conc: Conc = None,
    temperature: Temperature = None,
    top_p: TopP = None,
    top_k: TopK = None,
    output_len: OutputLen = None,
    kwargs_on: KwargsOn = None,
    kwargs_off: KwargsOff = None,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli.golden_driving import check, held
    from infx.cli.golden_engine import Choice, golden_path
    from infx.cli.options import project, results_dir

    sampled = Sampled(
        prompt_file=prompts,
        count=count,
        shots=shots,
        seed=seed,
        conc=conc,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        output_len=output_len,
        kwargs={"on": kwargs_on, "off": kwargs_off},
    )
    choice = Choice(
        name=name,
        matrices=tuple(config or ()),
        url=url or "",
        framework=framework,
        model=model,
        method=method,
    )
    golden = held(golden_path(file, project()))
    logs = results_dir(results) / "golden" / f"check-{golden.path.stem}"
    return _checked(golden.path, check(golden, choice, sampled, k, thinking, logs), as_json)


def _collected(found: Collected, as_json: bool) -> int:
    from infx.cli.boundary import INTERRUPTED
    from infx.cli.golden_showing import collected_rows
    from infx.cli.output import emit, say, table

    code = 0 if found.whole else INTERRUPTED
    rows = collected_rows(found.curve) if found.curve else []
    if as_json:
        data = {"file": str(found.path), "whole": found.whole, "values": rows}
        emit("golden-collect", data, ok=found.whole)
    elif rows:
        table(_HEADERS, [row.cells for row in rows])
        print(f"\n{found.path}")
        if any(row.is_wide for row in rows):
            say("intervals are wider than 1 % of their length; more prompts (--count) narrow them")
    if not found.whole:
        say("stopped; the same command measures the rest")
    return code


def _checked(path: Path, verdicts: Sequence[Verdict], as_json: bool) -> int:
    from infx.cli.golden_showing import check_cells, differing
    from infx.cli.output import emit, say, table

    findings = [differing(path.name, verdict) for verdict in verdicts if not verdict.holds]
    if as_json:
        data = {"file": str(path), "verdicts": verdicts}
        emit("golden-check", data, ok=not findings, diagnostics=findings)
    else:
        headers = ("THINKING", "K", "GOLDEN", "±", "NOW", "±", "MAY DIFFER BY", "HOLDS")
        table(headers, [check_cells(verdict) for verdict in verdicts])
        for finding in findings:
            say(str(finding))
    return 1 if findings else 0


def _show(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE…]", help="names in golden_al/, or paths (default: all)"),
    ] = None,
    as_json: Json = False,
) -> int:
    from infx.cli.golden_driving import held
    from infx.cli.golden_engine import golden_path
    from infx.cli.golden_showing import golden_data, print_golden
    from infx.cli.options import project
    from infx.cli.output import emit

    here = project()
    found = [held(golden_path(name, here)) for name in files or here.goldens()]
    if as_json:
        emit("golden-show", {"files": [golden_data(golden) for golden in found]})
        return 0
    for number, golden in enumerate(found):
        print("\n" if number else "", end="")
        print_golden(golden)
    return 0
