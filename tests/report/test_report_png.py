"""The PNG: one file from the page's own places, legible in a comment."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infx.domain.record import PointRecord
from infx.report.build import build, build_runs
from infx.report.labels import labels_of
from infx.report.model import DECIDING, ReportModel
from infx.report.palette import LIGHT
from infx.report.placing import SPAN, axis_of
from infx.report.png import write_png
from infx.report.png_panel import draw, legend_of
from tests.report.many_points import many_plan, many_points, many_records
from tests.report.sample_runs import FACTS, sample_plan, sample_records
from tests.report.test_report_baseline import BEFORE, NOW, repeated

pytestmark = pytest.mark.slow


def model_of(records: list[PointRecord]) -> ReportModel:
    return build(records, sample_plan(sample_records()), FACTS)


def size_of(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


@pytest.mark.parametrize("count", [0, 10])
def test_is_twice_a_thousand_pixels_wide(tmp_path: Path, count: int) -> None:
    write_png(model_of(sample_records()[:count]), tmp_path / "r.png")
    width, height = size_of(tmp_path / "r.png")
    assert width == 2000
    assert 1000 < height < 2200
    assert 10_000 < (tmp_path / "r.png").stat().st_size < 400_000


def test_five_hundred_points_are_drawn(tmp_path: Path) -> None:
    points = many_points(500)
    write_png(build(many_records(points), many_plan(points), FACTS), tmp_path / "r.png")
    assert (tmp_path / "r.png").stat().st_size < 600_000


def panel(model: ReportModel, *, large: bool = True) -> Any:
    from matplotlib.figure import Figure

    shown = Figure().add_subplot()
    rows = [*model.rows, *(model.baseline.rows if model.baseline else ())]
    chart = model.charts[0]
    draw(shown, chart, axis_of(chart.x, rows), axis_of(chart.y, rows, up=True), model, large=large)
    return shown


def places(shown: Any, marker: str) -> set[tuple[int, int]]:
    lines = [line for line in shown.get_lines() if line.get_marker() == marker]
    return {(round(x), round(y)) for line in lines for x, y in line.get_xydata()}


def test_marks_stand_where_the_page_has_them() -> None:
    model = model_of(sample_records())
    chart = model.charts[0]
    x = axis_of(chart.x, model.rows).first
    y = axis_of(chart.y, model.rows, up=True).first
    at = {(x.at[n], y.at[n]) for n, row in enumerate(model.rows) if row.plotted}
    shown = panel(model)
    assert places(shown, "o") | places(shown, "s") == at
    assert (shown.get_xlim(), shown.get_ylim()) == ((0, SPAN), (SPAN, 0))
    assert [tick for tick, _ in y.ticks] == [round(tick) for tick in shown.get_yticks()]


def test_an_invalid_point_is_crossed_and_single_runs_are_hollow() -> None:
    model = model_of(sample_records())
    shown = panel(model)
    (crossed,) = places(shown, "x")
    number = next(n for n, row in enumerate(model.rows) if row.plotted and not row.valid)
    chart = model.charts[0]
    assert crossed[0] == axis_of(chart.x, model.rows).first.at[number]
    faces = {line.get_markerfacecolor() for line in shown.get_lines() if line.get_marker() == "o"}
    assert faces == {"#ffffff"}


def test_repeats_fill_the_mark_and_draw_band_and_intervals() -> None:
    points = many_points(20)
    model = build(many_records(points, repeats=3, faults=False), many_plan(points, 3), FACTS)
    shown = panel(model)
    assert len(shown.patches) == len(model.series)  # a band a line
    faces = {line.get_markerfacecolor() for line in shown.get_lines() if line.get_marker() == "o"}
    assert "#ffffff" not in faces
    small = panel(model, large=False)
    assert len(small.patches) == 0
    assert len(small.get_lines()) < len(shown.get_lines())


def test_names_of_lines_in_the_right_half_end_where_the_page_ends_them() -> None:
    model = model_of(sample_records())
    chart = model.charts[0]
    labels = labels_of(
        chart, axis_of(chart.x, model.rows).first, axis_of(chart.y, model.rows, up=True).first
    )
    assert {label.ends for label in labels} == {True, False}
    names = {text.get_text(): text.get_ha() for text in panel(model).texts}
    assert [names[label.text] == "right" for label in labels] == [label.ends for label in labels]


def test_a_reused_point_is_grey() -> None:
    model = model_of(sample_records())
    rows = tuple(replace(row, reused="an-older-run") for row in model.rows)
    marks = tuple(
        replace(m, row=replace(m.row, reused="an-older-run")) for m in model.charts[0].marks
    )
    charts = (replace(model.charts[0], marks=marks), *model.charts[1:])
    grey = replace(model, rows=rows, charts=charts)
    colours = {m.get_color() for m in panel(grey).get_lines() if m.get_marker() in "os"}
    assert colours == {LIGHT["soft"]}
    assert "reused" in [entry.get_label() for entry in legend_of(grey, 12)]
    assert "reused" not in [entry.get_label() for entry in legend_of(model, 12)]


def test_the_baseline_stands_behind() -> None:
    points = many_points(20)
    alone = build_runs([repeated(NOW, points)])
    both = build_runs([repeated(NOW, points)], [repeated(BEFORE, points, gain=0.8)])
    dotted = [line for line in panel(both).get_lines() if line.get_linestyle() == ":"]
    assert len(dotted) == len(both.series)
    assert not [line for line in panel(alone).get_lines() if line.get_linestyle() == ":"]
    labels = [entry.get_label() for entry in legend_of(both, 12)]
    assert f"baseline {BEFORE}" in labels
    assert "repeated" in labels
    assert "one run" not in labels


def test_a_legend_of_many_lines_ends_and_says_so() -> None:
    points = many_points(40)
    model = build(many_records(points), many_plan(points), FACTS)
    labels = [entry.get_label() for entry in legend_of(model, 2)]
    assert labels[:3] == [*(s.label for s in model.series[:2]), "and 2 more lines"]


def test_only_views_of_what_decides_stand_below() -> None:
    from infx.report.png import views

    points = many_points(20)
    model = build(many_records(points), many_plan(points), FACTS)
    assert {chart.y.key for chart in views(model)} == {DECIDING[1]}
    assert len(views(model)) == 3
