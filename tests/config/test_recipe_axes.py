"""Recipe `axes:`: defaults of server axes, at the recipe's lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.config.expressions import Expression
from infx.config.schema import recipe_schema
from infx.domain.findings import Where
from infx.domain.point import SERVER_AXES
from infx.job.golden_arms import entry_of
from infx.plan.make import make_plan
from tests.config.sample_project import FILES, MATRIX, Edit, faults, load, write_project

RECIPE = "recipes/mini.yaml"
AXES = """\
chat-template: true
axes:
  max-num-seqs: conc if conc <= 2 else 2*conc
  block-size: 32
  capture-sizes: [4, 8, 16, 32]
"""
SCENARIO = """\
        conc: [1, 2, 4]
        k: 3
        max-num-seqs: 2*conc
        capture-sizes: [4, 8]
        mono: [off, on]
"""


def project(root: Path, axes: str = AXES, scenario: str = "        conc: [1, 2, 4]\n") -> object:
    recipe = FILES[RECIPE].replace("fp32", "float32") + axes
    matrix = FILES[MATRIX].replace(SCENARIO, scenario)
    matrix = matrix.replace("{conc: 4, mono: off, queueing: true}", "{conc: 8}")
    matrix = matrix.replace("mono == 'on' and conc > 2", "conc > 4")
    return write_project(root, {RECIPE: recipe, MATRIX: matrix})


def test_a_recipe_says_what_a_scenario_does_not(tmp_path: Path) -> None:
    matrix = load(project(tmp_path))  # type: ignore[arg-type]
    axes = {axis.name: axis for axis in matrix.entries[0].scenarios[0].axes}
    assert [name for name, axis in axes.items() if axis.default] == [
        "max_num_seqs",
        "block_size",
        "capture_sizes",
    ]
    assert isinstance(axes["max_num_seqs"].values, Expression)
    assert axes["block_size"].values == (32,)
    assert axes["capture_sizes"].values == ((4, 8, 16, 32),)
    assert axes["block_size"].where == Where(RECIPE, 9, 15)


def test_the_scenario_stands_over_the_recipe(tmp_path: Path) -> None:
    said = "        conc: [1, 2, 4]\n        max-num-seqs: 8\n"
    matrix = load(project(tmp_path, scenario=said))  # type: ignore[arg-type]
    axes = {axis.name: axis for axis in matrix.entries[0].scenarios[0].axes}
    assert axes["max_num_seqs"].values == (8,)
    assert not axes["max_num_seqs"].default
    assert axes["block_size"].default


def test_what_follows_the_concurrency_by_the_recipe_is_one_curve(tmp_path: Path) -> None:
    plan = make_plan(load(project(tmp_path)))  # type: ignore[arg-type]
    points = [p for p in plan.points if p.mode == "throughput"]
    assert [(p.conc, p.arm.axes.max_num_seqs) for p in points] == [(1, 1), (2, 2), (4, 8), (8, 16)]
    assert {p.arm.axes.block_size for p in points} == {32}
    assert len({p.curve_id for p in points}) == 1
    assert points[0].expressions == {
        "max_num_seqs": "conc if conc <= 2 else 2*conc",
        "requests": "6*conc",
    }
    row = next(row for row in plan.ledger if row.disposition == "run")
    assert row.values == {"conc": 1, "max_num_seqs": 1}, "what the recipe fixes is not repeated"


def test_the_same_axes_in_the_recipe_and_in_the_scenario_are_the_same_points(
    tmp_path: Path,
) -> None:
    said = "".join(f"      {line}\n" for line in AXES.splitlines()[2:])
    in_recipe = make_plan(load(project(tmp_path / "a")))  # type: ignore[arg-type]
    in_scenario = make_plan(
        load(project(tmp_path / "b", "chat-template: true\n", "        conc: [1, 2, 4]\n" + said))  # type: ignore[arg-type]
    )
    assert [(p.point_id, p.curve_id) for p in in_recipe.points] == [
        (p.point_id, p.curve_id) for p in in_scenario.points
    ]


def test_a_recipe_alone_is_served_with_its_axes(tmp_path: Path) -> None:
    entry = load(project(tmp_path)).entries[0]  # type: ignore[arg-type]
    assert {axis.name for axis in entry_of(entry.recipe, entry.cluster).scenarios[0].axes} == {
        "max_num_seqs",
        "block_size",
        "capture_sizes",
    }


def test_the_schema_knows_the_axes_of_servers_alone() -> None:
    keys = recipe_schema()["$defs"]["RecipeSection"]["properties"]["axes"]["properties"]
    assert {key.replace("-", "_") for key in keys} == set(SERVER_AXES)


@pytest.mark.parametrize(
    ("axes", "code", "hint"),
    [
        ("axes: {«conc: 4}", "unknown-key", "write it in a scenario"),
        ("axes: {«queueing: true}", "unknown-key", "write it in a scenario"),
        ("axes: {«tpp: 4}", "unknown-key", "did you mean `tp`?"),
        ("axes: {tp: «[2, 4]}", "wrong-type", ""),
        ("axes: {mono: «onn}", "unknown-value", "did you mean `on`?"),
        ("axes: {capture-sizes: [4, «[8]]}", "wrong-type", ""),
        ("axes: {capture-sizes: [4, «4]}", "repeated-value", "remove one"),
        ("axes: {max-num-seqs: 2*«cnc}", "unknown-name", "did you mean `conc`?"),
        ("axes: {max-num-seqs: «0}", "out-of-range", "write 1 or more"),
        ("axes: {tp: «k, k: tp}", "expression-cycle", "give one of them a value"),
        ("axes: «[tp]", "wrong-type", ""),
    ],
)
def test_a_fault_is_at_the_recipes_line(tmp_path: Path, axes: str, code: str, hint: str) -> None:
    edit = Edit("env: {", f"{axes}\nenv: {{", RECIPE)
    text, place = edit.apply(FILES[RECIPE])
    found = faults(write_project(tmp_path, {RECIPE: text}))
    assert [(f.code, f.where and (f.where.file, f.where.line, f.where.col)) for f in found] == [
        (code, (RECIPE, *place))
    ]
    assert hint in found[0].hint


def test_a_circle_through_both_files_is_at_the_scenarios_line(tmp_path: Path) -> None:
    recipe = FILES[RECIPE] + "axes: {block-size: max_num_seqs}\n"
    text, place = Edit("max-num-seqs: 2*conc", "max-num-seqs: «block_size").apply(FILES[MATRIX])
    found = faults(write_project(tmp_path, {RECIPE: recipe, MATRIX: text}))
    assert [(f.code, f.where) for f in found] == [("expression-cycle", Where(MATRIX, *place))]
