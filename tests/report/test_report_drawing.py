from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.analysis.metrics import NORTH_STAR, THROUGHPUT, X_METRICS
from infx.report.build import build
from infx.report.figures import figure, plain, signed
from infx.report.labels import CHARACTER, HEIGHT, WIDTH, labels_of
from infx.report.model import DECIDING, Band, PointRow, Shown
from infx.report.palette import SHAPES
from infx.report.placing import SPAN, axis_of, band_outline, step_corners
from infx.report.png import write_png
from infx.report.scales import Scale, linear_scale, log_scale, scale_for
from infx.report.svg import chart_svg, shape_path
from tests.report.browsed import many
from tests.report.sample_runs import FACTS, LLAMA, MINI, sample_plan, sample_records

positive = st.floats(1e-3, 1e6)


def drawn(key: tuple[str, str] = DECIDING) -> ET.Element:
    records = sample_records()
    model = build(records, sample_plan(records), FACTS)
    chart = next(chart for chart in model.charts if chart.key == key)
    x = axis_of(chart.x, model.rows)
    return ET.fromstring(chart_svg(chart, x, axis_of(chart.y, model.rows, up=True), model.rows))


def marks(svg: ET.Element) -> list[ET.Element]:
    return list(svg.iter("a"))


def test_every_point_with_figures_is_drawn_in_every_chart() -> None:
    for x in X_METRICS:
        found = marks(drawn((x.key, THROUGHPUT.key)))
        assert len(found) == 7
        assert sum("invalid" in (a.get("class") or "") for a in found) == 1
        assert all((a.get("href") or "").startswith("#row-") for a in found)


def test_places_are_shares_of_the_plot() -> None:
    svg = drawn()
    assert svg.get("viewBox") is None
    for mark in marks(svg):
        places = [float(str(mark[1].get(name)).rstrip("%")) for name in ("x", "y")]
        assert all(0 <= place <= 100 for place in places)


@given(st.lists(st.integers(-5, 40), max_size=12))
def test_a_compressed_list_can_be_read_back(items: list[int]) -> None:
    read: list[int] = []
    for part in [] if not items else plain(items).split(", "):
        found = re.fullmatch(r"(-?\d+)–(-?\d+)(?: step (\d+))?", part)
        if found:
            first, last, step = int(found[1]), int(found[2]), int(found[3] or 1)
            read += range(first, last + 1, step)
        else:
            read.append(int(part))
    assert read == items


def test_a_mark_tells_its_story_without_scripts() -> None:
    titles = [mark[0].text or "" for mark in marks(drawn())]
    crossed = next(title for title in titles if "invalid" in title)
    assert "acceptance-off" in crossed
    assert "realised acceptance length 2.4100" in crossed
    assert "minimaxm3-mini-cpu-infx-c4-mns2" in crossed
    assert sum("on the frontier" in title for title in titles) == 6
    assert sum("one run" in title for title in titles) == 6


def names(svg: ET.Element) -> list[str]:
    group = next(g for g in svg.iter("g") if g.get("class") == "labels")
    return [text.text or "" for text in group]


def test_lines_are_named_in_the_chart_but_in_a_crowd() -> None:
    assert names(drawn()) == [LLAMA, MINI]
    model = many(200)
    x, y = (axis_of(m, model.rows, up=up) for m, up in ((NORTH_STAR, False), (THROUGHPUT, True)))
    assert names(ET.fromstring(chart_svg(model.charts[0], x, y, model.rows))) == []


def test_no_name_covers_a_concurrency() -> None:
    records = sample_records()
    model = build(records, sample_plan(records), FACTS)
    for chart in model.charts:
        x, y = axis_of(chart.x, model.rows).first, axis_of(chart.y, model.rows, up=True).first
        told = [(x.place(m.x) / SPAN * WIDTH, y.place(m.y) / SPAN * HEIGHT) for m in chart.marks]
        for label in labels_of(chart, x, y):
            across, up = label.x / SPAN * WIDTH, label.y / SPAN * HEIGHT
            width = len(label.text) * CHARACTER
            left = across - width if label.ends else across
            assert not any(
                left < at + 30 and at + 9 < left + width and abs(up - (height - 7)) < 11
                for at, height in told
            ), label


def test_no_line_is_named_where_one_name_finds_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infx.report.labels.HEIGHT", 30)
    assert names(drawn()) == []


def test_the_chart_says_in_words_what_it_shows() -> None:
    title, about = list(drawn())[:2]
    assert title.text == "Throughput against P90 E2E-normalised interactivity"
    assert about.text
    assert about.text.startswith("7 points, 6 of them valid, 6 on a frontier.")


@pytest.mark.parametrize(("x", "down"), [(0, True), (1, True), (2, False), (3, False)])
def test_the_frontier_is_the_edge_of_what_it_dominates(x: int, down: bool) -> None:
    # More is better on both axes: down first, then on. Less is better across: on first, then up.
    svg = drawn((X_METRICS[x].key, THROUGHPUT.key))
    paths = [p for p in svg.iter("path") if "frontier" in str(p.get("class"))]
    assert len(paths) == 2
    for path in paths:
        corners = [tuple(map(float, c.split())) for c in str(path.get("d"))[1:].split("L")]
        assert len(corners) == 5
        turns = [a[0] == b[0] for a, b in pairwise(corners)]
        assert turns == [down, not down] * 2


@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=20), st.booleans())
def test_steps_keep_every_place_and_never_cut_a_corner(
    places: list[tuple[float, float]], across_first: bool
) -> None:
    corners = step_corners(places, across_first=across_first)
    assert corners[::2] == places
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in pairwise(corners))


def test_every_edge_of_a_band_runs_along_an_axis() -> None:
    low, high = ((2.0, 9.0), (4.0, 5.0)), ((3.0, 12.0), (6.0, 7.0), (9.0, 6.0))
    around = band_outline(Band(low=low, high=high))
    edges = [*pairwise(around), (around[-1], around[0])]
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in edges)
    assert {*low, *high} <= {*around}
    assert {(2.0, 12.0), (4.0, 5.0), (9.0, 5.0)} <= {*around}  # as far left, as far down
    apart = band_outline(Band(low=((1.0, 2.0),), high=((8.0, 9.0),)))
    assert [*dict.fromkeys(apart)] == [(1.0, 2.0), (8.0, 2.0), (8.0, 9.0), (1.0, 9.0)]


def test_series_differ_by_shape_not_only_by_colour() -> None:
    paths = {shape_path(number, 5) for number in range(len(SHAPES))}
    assert len(paths) == len(SHAPES)


@given(st.lists(positive, min_size=1, max_size=30))
@pytest.mark.parametrize("make", [linear_scale, log_scale, scale_for])
def test_every_value_is_inside_its_axis(make: Callable[..., Scale], values: list[float]) -> None:
    scale = make(values, 66, 940)
    assert all(66 <= scale.pixel(value) <= 940 for value in values)
    ticks = scale.ticks()
    assert all(scale.low <= tick <= scale.high * (1 + 1e-9) for tick in ticks)
    assert 2 <= len(ticks) <= 12


@given(st.lists(positive, min_size=2, max_size=30))
@pytest.mark.parametrize("make", [linear_scale, log_scale])
def test_axes_keep_the_order(make: Callable[..., Scale], values: list[float]) -> None:
    scale = make(values, 392, 16)
    pixels = [scale.pixel(value) for value in sorted(values)]
    assert pixels == sorted(pixels, reverse=True)


def test_an_axis_without_values_is_one_to_draw_nothing_on() -> None:
    assert scale_for([], 0, 1).ticks()


def rows(*shown: Shown | None) -> list[PointRow]:
    records = sample_records()
    model = build(records, sample_plan(records), FACTS)
    told = [{} if one is None else {THROUGHPUT.key: one} for one in shown]
    return [replace(model.rows[0], figures=figures) for figures in told]


def test_an_interval_beyond_the_chart_ends_at_its_edge() -> None:
    told = rows(Shown(value=10), None, Shown(value=20, low=-900, high=900, runs=2))
    axis = axis_of(THROUGHPUT, told, up=True)
    assert axis.log
    for placed in (axis.linear, axis.log):
        assert placed.at[1] is None
        assert placed.spread == {2: (SPAN, 0)}
        assert SPAN > (placed.at[0] or 0) > (placed.at[2] or 0) > 0


def test_a_figure_of_zero_has_no_logarithmic_axis() -> None:
    axis = axis_of(THROUGHPUT, rows(Shown(value=0), Shown(value=20)))
    assert axis.log is None
    assert axis.first is axis.linear


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.04213, "0.0421"), (2.4, "2.40"), (98.04, "98.0"), (1234.5, "1,234"), (None, "–")],
)
def test_figures(value: float | None, text: str) -> None:
    assert figure(value) == text


def test_changes_are_percentages_until_nobody_reads_them() -> None:
    assert [signed(share) for share in (-0.4, 0.032, 8.99)] == ["-40.0 %", "+3.2 %", "+899.0 %"]
    assert [signed(share) for share in (9.0, 1652272.3)] == ["×10.0", "×1,652,273"]


def test_axis_values() -> None:
    assert plain((1, 2, 3, 4)) == "1–4"
    assert plain((1, 2, 4)) == "1, 2, 4"
    assert plain((4, 8, 12, 16, 20, 24, 28, 32)) == "4–32 step 4"
    assert plain((1, 2, 4, *range(8, 513, 8))) == "1, 2, 4, 8–512 step 8"
    assert plain((8, 4, 2, 0)) == "8, 4, 2, 0"
    assert plain((2, 2, 2, 2)) == "2, 2, 2, 2"
    assert plain(("a", "b", "c")) == "a, b, c"
    assert plain(()) == "–"
    assert plain(True) == "yes"


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 10])
def test_png(tmp_path: Path, count: int) -> None:
    records = sample_records()
    write_png(build(records[:count], sample_plan(records), FACTS), tmp_path / "r.png")
    data = (tmp_path / "r.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert 10_000 < len(data) < 300_000
