"""infx judge: the verdict on any aiperf artifact folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli.options import Json

if TYPE_CHECKING:
    from infx.analysis.validity import Verdict

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("judge", help="Say whether aiperf's export folders hold valid figures.")(_judge)


def _judge(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER…", help="artifact folders, or folders of them")
    ],
    gpus: Annotated[
        int, typer.Option("--gpus", min=1, help="accelerators that throughput is divided by")
    ] = 1,
    as_json: Json = False,
) -> int:
    from infx.analysis.export import artifact_folders
    from infx.analysis.validity import judge_folder
    from infx.cli.judging import FOLDERS, folder_row
    from infx.cli.output import emit, table

    found = [cell for folder in folders for cell in artifact_folders(folder) or [folder]]
    verdicts = [(folder, judge_folder(folder, gpus=gpus)) for folder in found]
    ok = all(verdict.status.state == "ok" for _, verdict in verdicts)
    if as_json:
        emit("judge", {"folders": [_data(*pair) for pair in verdicts]}, ok=ok)
    else:
        table(FOLDERS, [folder_row(*pair) for pair in verdicts])
        if len(verdicts) == 1:
            _whole(verdicts[0][1])
    return 0 if ok else 1


def _whole(verdict: Verdict) -> None:
    """Print all that is known of one folder."""
    from infx.cli.judging import FIGURES, account, figure_rows
    from infx.cli.output import table

    for finding in verdict.findings:
        print(f"{finding.level}: {finding.code}: {finding.sentence}")
    if found := verdict.measurement:
        print(*account(found), sep="\n")
        table(FIGURES, list(figure_rows(found)))


def _data(folder: Path, verdict: Verdict) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "status": verdict.status.state,
        "code": verdict.status.code,
        "sentence": verdict.status.sentence,
        "findings": verdict.findings,
        "measurement": verdict.measurement,
    }
