"""infx: one command line for plans, sweeps and what came out of them."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from infx.cli import (
    accuracy,
    bundle,
    cancel,
    changelog,
    ci,
    cluster,
    compare,
    config,
    diff,
    doctor,
    engine,
    eval,
    export,
    frontier,
    gather,
    golden,
    import_,
    judge,
    logs,
    plan,
    report,
    repro,
    resume,
    review,
    serve,
    status,
    store,
    sweep,
    watch,
)

__all__ = ["app", "main"]


class _Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        """Run the command; one that is interrupted says so, where typer says nothing."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            from infx.cli.boundary import interrupted

            raise interrupted(ctx.invoked_subcommand or "") from error


app = typer.Typer(
    name="infx",
    cls=_Commands,
    help="Which server configuration gives which point of the throughput-interactivity frontier.",
    epilog=(
        "Exit codes: 0 ok, 1 findings, 2 usage or configuration, 3 infrastructure (retry), "
        "4 partial, 5 empty plan, 6 not ended yet, 70 a fault of infx, 130 interrupted."
    ),
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help costs 0.15 s where rich help costs 0.3
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _module in (
    plan,
    diff,
    sweep,
    status,
    watch,
    logs,
    cancel,
    resume,
    gather,
    judge,
    report,
    compare,
):
    _module.register(app)
for _module in (
    repro,
    frontier,
    accuracy,
    changelog,
    ci,
    bundle,
    review,
    store,
    import_,
    export,
    eval,
    golden,
    config,
    cluster,
    doctor,
    serve,
    engine,
):
    _module.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        import infx

        print(f"infx {infx.__version__}")
        raise typer.Exit


@app.callback()
def _infx(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line and exit with its code."""
    from infx.cli.boundary import run

    arguments = sys.argv[1:]
    as_json = "--json" in arguments and arguments[0] != "serve"
    sys.exit(run(lambda: app(standalone_mode=False, prog_name="infx"), as_json=as_json))
