"""infx ci stop: what a pull request no longer asks for ends, what it still asks for goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.plan import Plan
from infx.plan.saved import write_plan
from infx.store import FILE, Store
from tests.cli.commands import as_json, here
from tests.cli.pull_requests import Lab, lab_in


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = lab_in(tmp_path / "lab")
    monkeypatch.chdir(made.folder)
    return made


def under_way(lab: Lab, plan: Plan) -> str:
    """A run that nobody drives, of which the second concurrency has no record yet."""
    return lab.swept(plan, lambda one: None if one.point.conc == 2 else one)


def saved(lab: Lab, plan: Plan) -> Path:
    path = lab.folder / "plan.json"
    write_plan(plan, path)
    return path


def state(lab: Lab, run: str) -> str:
    with Store(lab.folder / "results" / FILE) as store:
        return next(row.state for row in store.runs() if row.run_id == run)


STOP = ("ci", "stop", "--event", "event.json")


def test_a_run_that_measures_all_of_the_plan_goes_on(lab: Lab) -> None:
    run = under_way(lab, lab.plan())
    done = here(*STOP, "--plan", saved(lab, lab.plan()), "--outputs", "out")
    assert (done.returncode, done.stdout) == (0, f"{run}\n")
    assert Path("out").read_text() == f"goes_on={run}\nstopped=\n"
    assert state(lab, run) == "running"


def test_an_older_run_stops_where_a_newer_one_goes_on(lab: Lab) -> None:
    older, newer = under_way(lab, lab.plan()), under_way(lab, lab.plan())
    done = here(*STOP, "--plan", saved(lab, lab.plan()), "--json")
    assert as_json(done)["data"] == {"goes_on": newer, "stopped": [older]}
    assert (state(lab, older), state(lab, newer)) == ("cancelled", "running")
    assert f"run {older}: " in done.stderr


def test_without_a_plan_all_of_the_pull_request_stops_and_nothing_else(lab: Lab) -> None:
    own, foreign = under_way(lab, lab.plan()), under_way(lab, lab.plan(18))
    by_hand = under_way(lab, replace(lab.plan(), origin=None))
    done = here(*STOP, "--json")
    assert as_json(done)["data"] == {"goes_on": None, "stopped": [own]}
    assert [state(lab, run) for run in (own, foreign, by_hand)] == [
        "cancelled",
        "running",
        "running",
    ]
    assert as_json(here(*STOP, "--json"))["data"]["stopped"] == []


def test_where_nothing_runs_nothing_stops(lab: Lab) -> None:
    done = here(*STOP)
    assert (done.returncode, done.stdout) == (0, "")
    assert "no run of example/lab#17 is under way" in done.stderr
    ended = lab.swept(lab.plan())
    done = here(*STOP, "--plan", saved(lab, lab.plan()), "--json")
    assert ended not in as_json(done)["data"]["stopped"]
