"""Every error is one sentence with its code, an exit code that says who must act, no traceback."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from infx.cli.boundary import INTERNAL, run
from infx.cli.main import app
from infx.store import FILE, Store
from infx.store.schema import VERSION
from tests.cli.commands import INFX, ROOT, as_json, environment, here, infx

ENTRY = (ROOT / "configs/quickstart.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["pln"], 2, ["bad-option", "Did you mean 'plan'"]),
        (["plan"], 2, ["bad-option", "infx plan --help"]),
        (["plan", "--bogus"], 2, ["bad-option", "--bogus"]),
        (["plan", "quikstart"], 2, ["file-not-found", "did you mean `quickstart`"]),
        (["plan", "configs/nowhere.yaml"], 2, ["file-not-found", "configs/nowhere.yaml"]),
        (["plan", "quickstart", "--entry", "smolm"], 2, ["bad-option", "known: "]),
        (["plan", "quickstart", "--on", "loca"], 2, ["unknown-reference", "`local`"]),
        (["sweep", "nowhere.json"], 2, ["file-not-found", "nowhere.json"]),
        (["sweep", "a.json", "b.yaml"], 2, ["bad-option", "is run as it is"]),
        (["eval", "quickstart", "--task", "gsm8"], 2, ["bad-option", "did you mean `gsm8k`"]),
        (["eval", "quickstart", "--source", "/nowhere"], 2, ["bad-option", "/nowhere"]),
        (["status", "--results", "/nowhere"], 2, ["unknown-run", "/nowhere"]),
        (["resume", "--results", "/nowhere"], 2, ["unknown-run", "/nowhere"]),
        (["eval", "quickstart", "--source", "/tmp"], 2, ["bad-option", "gsm_mini has no other"]),
        (["eval", "quickstart", "--task", "gsm8k", "--source", "/dev"], 2, ["/dev/train.jsonl"]),
        (["judge", "/nowhere"], 2, ["/nowhere"]),
        (["gather", "/nowhere/run"], 2, ["/nowhere/run"]),
    ],
)
def test_a_wrong_command_line_exits_2(arguments, code, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("INFX_RESULTS", str(tmp_path))
    got = run(lambda: app(arguments, standalone_mode=False, prog_name="infx"), as_json=False)
    out, told = capsys.readouterr()
    assert got == code, told
    assert out == ""
    assert "Traceback" not in told
    for word in words:
        assert word in told


def test_errors_are_one_json_object_when_asked():
    done = infx("plan", "quikstart", "--json")
    assert done.returncode == 2
    assert done.stderr == ""
    found = as_json(done)
    assert (found["ok"], found["data"]) == (False, None)
    assert [d["code"] for d in found["diagnostics"]] == ["file-not-found"]


def test_usage_errors_are_json_too():
    found = as_json(here("status", "--json", "--bogus"))
    assert found["diagnostics"][0]["code"] == "bad-option"


def test_faults_of_a_file_come_all_at_once_with_their_places(tmp_path: Path):
    path = tmp_path / "bad.yaml"
    path.write_text(ENTRY.replace("framework:", "framewrk:"))
    done = here("plan", path)
    assert done.returncode == 2
    assert done.stderr.count("unknown-key") == ENTRY.count("framework:")
    assert "did you mean `framework`" in done.stderr
    assert "^~" in done.stderr


def test_an_empty_plan_exits_5_and_makes_no_run(tmp_path: Path):
    path = tmp_path / "empty.yaml"
    entry = ENTRY[: ENTRY.index("evaluations:")]
    rule = "exclude: [{when: conc > 0, reason: nothing is wanted}]"
    path.write_text(f"{entry.rstrip()}\n      {rule}\n")
    planned = here("plan", path)
    assert planned.returncode == 5, planned.stderr + planned.stdout
    assert "3 excluded = 3 candidates" in planned.stdout
    assert f"nothing is wanted ({path}:" in planned.stdout
    done = here("sweep", path, "--results", tmp_path / "results")
    assert done.returncode == 5
    assert "empty-plan" in done.stderr
    assert not list((tmp_path / "results").glob("runs/*"))


def test_a_store_of_a_newer_infx_is_refused(tmp_path: Path):
    Store(tmp_path / FILE).close()
    with sqlite3.connect(tmp_path / FILE) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    done = here("status", "--results", tmp_path)
    assert done.returncode == 2
    assert "store-newer" in done.stderr


def test_a_broken_store_exits_3(tmp_path: Path):
    (tmp_path / FILE).write_text("no database " * 200)
    done = here("status", "--results", tmp_path)
    assert done.returncode == 3
    assert "store-corrupt" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_exits_3():
    done = here("plan", "quickstart", "-o", "/dev/full")
    assert done.returncode == 3
    assert "disk-full" in done.stderr


def test_a_folder_that_was_deleted_under_the_shell_is_said(tmp_path: Path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'cd "$0" && rmdir "$0" && exec "$@"'
    program = ["sh", "-c", script, str(gone), *INFX]
    for command in (["status"], ["plan", "quickstart"], ["doctor"]):
        gone.mkdir(exist_ok=True)
        done = infx(*command, program=program)
        assert (done.returncode, "the working folder is gone" in done.stderr) == (2, True)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_fault(tmp_path: Path, closed: str):
    Store(tmp_path / FILE).close()
    done = infx("status", "--results", tmp_path, program=["sh", "-c", f'"$@" {closed}', "-", *INFX])
    assert (done.returncode, done.stderr) == (0, "")
    wrong = infx(
        "status", "x", "--results", tmp_path, program=["sh", "-c", f'"$@" {closed}', "-", *INFX]
    )
    assert (wrong.returncode, wrong.stdout) == (2, "")


def test_talk_to_a_closed_pipe_ends_nothing():
    code = "from infx.cli.output import say\nfor n in range(3): say('hello')\nprint('on')"
    program = ["sh", "-c", '("$@" 2>&1 >&3 | true) 3>&1', "-", INFX[0], "-c"]
    assert infx("import time; time.sleep(.2)\n" + code, program=program).stdout == "on\n"


BROKEN = "import infx.cli.status as s; s._list_runs = lambda *a: 1 / 0;"


def test_a_fault_of_infx_keeps_its_traceback_and_shows_none(tmp_path: Path):
    Store(tmp_path / FILE).close()
    program = [INFX[0], "-c", BROKEN + INFX[2]]
    done = infx("status", "--results", tmp_path, program=program, XDG_STATE_HOME=str(tmp_path))
    assert done.returncode == INTERNAL
    assert "internal" in done.stderr
    assert "Traceback" not in done.stderr
    [kept] = (tmp_path / "infx").iterdir()
    assert str(kept) in done.stderr
    assert "ZeroDivisionError" in kept.read_text()


def test_debug_shows_the_traceback(tmp_path: Path):
    done = infx("status", "--results", tmp_path, INFX_DEBUG="1")
    assert done.returncode == 2
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"), [(["config", "schema"], 0), (["plan", "--bogus", "--json"], 2)]
)
def test_a_reader_that_leaves_is_no_error(arguments: list[str], code: int):
    with subprocess.Popen(
        [*INFX, *arguments],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout
        assert child.stderr
        os.close(child.stdout.fileno())
        said = child.stderr.read().decode()
        child.stdout = None
    assert (said, child.returncode) == ("", code)


@pytest.mark.parametrize(("command", "hint"), [("status", ""), ("resume", "infx resume continues")])
def test_an_interrupted_command_says_so(command, hint, tmp_path, monkeypatch):
    def interrupt(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("infx.cli.options.existing_store", interrupt)
    done = here(command, "--results", tmp_path)
    assert (done.returncode, done.stdout) == (130, "")
    first, *rest = done.stderr.splitlines()
    assert first == f"infx: interrupted: infx {command} was stopped"
    assert [line.strip()[: len(hint)] for line in rest] == ([hint] if hint else [])
    told = as_json(here(command, "--results", tmp_path, "--json"))
    assert told["diagnostics"][0]["code"] == "interrupted"
