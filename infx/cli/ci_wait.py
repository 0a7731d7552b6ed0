"""infx ci wait: the end of a run that goes on by itself."""

from __future__ import annotations

import re
import time
from typing import Annotated

import typer

from infx.cli.options import Json, Results

__all__ = ["register"]

SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def register(commands: typer.Typer) -> None:
    """Add the command to `infx ci`."""
    commands.command(
        "wait",
        help="Wait for the end of a run and report as infx sweep does: exit 6 when it has not ended"
        " yet. Ending the wait ends no job.",
    )(_wait)


def _seconds(text: str) -> float:
    """Return the seconds of ``5h``, ``90m`` or ``1h30m``."""
    if not re.fullmatch(r"([0-9]+[dhms])+", text):
        raise typer.BadParameter(f"{text!r} is no duration; write 5h, 90m or 1h30m")
    return sum(int(n) * SECONDS[unit] for n, unit in re.findall(r"([0-9]+)([dhms])", text))


def _wait(
    run: Annotated[
        str, typer.Argument(metavar="[RUN]", help="a run's name, its beginning, or last")
    ] = "last",
    limit_s: Annotated[
        float | None,
        typer.Option(
            "--for",
            metavar="DURATION",
            parser=_seconds,
            help="at the longest, as in 5h or 90m (default: until it has ended)",
            show_default=False,
        ),
    ] = None,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli.detaching import wait
    from infx.cli.options import existing_store, results_dir
    from infx.store import find_run

    until_s = time.time() + (float("inf") if limit_s is None else limit_s)
    with existing_store(results_dir(results)) as store:
        return wait(store, find_run(store, run), until_s, as_json=as_json)
