"""infx compare as a command: what it prints, what it refuses, and its exit codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from infx.analysis.compare import compare_axis, compare_runs
from infx.analysis.pairing import Seen
from infx.cli.comparing import show
from infx.domain.identity import content_id
from infx.domain.record import PointRecord
from infx.domain.serial import encode
from infx.domain.status import CANCELLED, Status
from infx.plan.saved import write_plan
from infx.store import FILE, Store, run_dir
from tests.analysis.made_arms import arm_of, mono, noisy, scored, seen
from tests.cli.commands import as_json, here
from tests.report.sample_runs import MINI, measurement, point, record, sample_plan
from tests.store.tiny_plans import run_row

FIRST, SECOND = "20261130-010000-aaaa", "20261130-020000-bbbb"


def write(results: Path, run_id: str, factor: float, bad: Status | None = None) -> None:
    """A run of two concurrencies with mono off and on, and an evaluation of each."""
    folder = run_dir(results, run_id)
    folder.mkdir(parents=True)
    sides: list[Seen] = []
    for conc, n in ((1, 12), (2, 24)):
        base = point(MINI, conc, 2 * conc)
        sides.append(arm_of(folder, mono(base, "off"), noisy(n, conc), run_id))
        sides.append(arm_of(folder, mono(base, "on"), noisy(n, conc, factor), run_id))
    right = [n % 5 > 0 for n in range(40)]
    sides += [scored(folder, "off", right), scored(folder, "on", [True] * 40)]
    sides.append(seen(mono(point(MINI, 4, 2, queueing=True), "off")))
    if bad:
        sides[1] = seen(sides[1].point, bad)
    keep(results, run_id, sides)


def keep(results: Path, run_id: str, sides: Sequence[Seen]) -> None:
    plan = sample_plan([side.record or record(side.point) for side in sides])
    jobs = [
        replace(job, job_id=job_of(side), repeat=side.repeat, group=side.group)
        for job, side in zip(plan.jobs, sides, strict=True)
    ]
    points = {of.point_id: of for of in plan.points}
    plan = replace(plan, jobs=tuple(jobs), points=tuple(points.values()))
    row = replace(run_row(results, run_id), created_s=float(len(list(results.glob("runs/*")))))
    write_plan(plan, run_dir(results, run_id) / "plan.json")
    (run_dir(results, run_id) / "run.json").write_bytes(encode(row))
    with Store(results / FILE) as store:
        store.create_run(row, plan)
        store.replace([record for side in sides if (record := placed(side, run_id))])


def job_of(side: Seen) -> str:
    return content_id([side.point.point_id, side.repeat])


def placed(side: Seen, run_id: str) -> PointRecord | None:
    if side.record is None:
        return None
    parts = {"run_id": run_id, "job_id": job_of(side), "repeat": side.repeat}
    return replace(side.record, attempt=replace(side.record.attempt, **parts))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    write(folder, FIRST, 1.0)
    write(folder, SECOND, 0.5, Status("invalid", "mono-coverage", "mono served 3 %"))
    return folder


def test_an_axis_of_the_latest_run_is_compared(results: Path) -> None:
    done = here("compare", "--axis", "mono", "--results", results)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"A → B: mono off → on; run {SECOND}"
    assert lines[1].startswith("11 figures of 1 pair of points: ")
    assert "P90 E2E-normalised interactivity is in tok/s/user." in lines
    assert "does not cover what changes from run to run" in lines[2]
    assert "seed 7" in lines[3]
    [itl] = [line for line in lines if line.startswith("P90 ITL, ms")]
    assert "-50.0 %" in itl
    assert itl.endswith("better")
    assert max(map(len, lines)) <= 100


def test_what_is_not_compared_is_named(results: Path) -> None:
    told = here("compare", "--axis", "mono", "--results", results).stdout
    rest = " ".join(told.split("Not compared (3):")[1].split())
    assert f"({SECOND}): invalid:mono-coverage mono served 3 %" in rest
    assert "its partner minimaxm3-mini-cpu-infx-c1-mns2-on" in rest
    assert "no point with another value of mono agrees with it in the rest" in rest


def test_scores_stand_beside_the_figures(results: Path) -> None:
    told = here("compare", "--axis", "mono", "--results", results).stdout
    [strict] = [line for line in told.splitlines() if line.startswith("strict-match")]
    assert strict.split()[1:8] == ["0.800", "1.000", "-0", "+8", "of", "40", "0.008"]
    assert strict.endswith("better")


def test_two_runs_are_compared(results: Path) -> None:
    done = here("compare", FIRST, SECOND, "--results", results, "--json")
    assert done.returncode == 0
    data = as_json(done)["data"]
    assert (data["axis"], data["runs"]) == ("", [FIRST, SECOND])
    assert (data["resamples"], data["seed"], data["confidence"]) == (2000, 7, 0.95)
    ratios = {
        told["a"]: change["ratio"]
        for told in data["points"]
        for change in told["comparison"]["changes"]
        if change["metric"] == "itl_p50"
    }
    assert len(ratios) == 3
    assert [r for label, r in ratios.items() if "-off-" in label] == [1.0, 1.0]
    assert [r for label, r in ratios.items() if "-on-" in label] == [pytest.approx(0.5, rel=1e-4)]
    assert any("mono-coverage" in one["why"] for one in data["left_out"])


def test_further_runs_are_repeats(results: Path) -> None:
    told = here("compare", FIRST, SECOND, "--axis", "mono", "--results", results).stdout
    assert "each measured 2 times in turn, 48 and 48 requests in all" in told
    assert "Student's t" in told
    assert "One interval of twenty misses by chance" in told


def test_repeats_that_were_measured_in_turn_are_pairs(tmp_path: Path) -> None:
    folder = run_dir(tmp_path, FIRST)
    folder.mkdir(parents=True)
    sides = []
    for conc, factors in ((1, (0.80, 0.81)), (2, (0.90, 0.91))):
        for repeat, factor in enumerate(factors, start=1):
            of, more = point(MINI, conc, 2 * conc), (FIRST, repeat, f"mono-{conc}")
            sides.append(arm_of(folder, mono(of, "off"), noisy(24, repeat), *more))
            sides.append(arm_of(folder, mono(of, "on"), noisy(24, repeat, factor), *more))
    keep(tmp_path, FIRST, sides)
    told = here("compare", "--axis", "mono", "--results", tmp_path).stdout
    basis = "each measured 2 times in turn, noise from 2 points of the line"
    assert f"{basis}, 48 and 48 requests in all" in told
    [itl] = [line for line in told.splitlines() if line.startswith("P90 ITL")][:1]
    assert "-19.5 %" in itl
    assert itl.endswith("better")
    flat = " ".join(told.split())
    assert f"Frontier of {MINI}, 64 in, 32 out, over 2 points: on it A " in flat
    assert "An area is what a frontier dominates" in told
    data = as_json(here("compare", "--axis", "mono", "--results", tmp_path, "--json"))["data"]
    assert data["lines"][0]["ratio"] > 1
    assert data["lines"][0]["low"] < data["lines"][0]["ratio"] < data["lines"][0]["high"]
    assert data["points"][0]["comparison"]["repeats"] == [2, 2]


def test_the_published_changes_of_c1_come_out(tmp_path: Path) -> None:
    """187.56 → 213.44 tok/s/user and a p90 ITL of 2.68 → 2.33 ms, with two repeats so quiet that
    the change is sure."""
    folder, made = run_dir(tmp_path, FIRST), measurement(1, 5.0, 20.0)
    folder.mkdir(parents=True)
    sides = []
    for value, rate, itl in (("off", 187.56, 2.68), ("on", 213.44, 2.33)):
        figures = replace(
            made,
            interactivity_tok_s=replace(made.interactivity_tok_s, p50=rate),
            itl_ms=replace(made.itl_ms, p90=itl),
        )
        arm = seen(mono(point(MINI, 1, 2), value), folder=folder, run=FIRST, measurement=figures)
        sides += [replace(arm, repeat=repeat, group="mono-1") for repeat in (1, 2)]
    keep(tmp_path, FIRST, sides)
    told = here("compare", "--axis", "mono", "--results", tmp_path).stdout.splitlines()
    [rate_row] = [line.split() for line in told if line.startswith("P50 interactivity")]
    [itl_row] = [line.split() for line in told if line.startswith("P90 ITL")]
    assert (rate_row[3:7], rate_row[-1]) == (["188", "213", "+13.8", "%"], "better")
    assert (itl_row[3:7], itl_row[-1]) == (["2.68", "2.33", "-13.1", "%"], "better")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "got 0 and no axis"),
        ((FIRST,), "got 1 and no axis"),
        ((FIRST, FIRST), "name one run twice"),
        (("nine", "last"), "unknown-run"),
        (("--axis", "mon"), "did you mean `mono`?"),
        (("--axis", "conc"), "not an axis of a server"),
        (("--axis", "tp"), "axes that do: mono, max-num-seqs, capture-sizes"),
        (("--axis", "max-num-seqs"), "nothing-to-compare"),
    ],
)
def test_what_cannot_be_compared_exits_with_2(
    results: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = here("compare", *arguments, "--results", results)
    assert done.returncode == 2
    assert words in done.stderr
    told = as_json(here("compare", *arguments, "--results", results, "--json"))
    assert told["ok"] is False


def test_without_runs_there_is_nothing(tmp_path: Path) -> None:
    done = here("compare", "--axis", "mono", "--results", tmp_path)
    assert (done.returncode, "unknown-run" in done.stderr) == (2, True)


def test_arms_that_differ_in_several_things_are_told_with_a_caution(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of = point(MINI, 1, 2)
    newer = replace(of.arm, image="infx==2", options={"block-size": 16, "threads": 4})
    a = arm_of(tmp_path, of, noisy(12, 1))
    b = arm_of(tmp_path, replace(of, arm=newer), noisy(12, 2), "r2")
    show(compare_runs([a], [b]))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "A → B: image infx → infx==2 · option threads - → 4; runs r1 and r2"
    assert lines[1] == "They differ in 2 things: no change is that of one."


def test_nothing_valid_is_an_explained_empty_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [seen(mono(point(MINI, 1, 2), value), CANCELLED) for value in ("off", "on")]
    show(compare_axis(sides, "mono"))
    told = capsys.readouterr().out
    assert "No pair of points could be compared." in told
    assert "Not compared (2):" in told
    assert told.count("cancelled") == 2
    assert told.startswith("A → B: mono; run r1\n")
