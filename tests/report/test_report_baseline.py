"""What changed since the baseline: partners, verdicts, lines, and what has no partner."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.plan import Plan
from infx.domain.point import FixedLengths, Point
from infx.domain.status import Status
from infx.report.build import build_runs
from infx.report.markdown import markdown
from infx.report.model import DECIDING, RunData, RunFacts
from tests.analysis.made_arms import arm_of, noisy, scored
from tests.report.many_points import many_plan, many_points, many_records
from tests.report.sample_runs import LLAMA, MINI, gate, point, sample_plan

BEFORE, NOW = "20261128-0900-base", "20261129-1740-many"


def repeated(
    name: str, points: list[Point], gain: float = 1.0, plan: Plan | None = None
) -> RunData:
    """A run that measures each point three times, all of them valid."""
    records = many_records(points, run_id=name, repeats=3, faults=False, gain=gain)
    plan = plan or many_plan(points, 3)
    return RunData(facts=RunFacts(run_id=name), plan=plan, records=tuple(records))


def single(name: str, folder: Path, points: list[Point], factor: float, seed: int = 0) -> RunData:
    """A run that measures each point once and leaves its requests on disk."""
    folder.mkdir(exist_ok=True)
    sides = [arm_of(folder, p, noisy(60, seed + p.conc, factor), name) for p in points]
    records = [side.record for side in sides if side.record]
    made = [replace(r, attempt=replace(r.attempt, run_id=name)) for r in records]
    facts = RunFacts(run_id=name)
    return RunData(facts=facts, plan=sample_plan(made), records=tuple(made), folder=folder)


def test_repeats_on_both_sides_decide_without_their_requests() -> None:
    points = many_points(20)
    model = build_runs([repeated(NOW, points)], [repeated(BEFORE, points, gain=0.8)])
    since = model.baseline
    assert since
    assert since.compared == 20
    assert since.verdicts[DECIDING[1]] == {"better": 20}
    for row in model.rows:
        change = row.baseline[DECIDING[1]]
        assert change.verdict == "better"
        assert change.b == pytest.approx(row.figures[DECIDING[1]].value)
        assert change.ratio == pytest.approx(1.25, rel=0.1)
    told = gate(model, "Baseline")
    assert told.level == "good"
    assert told.sentence == (
        f"Against {BEFORE}, 20 points compared. Throughput: better on all 20; "
        "P90 E2E-normalised interactivity: better on all 20."
    )
    assert told.sentence in model.verdict


def test_a_point_that_got_worse_is_a_case() -> None:
    points = many_points(20)
    model = build_runs([repeated(NOW, points, gain=0.8)], [repeated(BEFORE, points)])
    told = gate(model, "Baseline")
    assert (told.level, model.level) == ("attention", "attention")
    worst = min(row.baseline[DECIDING[1]].ratio for row in model.rows)
    assert f"Throughput, tok/s/GPU {(worst - 1) * 100:+.1f} %" in " ".join(told.items[:3])
    assert "got worse" in markdown(model)


def test_the_same_measured_again_is_no_change() -> None:
    points = many_points(20)
    model = build_runs([repeated(NOW, points)], [repeated(BEFORE, points)])
    assert model.baseline
    assert model.baseline.verdicts[DECIDING[1]].get("no-difference-seen", 0) >= 17


def test_each_line_says_how_its_frontier_moved() -> None:
    points = many_points(20)
    model = build_runs([repeated(NOW, points)], [repeated(BEFORE, points[:15], gain=0.8)])
    assert model.baseline
    lines = {line.series.label: line for line in model.baseline.lines}
    assert set(lines) == {series.label for series in model.series}
    whole, part = lines.values()
    assert (whole.points, whole.compared) == ((10, 10), 10)
    assert (part.points, part.compared) == ((5, 10), 5)
    assert whole.area == pytest.approx(1.25**2 - 1, abs=0.05)
    assert any("over 10 compared points the area that it dominates +5" in text
               for text in model.baseline.sentences)  # fmt: skip


def test_points_without_a_partner_are_added_or_dropped() -> None:
    points = many_points(20)
    model = build_runs([repeated(NOW, points[:12])], [repeated(BEFORE, points[2:])])
    since = model.baseline
    assert since
    assert set(since.added) == {p.label for p in points[:2]}
    assert set(since.dropped) == {p.label for p in points[12:]}
    assert (since.compared, since.same) == (10, 10)
    assert [bool(row.baseline) for row in model.rows] == [False] * 2 + [True] * 10
    assert since.headline.endswith("; 2 points added, 8 points dropped.")
    told = gate(model, "Baseline")
    assert told.level == "attention"
    assert f"{points[12].label}: only in the baseline" in told.items


def test_a_point_that_is_valid_no_more_is_a_case() -> None:
    points = many_points(20)
    now = repeated(NOW, points, gain=1.2)
    bad = tuple(
        replace(r, status=Status("invalid", "errors", "too many"))
        if r.point.point_id == points[3].point_id
        else r
        for r in now.records
    )
    model = build_runs([replace(now, records=bad)], [repeated(BEFORE, points)])
    assert model.baseline
    assert model.baseline.broken == (points[3].label,)
    told = gate(model, "Baseline")
    assert told.level == "attention"
    assert told.sentence.endswith("; 1 point valid no more.")
    assert told.items[0] == f"{points[3].label}: valid in the baseline, not any more"


def test_settings_that_differ_are_counted_with_their_pairs() -> None:
    points = many_points(10)
    other = [
        replace(p, point_id=f"{n:064}", arm=replace(p.arm, image_digest="sha256:" + "9" * 64))
        for n, p in enumerate(points)
    ]
    model = build_runs([repeated(NOW, other)], [repeated(BEFORE, points)])
    assert model.baseline
    (setting, pairs), *rest = model.baseline.settings.items()
    assert rest == []
    assert setting.startswith("image sha256:")
    assert setting.endswith("→ sha256:" + "9" * 12 + "…")
    assert pairs == 10
    assert model.baseline.same == 0
    assert "0 of 10 compared points are the same by content." in model.baseline.sentences
    assert f"Servers differ in {setting} (10 pairs)." in model.baseline.sentences
    assert setting.split(" → ")[1] in markdown(model)
    assert "<summary>Baseline" not in markdown(model)  # its section says the same


def test_a_line_of_the_baseline_keeps_its_number_and_its_charts() -> None:
    points = many_points(20)
    model = build_runs([repeated(NOW, points)], [repeated(BEFORE, points, gain=0.8)])
    since = model.baseline
    assert since
    assert {row.series for row in since.rows} == set(model.series)
    old = next(chart for chart in since.charts if chart.key == DECIDING)
    assert set(old.frontiers) == set(model.charts[0].frontiers)
    assert max(m.y for m in old.marks) < max(m.y for m in model.charts[0].marks)


def test_one_run_a_side_is_compared_by_its_requests(tmp_path: Path) -> None:
    points = [point(MINI, c, 2 * c) for c in (1, 2)]
    now = single(NOW, tmp_path / "now", points, 0.5)
    model = build_runs([now], [single(BEFORE, tmp_path / "before", points, 1.0)])
    change = model.rows[0].baseline["itl_p90"]
    assert change.ratio == pytest.approx(0.5, rel=0.02)
    assert change.verdict == "better"
    assert model.baseline
    assert model.baseline.lines[0].area_low is None


def test_requests_that_are_gone_leave_a_ratio_and_no_verdict(tmp_path: Path) -> None:
    points = [point(MINI, 1, 2)]
    before = single(BEFORE, tmp_path / "before", points, 1.0)
    (export,) = (tmp_path / "before").rglob("profile_export.jsonl")
    export.unlink()
    model = build_runs([single(NOW, tmp_path / "now", points, 0.5)], [before])
    change = model.rows[0].baseline["itl_p90"]
    assert change.ratio == pytest.approx(0.5, rel=0.02)
    assert (change.verdict, change.low) == ("not-enough-data", None)
    assert gate(model, "Baseline").level == "note"


def test_an_export_that_is_gone_is_named_and_nothing_is_made_up(tmp_path: Path) -> None:
    points = [point(MINI, 1, 2)]
    before = single(BEFORE, tmp_path / "before", points, 1.0)
    shutil.rmtree(tmp_path / "before")
    model = build_runs([single(NOW, tmp_path / "now", points, 0.5)], [before])
    since = model.baseline
    assert since
    assert (since.compared, model.rows[0].baseline) == (0, {})
    (left,) = since.left_out
    assert "holds neither profile_export_aiperf.json" in left.why
    told = gate(model, "Baseline")
    assert (told.level, told.sentence) == (
        "attention", f"Against {BEFORE}, nothing could be compared.",
    )  # fmt: skip


def test_other_workloads_are_not_compared_and_it_says_why() -> None:
    longer = FixedLengths(isl=128, osl=256, requests=10)
    points = many_points(10)
    other = [replace(p, point_id=f"{n:064}", workload=longer) for n, p in enumerate(points)]
    model = build_runs([repeated(NOW, points)], [repeated(BEFORE, other)])
    since = model.baseline
    assert since
    assert since.compared == 0
    assert all(not row.baseline for row in model.rows)
    assert since.headline.startswith("nothing is compared: no point of")
    assert "isl 128 → 1024" in since.headline
    assert since.lines == ()  # they have no line in common
    assert not {row.series for row in since.rows} & set(model.series)


def test_a_baseline_without_a_valid_point_is_told() -> None:
    points = many_points(10)
    nothing = RunData(facts=RunFacts(run_id=BEFORE), plan=many_plan(points), records=())
    model = build_runs([repeated(NOW, points)], [nothing])
    since = model.baseline
    assert since
    assert (since.compared, since.charts[0].marks) == (0, ())
    assert len(since.left_out) == 40  # each planned point, and its three repeats now
    assert gate(model, "Baseline").level == "attention"
    assert "not compared" in markdown(model)


@pytest.mark.parametrize(("right", "level"), [(10, "attention"), (38, "good")])
def test_an_evaluation_that_got_worse_is_a_case(tmp_path: Path, right: int, level: str) -> None:
    def run(name: str, good: int) -> RunData:
        side = scored(tmp_path / name, "off", [n < good for n in range(40)])
        assert side.record
        made = replace(side.record, attempt=replace(side.record.attempt, run_id=name))
        plan, facts = sample_plan([made]), RunFacts(run_id=name)
        return RunData(facts=facts, plan=plan, records=(made,), folder=tmp_path / name)

    model = build_runs([run(NOW, right)], [run(BEFORE, 38)])
    told = gate(model, "Baseline")
    assert told.level == level
    seen = "worse" if level == "attention" else "no difference seen"
    assert told.sentence == f"Against {BEFORE}, accuracy filters: {seen} on all 2."
    assert any("gsm_mini strict-match 0.950 → 0.250" in item for item in told.items) == (right < 38)
    text = markdown(model)
    assert "| Detectable | Same answers | Verdict |" in text
    assert "| 100 % |" in text


def test_two_entries_stay_apart(tmp_path: Path) -> None:
    points = [point(MINI, 1, 2), point(LLAMA, 1, 1)]
    now = single(NOW, tmp_path / "now", points, 1.0)
    model = build_runs([now], [single(BEFORE, tmp_path / "before", points, 1.0)])
    assert model.baseline
    assert [line.series.entry for line in model.baseline.lines] == [MINI, LLAMA]
