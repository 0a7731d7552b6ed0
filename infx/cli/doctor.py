"""infx doctor: what this machine has and lacks."""

from __future__ import annotations

import typer

from infx.cli.options import Json, Results

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", help="Check this machine; say how to mend what is missing.")(_doctor)


def _doctor(results: Results = None, as_json: Json = False) -> int:
    from infx.cli.options import results_dir
    from infx.cli.output import emit, table
    from infx.launch.lab.checks import check_slurm
    from infx.launch.machine import check_machine

    checks = [*check_machine(results_dir(results)), *check_slurm()]
    ok = all(check.level != "fail" for check in checks)
    if as_json:
        emit("doctor", {"checks": checks}, ok=ok)
    else:
        headers = ("CHECK", "LEVEL", "FOUND", "FIX")
        table(headers, [(c.name, c.level, c.found, c.fix) for c in checks])
    return 0 if ok else 3
