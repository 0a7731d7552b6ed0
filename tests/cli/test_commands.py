"""What the commands say, with real plans and stand-in jobs."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import ROOT, STAND_IN, as_json, environment, here, infx
from tests.public_data import shared

SMOL = ("quickstart", "--entry", "smol*")
ANSI = re.compile(r"\x1b\[")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def swept(tmp_path_factory) -> Path:
    """Results of one sweep that went well."""
    results = tmp_path_factory.mktemp("swept")
    done = infx("sweep", *SMOL, "--results", results, program=STAND_IN, STAND_IN_PNG="1")
    assert done.returncode == 0, done.stderr
    (results / "stdout.txt").write_text(done.stdout)
    (results / "stderr.txt").write_text(done.stderr)
    return results


def status(results: Path, *run: str) -> dict[str, Any]:
    return as_json(here("status", *run, "--results", results, "--json"))["data"]


def test_plan_prints_a_ledger_that_adds_up():
    done = here("plan", "quickstart", "--ledger", "--json")
    data = as_json(done)["data"]
    assert done.returncode == 0
    assert sum(data["counts"].values()) == data["candidates"] == len(data["ledger"])
    assert data["counts"]["run"] == len(data["points"])
    assert sum(entry["jobs"] for entry in data["entries"]) == data["cost"]["jobs"]


def test_plan_is_plain_text_without_colour():
    done = infx("plan", *SMOL)
    assert done.returncode == 0
    assert "smollm2-135m-q4-cpu-llamacpp" in done.stdout
    assert " candidates" in done.stdout
    assert not ANSI.search(done.stdout + done.stderr)


def test_a_saved_plan_is_swept_unless_an_input_changed(tmp_path: Path):
    (tmp_path / "configs").mkdir()
    matrix = tmp_path / "configs" / "mine.yaml"
    matrix.write_text((ROOT / "configs/quickstart.yaml").read_text())
    saved = tmp_path / "plan.json"
    assert infx("plan", "mine", "-o", saved, cwd=tmp_path).returncode == 0
    shown = infx("sweep", saved, "--dry-run", "--json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert as_json(shown)["data"]["jobs"]
    matrix.write_text(matrix.read_text() + "\n# later\n")
    refused = infx("sweep", saved, cwd=tmp_path)
    assert refused.returncode == 2
    assert "inputs-changed" in refused.stderr
    assert not (tmp_path / "results").exists()


def test_a_sweep_says_each_change_and_where_the_reports_are(swept: Path):
    told = (swept / "stderr.txt").read_text()
    assert "launched" in told
    assert "server ready" in told
    assert told.count(": ok") == 4
    assert not ANSI.search(told)
    out = (swept / "stdout.txt").read_text()
    for name in ("report.html", "report.png", "report.md", "changelog-draft.yaml"):
        [path] = [Path(line) for line in out.splitlines() if line.endswith(name)]
        assert path.is_file()
    assert "4 of 4 points ok" in out


def test_status_lists_runs_and_points(swept: Path):
    [run] = status(swept)["runs"]
    assert (run["state"], run["ok"], run["points"]) == ("finished", 4, 4)
    shown = status(swept, "last")
    assert {p["status"]["state"] for p in shown["points"]} == {"ok"}
    text = here("status", run["run_id"][:12], "--results", swept)
    assert f"run {run['run_id']} finished: 4 of 4 points ok" in text.stdout


def test_a_run_is_named_by_its_end_too_and_a_wrong_name_is_met_with_the_nearest(swept: Path):
    [run] = status(swept)["runs"]
    assert status(swept, run["run_id"][-4:])["run_id"] == run["run_id"]
    wrong = here("status", run["run_id"][:-1] + "x", "--results", swept)
    assert wrong.returncode == 2
    assert f"did you mean `{run['run_id']}`" in wrong.stderr


def test_logs_prints_the_log_of_a_point(swept: Path):
    label = status(swept, "last")["points"][0]["label"]
    none = here("logs", "last", label, "--server", "--results", swept)
    assert none.returncode == 2
    assert "has no server log yet" in none.stderr
    [attempt] = swept.glob(f"runs/*/jobs/*/a1/points/{label}/../..")
    (attempt / "server.log").write_text("all is well\n")
    for arguments in ([], ["--server"]):
        shown = here("logs", "last", label, *arguments, "--results", swept)
        assert shown.stdout == "all is well\n"
    wrong = here("logs", "last", "smolm", "--results", swept)
    assert (wrong.returncode, "unknown-point" in wrong.stderr) == (2, True)


def test_gather_rebuilds_a_lost_store(swept: Path, tmp_path: Path):
    [folder] = (swept / "runs").iterdir()
    done = infx("gather", folder, "--results", tmp_path, "--json", program=STAND_IN)
    assert done.returncode == 0, done.stderr
    assert len(as_json(done)["data"]["points"]) == 4
    assert status(tmp_path)["runs"][0]["ok"] == 4


def test_report_writes_where_it_is_told(swept: Path, tmp_path: Path):
    page = tmp_path / "page.html"
    done = here("report", "last", "-o", page, "--md", "--results", swept, "--json")
    assert done.returncode == 0, done.stderr
    assert as_json(done)["data"]["files"] == [str(page), str(page.with_suffix(".md"))]
    assert "<html" in page.read_text()


@pytest.mark.parametrize("where", [".", "nowhere/page.html"])
def test_a_report_that_cannot_be_written_is_said(swept: Path, tmp_path: Path, where: str):
    done = here("report", "last", "-o", tmp_path / where, "--results", swept)
    assert (done.returncode, "cannot write the report" in done.stderr) == (2, True)


def test_nothing_is_left_to_resume(swept: Path):
    done = here("resume", "--results", swept)
    assert (done.returncode, "no run is unfinished" in done.stderr) == (2, True)


@pytest.mark.parametrize(("behave", "code"), [("infra", 3), ("crash", 3), ("fail", 4)])
def test_the_exit_code_says_who_must_act(tmp_path: Path, behave: str, code: int):
    done = infx("sweep", *SMOL, "--results", tmp_path, program=STAND_IN, STAND_IN=behave)
    assert done.returncode == code, done.stderr
    assert "0 of 4 points ok" in done.stdout
    found = infx("resume", "--results", tmp_path, "--json", program=STAND_IN)
    if behave == "fail":  # a result: only --retry-failed measures it again
        assert (found.returncode, status(tmp_path)["runs"][0]["ok"]) == (2, 0)
        found = infx("resume", "last", "--retry-failed", "--results", tmp_path, program=STAND_IN)
    assert found.returncode == 0, found.stderr
    assert status(tmp_path)["runs"][0]["ok"] == 4


def test_eval_plans_only_evaluations(tmp_path: Path):
    done = infx(
        *("eval", *SMOL, "--limit", "3", "--shots", "8", "--results", tmp_path, "--json"),
        program=STAND_IN,
    )
    assert done.returncode == 0, done.stderr
    [point] = as_json(done)["data"]["points"]
    assert point["mode"] == "evaluation"
    [plan] = tmp_path.glob("runs/*/plan.json")
    found = json.loads(plan.read_text())
    assert sum(found["counts"].values()) == found["candidates"]
    workload = found["points"][0]["workload"]
    assert (workload["limit"], workload["shots"]) == (3, 8)


def test_eval_of_other_questions_is_another_point(tmp_path: Path):
    ids = set()
    for extra in ("", "{}\n"):
        (tmp_path / "train.jsonl").write_text("{}\n" + extra)
        (tmp_path / "test.jsonl").write_text("{}\n")
        done = infx(
            *("eval", *SMOL, "--task", "gsm8k", "--source", ".", "--json"),
            *("--results", tmp_path / f"results{extra.strip()}"),
            program=STAND_IN,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        [point] = as_json(done)["data"]["points"]
        ids.add(point["point_id"])
    [plan, _] = tmp_path.glob("results*/runs/*/plan.json")
    assert json.loads(plan.read_text())["points"][0]["workload"]["source"] == str(tmp_path)
    assert len(ids) == 2


def start(results: Path, behave: str, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*STAND_IN, "sweep", *SMOL, "--results", str(results), *more],
        cwd=ROOT,
        env=environment(STAND_IN=behave),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until_measuring(results: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if any("point-started" in p.read_text() for p in results.glob("runs/*/jobs/*/a*/ev*")):
            return
        time.sleep(0.05)
    raise AssertionError("nothing is measured")


def test_ctrl_c_once_then_resume(tmp_path: Path):
    child = start(tmp_path, "hang")
    until_measuring(tmp_path)
    busy = infx("resume", "last", "--results", tmp_path, program=STAND_IN)
    assert (busy.returncode, "run-active" in busy.stderr) == (2, True)
    assert f"pid {child.pid}" in busy.stderr
    child.send_signal(signal.SIGINT)
    _, told = child.communicate(timeout=30)
    assert child.returncode == 130, told
    assert "infx resume" in told
    assert status(tmp_path)["runs"][0]["state"] == "cancelled"
    done = infx("resume", "--results", tmp_path, program=STAND_IN)
    assert done.returncode == 0, done.stderr
    assert status(tmp_path)["runs"][0]["state"] == "finished"


def on_a_terminal(results: Path, behave: str) -> tuple[int, int]:
    """Sweep on a terminal of its own; return the process and the terminal's other end."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        command = [*STAND_IN, "sweep", *SMOL, "--results", str(results)]
        os.execvpe(command[0], command, environment(STAND_IN=behave, TERM="xterm"))
    return pid, terminal


def test_a_closed_terminal_stops_the_run_in_order(tmp_path: Path):
    pid, terminal = on_a_terminal(tmp_path, "hang")
    until_measuring(tmp_path)
    os.close(terminal)
    _, code = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(code) == 130
    assert status(tmp_path)["runs"][0]["state"] == "cancelled"
    assert "cancelled" in {p["status"]["state"] for p in status(tmp_path, "last")["points"]}


def test_ctrl_c_twice_on_a_terminal(tmp_path: Path):
    pid, terminal = on_a_terminal(tmp_path, "deaf")
    try:
        until_measuring(tmp_path)
        os.write(terminal, b"\x03")
        time.sleep(0.5)
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
        os.write(terminal, b"\x03")
        shown = _read_all(terminal)
    finally:
        _, code = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(code) == 130, shown
    assert "LAST VERDICT" in shown
    assert "longer than expected" not in shown
    assert "Traceback" not in shown


def _read_all(terminal: int) -> str:
    shown = b""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other end is closed
            return shown.decode(errors="replace")
        if not data:
            return shown.decode(errors="replace")
        shown += data


def test_cancel_from_another_shell(tmp_path: Path):
    child = start(tmp_path, "hang", "--json")
    until_measuring(tmp_path)
    assert status(tmp_path)["runs"][0]["state"] == "running"
    done = infx("cancel", "last", "--results", tmp_path)
    assert (done.returncode, f"pid {child.pid}" in done.stdout) == (0, True)
    out, _ = child.communicate(timeout=30)
    assert child.returncode == 130
    assert json.loads(out)["data"]["exit_code"] == 130
    again = here("cancel", "last", "--results", tmp_path)
    assert "nobody drives it" in again.stdout


def test_a_killed_run_is_shown_as_interrupted(tmp_path: Path):
    child = start(tmp_path, "hang")
    until_measuring(tmp_path)
    child.kill()
    child.communicate()
    assert status(tmp_path)["runs"][0]["state"] == "interrupted"


def test_watch_follows_a_run_to_its_end(tmp_path: Path):
    child = start(tmp_path, "hang")
    until_measuring(tmp_path)
    watcher = subprocess.Popen(
        [*STAND_IN, "watch", "last", "--results", str(tmp_path)],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(2)
    assert watcher.poll() is None
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=30)
    out, _ = watcher.communicate(timeout=30)
    assert (watcher.returncode, "0 of 4 points ok" in out) == (0, True)


def test_doctor_and_config_answer_in_both_forms():
    checks = as_json(here("doctor", "--json"))["data"]["checks"]
    assert {"python", "aiperf", "results", "cores"} <= {check["name"] for check in checks}
    assert all(check["fix"] for check in checks if check["level"] != "pass")
    assert here("doctor").stdout.startswith("CHECK")
    wrong = here("doctor", "--results", __file__)
    assert (wrong.returncode, f"{__file__} is a file" in wrong.stdout) == (3, True)
    shown = as_json(here("config", "show", "--json"))["data"]
    assert shown["project"] == str(ROOT)
    assert "1.48 $/GPU/h (hyperscaler: InferenceX-app, as of 2026-04)" in shown["hardware mi355x"]
    assert "2650 W/GPU provisioned, not measured" in shown["hardware mi355x"]
    schemas = as_json(here("config", "schema", "--json"))["data"]
    of_rules = {"bars", "engines", "evidence", "labels", "model-status", "signoff", "source"}
    assert set(schemas) == {"matrix", "recipe", "clusters", "hardware", "bundle"} | of_rules
    assert json.loads(here("config", "schema", "bars").stdout) == schemas["bars"]
    assert "did you mean `bars`?" in here("config", "schema", "bar").stderr
    listed = as_json(here("config", "schema", "--list", "--json"))["data"]["names"]
    assert set(listed) == set(schemas)


def test_judge_speaks_of_every_folder():
    exports = shared("data/aiperf_exports")
    folders = sorted({path.parent for path in exports.rglob("profile_export_aiperf.json")})
    done = here("judge", *folders, "--json")
    found = as_json(done)["data"]["folders"]
    assert done.returncode == (0 if all(f["status"] == "ok" for f in found) else 1)
    assert len(found) == len(folders)
    assert all(f["code"] for f in found if f["status"] == "invalid")
    whole = as_json(here("judge", exports, "--json"))["data"]["folders"]
    assert {f["folder"] for f in whole} >= {f["folder"] for f in found}
