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

_FILES = {
    "matrix": "configs/*.yaml",
    "recipe": "recipes/*.yaml",
    "clusters": "configs/clusters.yaml",
    "hardware": "configs/hardware.yaml",
    "bundle": "the JSON files of a bundle, by their names: infx bundle",
    "labels": "configs/review/labels.yaml, infx ci plan --labels",
}
"""What the schemas are of; the others are the reviewer's rules."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="Show schemas and where files are found.", no_args_is_help=True, rich_markup_mode=None
    )
    group.command("schema", help="Print the JSON Schemas of the files that infx reads.")(_schema)
    group.command("show", help="Say which folders and versions are in use, and why.")(_show)
    app.add_typer(group, name="config")


def _schema(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="these alone; all by default")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="write configs/schema/*.json in the project")
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="say which there are, and of what")
    ] = False,
    as_json: Json = False,
) -> int:
    import json

    from infx.cli.output import emit

    if write:
        return _write_schemas(as_json)
    made = _chosen(names or [])
    if listed:
        return _list_schemas(made, as_json)
    if as_json:
        emit("config-schema", made)
    else:
        whole = made if len(made) > 1 else next(iter(made.values()))
        print(json.dumps(whole, indent=2, ensure_ascii=False))
    return 0


def _chosen(names: list[str]) -> dict[str, dict[str, Any]]:
    """Return the schemas of these names, of all without one. Raises UsageError."""
    from infx.config import schema
    from infx.config.suggestions import did_you_mean
    from infx.domain.errors import UsageError
    from infx.review.schema import schemas

    every = {
        "matrix": schema.matrix_schema(),
        "recipe": schema.recipe_schema(),
        "clusters": schema.clusters_schema(),
        "hardware": schema.hardware_schema(),
        **schemas(),
    }
    for name in names:
        if name not in every:
            hint = did_you_mean(name, every) or f"expected one of {', '.join(every)}"
            raise UsageError("bad-option", f"there is no schema `{name}`: {hint}")
    return {name: every[name] for name in names or every}


def _list_schemas(made: dict[str, dict[str, Any]], as_json: bool) -> int:
    from infx.cli.output import emit, table

    rows = [(name, _FILES.get(name, f"configs/review/{name}.yaml")) for name in made]
    if as_json:
        emit("config-schema", {"names": dict(rows)})
    else:
        table(("NAME", "OF"), rows)
    return 0


def _write_schemas(as_json: bool) -> int:
    """Write the schemas of a project's files, those of the reviewer's rules where it has some."""
    from infx.cli.options import project
    from infx.cli.output import emit
    from infx.config import schema
    from infx.review.schema import OURS, write_schemas

    configs = project().root / "configs"
    paths = schema.write_schemas(configs / "schema")
    if (configs / "review").is_dir():
        paths += write_schemas(configs / "schema" / "review", (*OURS, "labels"))
    if as_json:
        emit("config-schema", {"files": [str(path) for path in paths]})
    else:
        print("\n".join(map(str, paths)))
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
