"""What repeats say of a frontier: chances, bands, coverage as a lower bound."""

from __future__ import annotations

from functools import partial

import pytest

from infx.analysis.noise import band, frontier_chances
from infx.report import lines
from infx.report.build import build
from infx.report.model import ReportModel
from tests.report.many_points import many_plan, many_points, many_records
from tests.report.sample_runs import (
    FACTS,
    LLAMA,
    MINI,
    empty_plan,
    gate,
    measurement,
    point,
    record,
)


def repeated(repeats: int, n: int = 20) -> ReportModel:
    points = many_points(n)
    records = many_records(points, repeats=repeats, faults=False)
    return build(records, many_plan(points, repeats), FACTS)


def test_one_run_says_that_it_cannot_tell() -> None:
    model = repeated(1)
    assert {row.chance for row in model.rows} == {None}
    assert model.charts[0].bands == {}
    told = gate(model, "Noise")
    assert told.level == "note"
    assert told.sentence == (
        "One run of each point: how much of the frontier is chance cannot be told."
    )
    assert {found.least for found in model.coverage.values()} == {None}


def test_repeats_give_chances_bands_and_a_lower_bound() -> None:
    model = repeated(3)
    assert all(row.runs == 3 and row.chance is not None for row in model.rows)
    assert set(model.charts[0].bands) == {series.number for series in model.series}
    assert all(not chart.bands for chart in model.charts[1:])
    band = model.charts[0].bands[0]
    highest = max(mark.y for mark in model.charts[0].frontiers[0])
    assert max(y for _, y in band.low) <= highest <= max(y for _, y in band.high)
    for series in model.series:
        found = model.coverage[series.number]
        assert found.least is not None
        assert found.least <= found.on


def test_a_band_without_a_low_side_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    one = [[(100.0, 50.0), (104.0, 49.0)]]
    found = band(one, ("max", "max"), seed=5)
    assert found
    assert found[0] == ()
    monkeypatch.setattr(lines, "band", partial(band, seed=5))
    records = [record(point(LLAMA, 1, 1), measurement=measurement(1, ms, 10)) for ms in (10, 11)]
    model = build(records, empty_plan(), FACTS)
    assert model.rows[0].runs == 2
    assert model.charts[0].bands == {}


def test_near_points_are_named_with_their_chance() -> None:
    records = []
    for repeat, itl_ms in enumerate((10.0, 10.6, 9.7)):
        for seqs, other in ((1, 1.0), (2, 1.001)):  # one is a thousandth better than the other
            made = record(point(LLAMA, 1, seqs), measurement=measurement(1, itl_ms * other, 10.0))
            records.append(made)
        assert repeat < 3
    model = build(records, empty_plan(), FACTS)
    told = gate(model, "Noise")
    assert told.level == "note"
    assert told.sentence == (
        "2 of 2 valid points measured more than once; "
        "noise may move 2 points on or off the frontier."
    )
    assert all("% on the frontier" in item for item in told.items)
    assert gate(model, "Coverage").items == (
        f"{LLAMA}: 1 of 2 measured on the frontier, at least 0 under noise",
    )


def test_a_point_without_a_second_run_is_counted() -> None:
    records = [
        record(point(LLAMA, c, c), measurement=measurement(c, itl_ms, 10.0))
        for c, itl_ms in ((1, 10.0), (1, 10.001), (1, 9.999), (1, 10.002), (2, 15.0))
    ]
    told = gate(build(records, empty_plan(), FACTS), "Noise")
    assert (told.level, told.items) == ("note", ())
    assert told.sentence == (
        "1 of 2 valid points measured more than once; noise moves none on or off the frontier."
    )


def test_a_line_that_was_measured_once_is_not_called_sure() -> None:
    made = [(LLAMA, 10.0), (LLAMA, 10.001), (MINI, 15.0)]
    records = [record(point(e, 1, 1), measurement=measurement(1, ms, 10)) for e, ms in made]
    told = gate(build(records, empty_plan(), FACTS), "Noise")
    assert told.sentence.endswith("the frontier; of 1 point on other lines nobody can tell.")


def test_coverage_counts_measured_invalid_and_advised() -> None:
    points = many_points(70)
    model = build(many_records(points), many_plan(points), FACTS)
    assert any(row.record.status.state == "failed" for row in model.rows)
    for number, found in model.coverage.items():
        rows = [row for row in model.rows if row.series.number == number]
        assert found.measured == sum(row.plotted for row in rows)
        assert found.invalid == sum(row.plotted and not row.valid for row in rows)
        assert found.on == sum(row.on_frontier for row in rows)
    assert model.coverage[0].invalid > 0
    assert gate(model, "Coverage").sentence == (
        "4 curves, 0 with fewer points on the frontier than the 5 advised."
    )


def test_points_far_behind_are_not_drawn_and_change_nothing() -> None:
    near = [
        [(x * noise, (20 - x) * noise) for noise in (1.0, 1.01, 0.992)]
        for x in (2.0, 4.0, 6.0, 8.0, 8.05, 10.0, 11.0, 12.0, 14.0, 16.0, 17.0)
    ]
    far = [[(x / 3, (20 - x) / 3)] for x in range(1, 18)]  # once each: they tell no noise
    alone = frontier_chances(near, ("max", "max"))
    both = frontier_chances([*near, *far], ("max", "max"))
    assert both == [*alone, *[0.0] * len(far)]
    assert band([*near, *far], ("max", "max")) == band(near, ("max", "max"))
