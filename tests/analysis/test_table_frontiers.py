"""Any table judged: read or refused with its place, and the frontier by its definition."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.analysis.pareto import Direction
from infx.analysis.table_frontiers import Axis, Judgement, judge_table
from infx.analysis.tables import finite, read_table
from infx.domain.errors import ConfigError

small = st.integers(0, 5).map(float)
ways = st.lists(st.sampled_from(["max", "min"]), min_size=1, max_size=3)
UP: tuple[Direction, Direction] = ("max", "max")


def csv_of(rows: Sequence[Sequence[object]], columns: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows([columns, *rows])
    return out.getvalue()


def judged(points: Sequence[Sequence[float]], directions: Sequence[Direction]) -> Judgement:
    columns = [f"a{n}" for n in range(len(directions))]
    axes = [Axis(*pair) for pair in zip(columns, directions, strict=True)]
    return judge_table(read_table(csv_of(points, columns), "t.csv"), axes)


def beats(one: Sequence[float], other: Sequence[float], directions: Sequence[Direction]) -> bool:
    """The tie rule, word by word."""
    signs = [1 if direction == "max" else -1 for direction in directions]
    gains = [s * (a - b) for s, a, b in zip(signs, one, other, strict=True)]
    return min(gains) >= 0 and max(gains) > 0


@given(st.data(), ways)
def test_a_row_is_off_exactly_when_another_beats_it(
    data: st.DataObject, directions: list[Direction]
) -> None:
    points = data.draw(st.lists(st.tuples(*[small for _ in directions]), min_size=1, max_size=15))
    for row, point in zip(judged(points, directions).rows, points, strict=True):
        assert row.on is not any(beats(other, point, directions) for other in points)
        if not row.on:
            place = int(row.dominated_by.removeprefix("line ")) - 2
            assert beats(points[place], point, directions)


@given(st.lists(st.tuples(small, small), min_size=1, max_size=15), st.randoms())
def test_the_order_of_rows_does_not_matter(points: list[tuple[float, float]], random: Any) -> None:
    shuffled = list(points)
    random.shuffle(shuffled)
    first, second = (
        sorted(points[row.number - 1] for row in judged(points, UP).rows if row.on)
        for points in (points, shuffled)
    )
    assert first == second


@pytest.mark.parametrize(
    ("points", "on"),
    [
        ([(1, 5), (2, 5)], [False, True]),
        ([(1, 5), (1, 4)], [True, False]),
        ([(1, 5), (1, 5), (2, 1)], [True, True, True]),
        ([(3, 4)], [True]),
    ],
    ids=["equal y", "equal x", "duplicates", "one row"],
)
def test_ties_follow_the_stated_rule(points: list[tuple[float, float]], on: list[bool]) -> None:
    assert [row.on for row in judged(points, UP).rows] == on


TABLE = "name,tp,x,y\na,4,1,5\nb,4,2,6\n\nc,8,1,1\n"
X, Y = Axis("x", "max"), Axis("y", "max")


def test_each_group_has_a_frontier_of_its_own() -> None:
    found = judge_table(read_table(TABLE, "t.csv"), (X, Y), group=["tp"])
    assert [(row.name, row.on, row.dominated_by) for row in found.rows] == [
        ("a", False, "line 3"), ("b", True, ""), ("c", True, ""),
    ]  # fmt: skip
    assert [(f.group, f.on, f.rows, f.advised) for f in found.fronts] == [
        ({"tp": "4"}, 1, 2, 5), ({"tp": "8"}, 1, 1, 5),
    ]  # fmt: skip


def test_rows_that_were_not_asked_for_do_not_compete() -> None:
    text = "name,status,x\na,ok,1\nb,failed,\n"
    found = judge_table(read_table(text, "t.csv"), (Axis("x", "max"),), only=[("status", "ok")])
    assert ([row.name for row in found.rows], found.left_out) == (["a"], 1)
    with pytest.raises(ConfigError, match=r"no row of t\.csv has status=late"):
        judge_table(read_table(text, "t.csv"), (Axis("x", "max"),), only=[("status", "late")])


ROWS = [{"id": "a", "m": {"x": 1, "y": 5.0}}, {"id": "b", "m": {"x": "2", "y": 6}}]


@pytest.mark.parametrize(
    "document",
    [
        ROWS,
        {"id": ["a", "b"], "m.x": [1, 2], "m.y": [5, 6]},
        {"schema": "infx.logs/1", "ok": True, "data": {"those": ROWS}, "diagnostics": []},
        {"schema": "infx.judge/1", "ok": True, "data": {"folders": ROWS, "repeated": []}},
        {"schema": "infx.status/1", "data": {"attempts": [{"n": 1}], "points": ROWS}},
    ],
    ids=["objects", "columns", "a command's only list", "folders", "a command's points"],
)
def test_json_in_its_forms(document: Any) -> None:
    table = read_table(json.dumps(document), "-")
    assert table.columns == ("id", "m.x", "m.y")
    found = judge_table(table, (Axis("m.x", "max"), Axis("m.y", "max")))
    assert [(row.name, row.on, row.dominated_by) for row in found.rows] == [
        ("a", False, "row 2"), ("b", True, ""),
    ]  # fmt: skip


@pytest.mark.parametrize("cell", ["", "nan", "inf", "-inf", "n/a", "1_000", "12 %", "true"])
def test_a_cell_that_is_no_number_is_refused_with_its_place(cell: str) -> None:
    with pytest.raises(ConfigError) as caught:
        judge_table(read_table(f"n,x,y\na,1,2\nb,3,{cell}\nc,,4\n", "t.csv"), (X, Y))
    first, second = caught.value.findings
    assert (first.code, str(first.where)) == ("bad-cell", "t.csv:3:5")
    assert first.sentence == f"row 2: y holds {cell or 'nothing'}, expected a finite number"
    assert str(second.where) == "t.csv:4:3"


@pytest.mark.parametrize("cell", ["NaN", "null", "true", "[]", "1e999", "9" * 400])
def test_a_json_value_that_is_no_number_is_refused_with_its_row(cell: str) -> None:
    with pytest.raises(ConfigError, match=r"t\.json: bad-cell row 2: x holds ") as caught:
        judge_table(read_table(f'[{{"x": 1}}, {{"x": {cell}}}]', "t.json"), (X,))
    assert len(caught.value.findings) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it holds no rows"),
        ("x,y\n", "it holds no rows"),
        ("[]", "it holds no rows"),
        ("x,y\n1,2\n3\n", "t:3:1: bad-table 1 cells where the header has 2"),
        ("x,x\n1,2\n", "two columns are called 'x'"),
        ('x,y\n1,"2\n', "t:2:1: bad-table unexpected end of data"),
        ('[{"x": 1},\n {"x": ', "t:2:1: bad-table not JSON"),
        ('[{"x": 1}, 3]', "row 2 is 3, expected an object"),
        ('{"x": [1, 2], "y": [3]}', "equally long"),
        ('{"x": 3}', "expected a list of objects"),
        ('[{"x": 1, "y": 2, "x": 9}]', "an object names 'x' twice"),
        ("[{}, {}]", "its rows hold no cells"),
        ('{"schema": "s", "data": {"a": [], "b": []}}', "expected a list of objects"),
    ],
)
def test_what_is_no_table_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_table(text, "t")
    assert words in str(caught.value)


def test_quotes_tabs_and_a_mark_of_order() -> None:
    quoted = read_table('\ufeffname,"p90, s"\n"a\nb",1\nc,x\n', "t.csv")
    assert (quoted.columns, [row.line for row in quoted.rows]) == (("name", "p90, s"), [2, 4])
    assert quoted.rows[0].get("name") == "a\nb"
    assert read_table("x\ty\n1\t2\n", "t.tsv").columns == ("x", "y")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_their_value(value: float) -> None:
    assert finite(repr(value)) == value
    assert finite(value) == value
    assert finite(math.nan) is None
