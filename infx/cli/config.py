"""infx config: what infx reads and where it finds it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli.options import Json, Results

if TYPE_CHECKING:
    from infx.config.project import Project

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="Show schemas and where files are found.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command("schema", help="Print the JSON Schemas of the YAML files.")(_schema)
    group.command("show", help="Say which folders and versions are in use, and why.")(_show)
    app.add_typer(group, name="config")


def _schema(
    write: Annotated[
        bool, typer.Option("--write", help="write configs/schema/*.json in the project")
    ] = False,
    as_json: Json = False,
) -> int:
    import json

    from infx.cli.options import project
    from infx.cli.output import emit
    from infx.config import schema

    if write:
        paths = [str(p) for p in schema.write_schemas(project().root / "configs" / "schema")]
        if as_json:
            emit("config-schema", {"files": paths})
        else:
            print("\n".join(paths))
        return 0
    made = {
        "matrix": schema.matrix_schema(),
        "recipe": schema.recipe_schema(),
        "clusters": schema.clusters_schema(),
        "hardware": schema.hardware_schema(),
    }
    if as_json:
        emit("config-schema", made)
    else:
        print(json.dumps(made, indent=2, ensure_ascii=False))
    return 0


def _show(results: Results = None, as_json: Json = False) -> int:
    from infx.cli.output import emit, table

    settings = _settings(results)
    if as_json:
        emit("config-show", {name: value for name, value, _ in settings})
    else:
        table(("SETTING", "VALUE", "FROM"), settings)
    return 0


def _settings(results: Path | None) -> list[tuple[str, Any, str]]:
    import infx
    from infx.cli.options import project, results_dir

    here = project()
    own = (here.root / "configs").is_dir()
    return [
        ("project", str(here.root), "nearest folder with configs/" if own else "working folder"),
        ("packaged files", str(here.fallback), "infx itself, where the project has none"),
        ("results", str(results_dir(results)), _origin(results)),
        ("matrices", ", ".join(here.matrices()), "configs/"),
        ("recipes", ", ".join(here.recipes()), "recipes/"),
        ("golden lengths", ", ".join(here.goldens()), "golden_al/"),
        ("clusters", here.shown(here.clusters_path()), "configs/"),
        *_constants(here),
        ("infx", infx.__version__, str(Path(infx.__file__).parent)),
    ]


def _constants(here: Project) -> list[tuple[str, Any, str]]:
    from infx.analysis.cost import provisioned_told, told
    from infx.config.hardware import read_hardware

    place = here.shown(here.hardware_path())
    rows: list[tuple[str, Any, str]] = []
    for name, hardware in read_hardware(here).items():
        power = [provisioned_told(hardware.provisioned)] if hardware.provisioned else []
        rows.append((f"hardware {name}", "; ".join([*map(told, hardware.prices), *power]), place))
    return rows


def _origin(results: Path | None) -> str:
    if results is None:
        return "default"
    return "INFX_RESULTS" if os.environ.get("INFX_RESULTS") == str(results) else "--results"
