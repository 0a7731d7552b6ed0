"""The live table: what a narrow terminal may cut."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from infx.cli.progress import _picture, _row
from infx.launch.board import Board
from infx.launch.events import Event
from tests.store.tiny_plans import job, plan, stands


@pytest.mark.parametrize("width", [80, 100, 140])
def test_a_narrow_terminal_cuts_names_and_verdicts_only(width: int):
    whole = plan(
        *[replace(job(n), name=f"a-long-name-of-a-job-with-c{n}-and-more") for n in (1, 2)]
    )
    board = Board.of("run", whole, stands(whole))
    line = next(iter(board.lines.values()))
    board.launched(line.job.job_id, 1, 0)
    board.event(line.job.job_id, Event(t=0, event="server-starting", expected_s=200))
    line.verdict = "failed:server-died: exit code 1, in a sentence that goes on and on"
    console = Console(width=width)
    with console.capture() as capture:
        console.print(_picture(board, "", 100, width))
    shown = capture.get()
    for word in ("0/2", "starting the server", "1 min 40 s of 3 min 20 s", "c2-and-more", "fail"):
        assert word in shown
    assert all(len(row) <= width for row in shown.splitlines())


@pytest.mark.parametrize(
    ("why", "now", "absent"),
    [
        ("not looked at yet (None)", "queued", "None"),
        ("waits (Resources)", "queued (Resources)", "of"),
        (
            "down (Nodes required for job are DOWN, DRAINED)",
            "queued (Nodes required for jo…)",
            "DOWN",
        ),
    ],
)
def test_a_queued_row_says_why_in_few_letters_and_expects_nothing(why: str, now: str, absent: str):
    whole = plan(job(1))
    board = Board.of("run", whole, stands(whole))
    line = next(iter(board.lines.values()))
    board.launched(line.job.job_id, 1, 0)
    board.polled(line.job.job_id, "queued", why)
    _, done, shown, took, _ = _row(line, 65)
    assert (done, shown, took) == ("0/2", now, "1 min 05 s")
    assert absent not in shown
