"""infx repro as a command: which record, what is refused, what it says, its exit codes."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from infx.cli.reproducing import tell
from infx.domain.errors import UsageError
from infx.domain.point import Point
from infx.domain.record import PointRecord
from infx.domain.status import CANCELLED, Status
from infx.launch.repro import Recorded, plan_again, recorded
from infx.store import FILE, RunRow, Store, find_run, run_dir
from tests.analysis.made_arms import arm_of, noisy, scored, seen
from tests.cli.commands import STAND_IN, as_json, here, infx
from tests.cli.test_compare import keep
from tests.plan.matrices import LOCAL
from tests.report.sample_runs import MINI, evaluation, point

OLD, NEW = "20261130-010000-aaaa", "20261130-020000-bbbb"
GOOD, BAD, LATE = (point(MINI, conc, 2 * conc) for conc in (1, 2, 4))
SCORE = replace(evaluation(MINI, 0.5), point_id="0" * 63 + "1")
INVALID = Status("invalid", "mono-coverage", "mono served 3 %")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a good point (measured twice), an invalid one and one that was cancelled."""
    results = tmp_path_factory.mktemp("recorded")
    folder = run_dir(results, OLD)
    folder.mkdir(parents=True)
    sides = [arm_of(folder, GOOD, noisy(40, n), OLD, repeat=n) for n in (1, 2)]
    keep(results, OLD, [*sides, seen(BAD, INVALID), seen(LATE, CANCELLED)])
    return results


def found(results: Path, name: str = GOOD.label, run: str | None = None) -> Recorded:
    with Store(results / FILE) as store:
        return recorded(store, name, run)


def refused(results: Path, name: str, *more: str) -> tuple[int, str]:
    done = here("repro", name, "--results", results, "--dry-run", *more)
    return done.returncode, " ".join(done.stderr.split())


# Which record


@pytest.mark.parametrize("name", [GOOD.label, GOOD.point_id[:8], GOOD.point_id, f"{GOOD.label}-r2"])
def test_a_point_is_found_by_what_status_and_report_print(results: Path, name: str) -> None:
    record = found(results, name)
    assert (record.point, record.run.run_id, len(record.records)) == (GOOD, OLD, 2)


def test_a_dry_run_shows_the_record_and_measures_nothing(results: Path) -> None:
    done = here("repro", GOOD.point_id[:8], "--results", results, "--dry-run", "--runs", "2")
    assert done.returncode == 0, done.stderr
    assert f"{GOOD.label} of run {OLD}: measured " in done.stdout
    assert "P90 TTFT, ms" in done.stdout
    assert "(2 runs)" in done.stdout
    assert "would measure it 2 times on local" in done.stderr
    told = here("repro", GOOD.label, "--results", results, "--dry-run", "--json")
    data = as_json(told)["data"]
    assert (data["run_id"], data["cluster"], len(data["jobs"])) == (OLD, "local", 1)
    with Store(results / FILE) as store:
        assert [run.run_id for run in store.runs()] == [OLD]


def test_the_plan_is_the_records_own_whatever_became_of_the_project(results: Path) -> None:
    plan = plan_again(found(results), 3)
    assert [job.repeat for job in plan.jobs] == [1, 2, 3]
    assert [job.points for job in plan.jobs] == [(GOOD,)] * 3
    assert plan.inputs == {}


# What is refused


def test_what_no_run_has_is_said_with_the_nearest_name(results: Path) -> None:
    code, said = refused(results, GOOD.label[:-4] + "zzzz")
    assert (code, "unknown-point: there is no point in" in said) == (2, True)
    assert f"did you mean `{GOOD.label}`?" in said
    assert refused(results, "minimaxm3")[1].startswith("infx: unknown-point: `minimaxm3` names 3")
    assert "unknown-run" in refused(results, GOOD.label, "--run", "nope")[1]


@pytest.mark.parametrize(
    ("of", "told", "hint"),
    [
        (BAD, "is invalid:mono-coverage: mono served 3 %", f"infx resume {OLD} --retry-failed"),
        (LATE, "is cancelled", f"infx resume {OLD}"),
    ],
)
def test_a_record_without_valid_figures_says_what_to_do(
    results: Path, of: Point, told: str, hint: str
) -> None:
    code, said = refused(results, of.label)
    assert code == 2
    assert f"nothing-to-reproduce: {of.label} of run {OLD} {told}" in said
    assert said.endswith(f"measure it first: {hint}")


def test_a_run_whose_plan_is_gone_is_refused(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results, tmp_path / "copy")
    (run_dir(tmp_path / "copy", OLD) / "plan.json").unlink()
    code, said = refused(tmp_path / "copy", GOOD.label)
    assert (code, "not-a-run: " in said) == (2, True)


def test_other_hardware_is_another_point(results: Path) -> None:
    with pytest.raises(UsageError, match="cluster 'far' has h200") as caught:
        plan_again(found(results), 1, replace(LOCAL, name="far", hardware="h200"))
    assert "was measured on cpu-x86-2" in caught.value.hint
    same = replace(LOCAL, name="far", hardware="cpu-x86-2")
    assert {job.cluster for job in plan_again(found(results), 1, same).jobs} == {"far"}


# What came out


def measured_again(
    results: Path, of: Point, latencies: Sequence[Sequence[tuple[float, float]]]
) -> tuple[RunRow, list[PointRecord]]:
    folder = run_dir(results, NEW)
    folder.mkdir(parents=True, exist_ok=True)
    sides = [arm_of(folder, of, some, NEW, repeat=n) for n, some in enumerate(latencies, 1)]
    keep(results, NEW, sides)
    with Store(results / FILE) as store:
        return find_run(store, NEW), store.records(NEW)


def test_the_same_figures_are_reproduced(results: Path, tmp_path: Path, capsys) -> None:
    again = measured_again(tmp_path, GOOD, [noisy(40, 2), noisy(40, 1)])
    assert tell(found(results), *again, 0.05, False) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-1] == "reproduced: every figure is within ±5 % or its interval"
    assert sum(line.endswith("  reproduced") for line in told) == 5
    assert all("anything" not in line for line in told)


def test_a_slower_server_is_not_and_says_by_how_much(results: Path, tmp_path: Path, capsys) -> None:
    run, records = measured_again(tmp_path, GOOD, [noisy(40, n, 3.0) for n in (1, 2, 3)])
    other = replace(records[0].provenance, git_revision="0123abc")
    lost = replace(records[2], status=Status("failed", "server-died", "exit code 1"))
    records = [replace(records[0], provenance=other), records[1], lost]
    assert tell(found(results), run, records, 0.05, False) == 1
    told = capsys.readouterr().out
    assert "could not be measured every time: failed:server-died exit code 1\n" in told
    assert "made otherwise: git revision c16d28d → 0123abc" in told
    assert told.splitlines()[-1].startswith("not reproduced: Throughput, tok/s/GPU -6")


def test_few_requests_of_one_run_cannot_tell(tmp_path: Path, capsys) -> None:
    folder = run_dir(tmp_path, OLD)
    folder.mkdir(parents=True)
    keep(tmp_path, OLD, [arm_of(folder, GOOD, noisy(12, 1), OLD)])
    old = found(tmp_path)
    again = measured_again(tmp_path, GOOD, [noisy(12, 1)])
    assert tell(old, *again, 0.05, True) == 1
    data = as_json_of(capsys.readouterr().out)
    assert (data["verdict"], data["record"], data["run"]) == ("cannot-tell", OLD, NEW)
    assert {figure["key"] for figure in data["figures"]} >= {"ttft_p90", "tput_tok_s_gpu"}


def as_json_of(text: str) -> dict:
    import json

    return json.loads(text)["data"]


def test_what_could_not_be_measured_says_why(results: Path, tmp_path: Path, capsys) -> None:
    run, records = measured_again(tmp_path, GOOD, [noisy(12, 1)])
    died = replace(records[0], status=Status("failed", "server-died", "exit code 1"))
    assert tell(found(results), run, [died], 0.05, False) == 4
    told = capsys.readouterr()
    assert told.out == "could not be measured: failed:server-died exit code 1\n"
    assert f"infx logs {NEW} {GOOD.label}" in told.err


def test_a_score_is_compared_question_by_question(tmp_path: Path, capsys) -> None:
    sides = {}
    for name, right in ((OLD, [True] * 30 + [False] * 10), (NEW, [True] * 31 + [False] * 9)):
        folder = run_dir(tmp_path, name)
        folder.mkdir(parents=True)
        side = scored(folder, "off", right)
        keep(tmp_path, name, [side])
        sides[name] = side
    with Store(tmp_path / FILE) as store:
        again = find_run(store, NEW), store.records(NEW)
    old = found(tmp_path, sides[OLD].point.label, OLD)
    assert tell(old, *again, 0.10, False) == 0
    assert "Score, strict-match" in capsys.readouterr().out
    assert tell(old, *again, 0.01, False) == 1
    told = capsys.readouterr().out
    assert "more runs" not in told
    assert told.endswith("the questions are too few for ±1 %: --margin sets another\n")


def test_every_run_of_an_evaluation_is_judged(tmp_path: Path, capsys) -> None:
    """The first one answers as the record did; the second one answers nothing rightly."""
    folders = {name: run_dir(tmp_path, name) for name in (OLD, NEW)}
    right = [True] * 30 + [False] * 10
    sides = {}
    for name, answers in ((OLD, [right]), (NEW, [right, [False] * 40])):
        folders[name].mkdir(parents=True)
        sides[name] = [
            scored(folders[name] / str(n), "off", each) for n, each in enumerate(answers)
        ]
        sides[name] = [
            replace(side, run_id=name, repeat=n, record=located(side.record, str(n - 1)))
            for n, side in enumerate(sides[name], 1)
        ]
        keep(tmp_path, name, sides[name])
    with Store(tmp_path / FILE) as store:
        again = find_run(store, NEW), store.records(NEW)
    assert len(again[1]) == 2
    old = found(tmp_path, sides[OLD][0].point.label, OLD)
    assert tell(old, *again, 0.10, False) == 1
    assert "not reproduced: Score, strict-match -100.0 %" in capsys.readouterr().out


def located(record: PointRecord | None, folder: str) -> PointRecord:
    """The record with its artifacts in a folder of its run."""
    assert record
    paths = {name: f"{folder}/{path}" for name, path in record.artifacts.items()}
    return replace(record, artifacts=paths)


# The whole of it


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behave", "code", "said"),
    [
        ("ok", 1, "cannot tell: a side has no figures"),
        ("fail", 4, "could not be measured: failed:server-died exit code 1"),
    ],
)
def test_it_is_a_run_of_its_own(tmp_path: Path, behave: str, code: int, said: str) -> None:
    """With stand-in jobs, whose records hold no figures."""
    words = ("quickstart", "--entry", "smol*", "--results", tmp_path)
    assert infx("sweep", *words, program=STAND_IN).returncode == 0
    points = as_json(here("status", "last", "--results", tmp_path, "--json"))["data"]["points"]
    name = points[0]["point_id"][:8]
    done = infx("repro", name, "--results", tmp_path, program=STAND_IN, STAND_IN=behave)
    assert done.returncode == code, done.stderr
    assert said in done.stdout
    new, old = as_json(here("status", "--results", tmp_path, "--json"))["data"]["runs"]
    assert new["source"] == f"infx repro {points[0]['label']} --run {old['run_id']}"
    assert new["points"] == 1
