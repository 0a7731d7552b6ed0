from __future__ import annotations

import re
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.report.build import build
from infx.report.figures import command, figure, plain
from infx.report.palette import SHAPES
from infx.report.png import write_png
from infx.report.scales import scale_for
from infx.report.svg import NARROW, chart_svg, shape_path
from tests.report.sample_runs import FACTS, sample_plan, sample_records

positive = st.floats(1e-3, 1e6)


def charts() -> list[ET.Element]:
    records = sample_records()
    model = build(records, sample_plan(records), FACTS)
    return [ET.fromstring(chart_svg(chart)) for chart in model.charts]


def test_every_point_with_figures_is_drawn_in_every_view() -> None:
    for svg in charts():
        marks = list(svg.iter("a"))
        assert len(marks) == 7
        assert sum("invalid" in (a.get("class") or "") for a in marks) == 1
        assert all((a.get("href") or "").startswith("#row-") for a in marks)


def test_small_screens_have_a_chart_of_their_own() -> None:
    records = sample_records()
    model = build(records, sample_plan(records), FACTS)
    for chart in model.charts:
        svg = ET.fromstring(chart_svg(chart, NARROW))
        assert (svg.get("class"), svg.get("viewBox")) == ("narrow", "0 0 480 400")
        assert len(list(svg.iter("a"))) == 7
        assert not list(svg.iter("title"))  # the wide chart has them
        inside = [float(str(text.get("x"))) for text in svg.iter("text") if text.get("x")]
        assert all(0 <= x <= 480 for x in inside)


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
    titles = [title.text or "" for title in charts()[0].iter("title")]
    crossed = next(title for title in titles if "invalid" in title)
    assert "acceptance-off" in crossed
    assert "realised acceptance length 2.4100" in crossed
    assert "over 40 requests" in crossed
    assert sum("on the frontier" in title for title in titles) == 6


@pytest.mark.parametrize(("view", "steps"), [(0, "VHVH"), (1, "VHVH"), (2, "HVHV")])
def test_the_frontier_is_the_edge_of_what_it_dominates(view: int, steps: str) -> None:
    # More is better on both axes: down first, then on. Less is better across: on first, then up.
    paths = [p for p in charts()[view].iter("path") if "frontier" in str(p.get("class"))]
    assert [re.sub("[^VH]", "", p.get("d") or "") for p in paths] == [steps, steps]


def test_series_differ_by_shape_not_only_by_colour() -> None:
    paths = {shape_path(number, 0, 0, 5) for number in range(len(SHAPES))}
    assert len(paths) == len(SHAPES)


@given(st.lists(positive, max_size=30))
def test_every_value_is_inside_its_axis(values: list[float]) -> None:
    scale = scale_for(values, 66, 940)
    assert all(66 <= scale.pixel(value) <= 940 for value in values)
    ticks = scale.ticks()
    assert all(scale.low <= tick <= scale.high * (1 + 1e-9) for tick in ticks)
    assert len(ticks) <= 12


@given(st.lists(positive, min_size=2, max_size=30))
def test_axes_keep_the_order(values: list[float]) -> None:
    scale = scale_for(values, 392, 16)
    pixels = [scale.pixel(value) for value in sorted(values)]
    assert pixels == sorted(pixels, reverse=True)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.04213, "0.0421"), (2.4, "2.40"), (98.04, "98.0"), (1234.5, "1,234"), (None, "–")],
)
def test_figures(value: float | None, text: str) -> None:
    assert figure(value) == text


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


def test_a_command_is_what_a_shell_takes() -> None:
    argv = ["aiperf", "profile", "-m", "a b", "--extra-inputs", 'x:"--y"', "--ui", "none"]
    assert shlex.split(command(argv).replace("\\\n", "")) == argv


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 10])
def test_png(tmp_path: Path, count: int) -> None:
    records = sample_records()
    write_png(build(records[:count], sample_plan(records), FACTS), tmp_path / "r.png")
    data = (tmp_path / "r.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert 10_000 < len(data) < 300_000
