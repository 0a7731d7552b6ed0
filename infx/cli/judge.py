"""infx judge: the verdict on any aiperf artifact folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli.options import Json

if TYPE_CHECKING:
    from infx.analysis.trials import Trials
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
    from infx.analysis.trials import trials_of
    from infx.analysis.validity import judge_folder
    from infx.cli.judging import FOLDERS, folder_row
    from infx.cli.output import emit, table

    found = [cell for folder in folders for cell in artifact_folders(folder) or [folder]]
    verdicts = [(folder, judge_folder(folder, gpus=gpus)) for folder in found]
    ok, repeated = all(one.status.state == "ok" for _, one in verdicts), trials_of(verdicts)
    if as_json:
        told = {"folders": [_data(*pair) for pair in verdicts], "repeated": repeated}
        emit("judge", told, ok=ok)
    else:
        table(FOLDERS, [folder_row(*pair) for pair in verdicts])
        for trials in repeated:
            _repeated(trials)
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


def _repeated(trials: Trials) -> None:
    """Print what the runs say together that aiperf repeated."""
    from infx.cli.judging import TRIALS, trial_row
    from infx.cli.output import table

    every = trials.runs + trials.invalid
    print(f"\n{trials.folder}: {trials.runs} valid of {every} runs, as one")
    if trials.figures:
        table(TRIALS, [trial_row(figure) for figure in trials.figures])


def _data(folder: Path, verdict: Verdict) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "status": verdict.status.state,
        "code": verdict.status.code,
        "sentence": verdict.status.sentence,
        "findings": verdict.findings,
        "measurement": verdict.measurement,
    }
