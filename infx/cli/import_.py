"""infx import: files of other benchmarks as matrices, recipes and clusters of infx."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from infx.cli.inferencex import ConfigKeys, Runners, read_theirs, split, told
from infx.cli.options import Json

if TYPE_CHECKING:
    from infx.config.inferencex.native import Native

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("import", help="Write matrices and recipes from files of InferenceX.")(_import)


def _import(
    context: typer.Context,
    sources: Annotated[
        list[str], typer.Argument(metavar="FILE…", help="master configurations of InferenceX")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FOLDER", help="the project that they are written into"
        ),
    ],
    format_: Annotated[
        Literal["inferencex"], typer.Option("--format", help="whose files these are")
    ] = "inferencex",
    config_keys: ConfigKeys = None,
    runners: Runners = None,
    k: Annotated[
        int | None,
        typer.Option("--k", metavar="K", min=1, help="drafts a step of the rows with drafts"),
    ] = None,
    golden: Annotated[
        list[str] | None,
        typer.Option("--golden", metavar="NAME", help="golden curves to use where several fit"),
    ] = None,
    as_json: Json = False,
) -> int:
    from infx.cli.output import emit
    from infx.config.inferencex.files import files_of
    from infx.config.inferencex.native import to_native
    from infx.config.inferencex.select import Selection
    from infx.config.inferencex.shelf import Shelf
    from infx.config.project import Project, packaged

    masters = read_theirs(sources, context.params)
    project = Project(output.resolve(), packaged())
    keys = Selection(config_keys=split("--config-keys", config_keys)).keys(masters.entries)
    shelf = Shelf.of(project, split("--golden", golden))
    native = to_native(masters, keys, shelf, k)
    files = _write(files_of(native, project))
    findings = (*masters.findings, *native.notes.findings)
    code = 5 if not native.written else 4 if native.left_out else 0
    data = _data(native, files)
    if as_json:
        emit("import", data, ok=not code, diagnostics=findings)
        return code
    told(findings)
    print("\n".join(files))
    print(f"{data['entries']} entries: {native.written} rows written, {native.left_out} left out")
    return code


def _write(texts: Mapping[Path, str]) -> list[str]:
    """Write files and return their paths. Raises UsageError where they cannot be written."""
    from infx.domain.errors import UsageError

    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        except OSError as error:
            message = f"{path} cannot be written: {error.strerror}"
            raise UsageError("bad-option", message, hint="name another folder with -o") from None
    return [str(path) for path in texts]


def _data(native: Native, files: list[str]) -> dict[str, Any]:
    return {
        "files": files,
        "entries": sum(map(len, native.matrices.values())),
        "rows_written": native.written,
        "rows_left_out": native.left_out,
    }
