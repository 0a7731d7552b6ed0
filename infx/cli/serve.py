"""infx serve: infx's own engine as an OpenAI-compatible server."""

from __future__ import annotations

import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command; every argument goes to the engine."""
    settings = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    app.command(
        "serve",
        help="Serve a model over the OpenAI API with infx's own engine.",
        context_settings=settings,
        add_help_option=False,
    )(_serve)


def _serve(context: typer.Context) -> int:
    from infx.engine.__main__ import main

    code: int = main(context.args)
    return code
