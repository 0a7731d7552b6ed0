"""Two arms compared from their exports, and everything that was not compared named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from infx.analysis.compare import Compared, compare_axis, compare_runs
from infx.analysis.pairing import Seen
from infx.domain.status import PENDING, Status
from tests.analysis.made_arms import arm_of, changes, mono, noisy, scored, seen
from tests.report.sample_runs import MINI, measurement, point


def couple(folder: Path, run: str = "r1", factor: float = 0.5) -> list[Seen]:
    base = point(MINI, 1, 2)
    return [
        arm_of(folder, mono(base, "off"), noisy(30, 1), run),
        arm_of(folder, mono(base, "on"), noisy(30, 1, factor), run),
    ]


def test_an_axis_is_compared_from_the_exports(tmp_path: Path) -> None:
    found = compare_axis(couple(tmp_path), "mono")
    (told,) = found.points
    assert told.comparison.basis == "requests-paired"
    assert (told.conc, told.workload, told.runs) == (1, "64 in, 32 out", ("r1",))
    assert changes(told.comparison)["itl_p90"].ratio == pytest.approx(0.5, rel=1e-4)
    assert [str(one) for one in found.differences] == ["mono off → on"]
    assert found.left_out == ()


def test_further_runs_are_repeats(tmp_path: Path) -> None:
    runs = [
        couple(tmp_path, run, factor) for run, factor in (("r1", 0.5), ("r2", 0.6), ("r3", 0.7))
    ]
    found = compare_axis([one for run in runs for one in run], "mono")
    (told,) = found.points
    assert (told.comparison.basis, told.runs) == ("repeats-paired", ("r1", "r2", "r3"))
    assert changes(told.comparison)["itl_p50"].ratio == pytest.approx(
        (0.5 * 0.6 * 0.7) ** (1 / 3), rel=1e-3
    )


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (
            Status("invalid", "mono-coverage", "mono served 3 %"),
            "invalid:mono-coverage mono served 3 %",
        ),
        (Status("failed", "server-died", "killed"), "failed:server-died killed"),
        (PENDING, "pending"),
    ],
)
def test_a_side_that_may_not_count_is_named_with_its_reason(
    tmp_path: Path, status: Status, why: str
) -> None:
    off, on = couple(tmp_path)
    other = arm_of(tmp_path, mono(point(MINI, 2, 4), "off"), noisy(30, 1))
    bad = seen(mono(point(MINI, 2, 4), "on"), status)
    found = compare_axis([off, on, other, bad], "mono")
    assert [told.conc for told in found.points] == [1]
    assert {one.label: one.why for one in found.left_out} == {
        bad.point.label: why,
        other.point.label: f"its partner {bad.point.label} is {status}",
    }


def test_an_export_that_is_gone_is_named(tmp_path: Path) -> None:
    off, on = couple(tmp_path)
    found = compare_axis([off, replace(on, folder=tmp_path / "gone")], "mono")
    assert found.points == ()
    (told,) = found.left_out
    assert on.point.label in told.label
    assert "gone" in told.why


def test_one_run_of_a_repeat_that_failed_leaves_the_other(tmp_path: Path) -> None:
    first, second = couple(tmp_path), couple(tmp_path, "r2")
    second[1] = replace(second[1], status=Status("failed", "server-died", "killed"))
    found = compare_axis([*first, *second], "mono")
    assert found.points[0].comparison.basis == "requests-paired"
    assert {(one.run_id, one.why) for one in found.left_out} == {
        ("r2", "failed:server-died killed"),
        ("r2", f"its partner {second[1].point.label} is failed:server-died"),
    }


# Scores


def evaluated(off: Seen, on: Seen) -> Compared:
    return compare_axis([off, on], "mono")


def test_scores_are_compared_question_by_question(tmp_path: Path) -> None:
    off = scored(tmp_path, "off", [True] * 20)
    on = scored(tmp_path, "on", [False] * 12 + [True] * 8, text="41")
    (told,) = evaluated(off, on).scores
    assert [change.filter for change in told.changes] == ["strict-match", "robust"]
    verdict = told.changes[0].verdict
    assert (verdict.lost, verdict.won, verdict.change) == (12, 0, "worse")
    assert told.changes[0].identical == 0.0


def test_equal_answers_are_no_difference(tmp_path: Path) -> None:
    right = [n % 3 > 0 for n in range(20)]
    (told,) = evaluated(scored(tmp_path, "off", right), scored(tmp_path, "on", right)).scores
    assert {c.verdict.change for c in told.changes} == {"no-difference-seen"}
    assert {c.identical for c in told.changes} == {1.0}


def test_other_questions_and_lost_answers_are_named(tmp_path: Path) -> None:
    off = scored(tmp_path, "off", [True] * 5)
    other = scored(tmp_path, "on", [True] * 5, questions_hash="another")
    found = evaluated(off, other)
    assert (found.scores, [one.why for one in found.left_out]) == ((), ["the questions differ"])
    same = scored(tmp_path / "more", "on", [True] * 5)
    (tmp_path / "more/on/samples.jsonl").unlink()
    (told,) = evaluated(off, same).left_out
    assert "samples.jsonl cannot be read" in told.why


def test_two_runs_of_one_matrix_compare_scores_and_points(tmp_path: Path) -> None:
    a = [*couple(tmp_path), scored(tmp_path, "off", [True] * 5)]
    b = [
        *couple(tmp_path, "r2", 0.25),
        replace(scored(tmp_path / "2", "off", [True] * 5), run_id="r2"),
    ]
    found = compare_runs(a, b)
    assert (len(found.points), len(found.scores), found.left_out) == (2, 1, ())
    assert found.differences == ()
    itl = [changes(told.comparison)["itl_p50"] for told in found.points]
    assert [c.ratio for c in itl] == [1.0, pytest.approx(0.5, rel=1e-4)]
    assert [c.verdict for c in itl] == ["no-difference-seen", "better"]


def test_sides_without_figures_are_named() -> None:
    a = seen(mono(point(MINI, 1, 2), "off"), measurement=measurement(1, 1.0, 1.0))
    b = seen(mono(point(MINI, 1, 2), "on"))
    (told,) = compare_axis([a, b], "mono").left_out
    assert "holds neither" in told.why or "no figures" in told.why
