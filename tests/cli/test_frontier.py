"""infx frontier as a command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import INFX, as_json, here

TABLE = """\
name,conc,interactivity,tput
a,1,187.5,100
b,2,150,210
c,2,140,200
d,4,90,390
"""
ASKED = ("--x", "interactivity:max", "--y", "tput:max")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    return path


def test_a_table_is_judged(table: Path) -> None:
    done = here("frontier", table, *ASKED)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[3] == ["line", "4", "c", "140", "200", "-", "line", "3"]
    assert [line[-2:] for line in lines[1:3]] == [["on", "-"]] * 2
    assert "3 of 4 rows on the frontier; 5 or more are advised." in done.stdout
    assert "rows that are equal on all axes" in " ".join(done.stdout.split())


def test_one_row_is_told_as_one(table: Path) -> None:
    done = here("frontier", table, *ASKED, "--only", "name=a")
    assert "1 of 1 row on the frontier; 5 or more are advised." in done.stdout
    assert "Left out by --only: 3 rows." in done.stdout


def test_as_json_with_groups_and_a_third_axis(table: Path) -> None:
    more = ("--axis", "conc:min", "--group", "conc", "--only", "conc=2", "--json")
    data = as_json(here("frontier", table, *ASKED, *more))["data"]
    assert [axis["column"] for axis in data["axes"]] == ["interactivity", "tput", "conc"]
    assert data["fronts"] == [{"group": {"conc": "2"}, "on": 1, "rows": 2, "advised": 5}]
    assert [(row["label"], row["on"]) for row in data["rows"]] == [
        ("line 3", True),
        ("line 4", False),
    ]
    assert (data["left_out"], data["rows"][1]["dominated_by"]) == (2, "line 3")


def test_a_table_may_come_by_a_pipe(table: Path) -> None:
    rows = json.dumps([{"x": 1, "y": 2}, {"x": 2, "y": 3}])
    words = ["frontier", "-", "--x", "x:min", "--y", "y:max", "--json"]
    done = subprocess.run(
        [*INFX, *words],
        input=rows, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert [row["on"] for row in json.loads(done.stdout)["data"]["rows"]] == [True, True]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--x", "interactivity", "--y", "tput:max"), "does not say what is better"),
        (("--x", "interactivity:mux", "--y", "tput:max"), "interactivity:max where more is better"),
        (("--x", "interactivty:max", "--y", "tput:max"), "did you mean `interactivity`?"),
        (("--x", "tput:max", "--y", "tput:min"), "a column is two axes"),
        ((*ASKED, "--only", "conc"), "--only 'conc' names no text"),
        ((*ASKED, "--group", "tp"), "has no column 'tp'"),
        ((*ASKED, "--only", "conc=7"), "no row of"),
        (("--x", "name:max", "--y", "tput:max"), "t.csv:2:1: bad-cell row 1: name holds a"),
        (("--x", "interactivity:max"), "--y"),
    ],
)
def test_what_cannot_be_judged_exits_with_2(
    table: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = here("frontier", table, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_bytes(b"x,y\n\xff,1\n")
    for name, code in (("none.csv", "file-not-found"), ("b.csv", "not-utf8"), ("", "unreadable")):
        done = here("frontier", tmp_path / name, *ASKED)
        assert (done.returncode, code in done.stderr) == (2, True), done.stderr
