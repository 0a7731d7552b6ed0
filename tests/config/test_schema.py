"""The JSON Schemas are current, accept our files and refuse wrong ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from infx.config.conformity import conforms
from infx.config.nodes import Report, plain, read_yaml
from infx.config.schema import (
    clusters_schema,
    hardware_schema,
    matrix_schema,
    model_of,
    recipe_schema,
    write_schemas,
)

ROOT = Path(__file__).resolve().parents[2]


def accepts(schema: dict[str, Any], value: Any) -> bool:
    return conforms(value, schema, schema["$defs"])


def document(path: Path) -> Any:
    report = Report()
    node, _ = read_yaml(path, path.name, report)
    assert node is not None
    assert not report.findings
    return plain(node)


def ours() -> list[tuple[Path, str]]:
    others = ("clusters", "hardware")
    matrices = [p for p in (ROOT / "configs").glob("*.yaml") if p.stem not in others]
    recipes = list((ROOT / "recipes").glob("*.yaml"))
    assert matrices
    assert recipes
    found = [(path, "matrix") for path in matrices] + [(path, "recipe") for path in recipes]
    return [*found, *((ROOT / f"configs/{kind}.yaml", kind) for kind in others)]


def test_the_written_schemas_are_current(tmp_path: Path) -> None:
    for path in write_schemas(tmp_path):
        written = ROOT / "configs/schema" / path.name
        assert written.read_text() == path.read_text(), "write them again: infx config schema"


@pytest.mark.parametrize(("path", "kind"), ours(), ids=lambda v: getattr(v, "stem", v))
def test_our_files_are_accepted_and_name_their_schema(path: Path, kind: str) -> None:
    schema = json.loads((ROOT / "configs/schema" / f"{kind}.json").read_text())
    assert accepts(schema, document(path))
    named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", path.read_text())
    assert named, f"{path} does not name its schema"
    assert (path.parent / named[1]).resolve() == ROOT / "configs/schema" / f"{kind}.json"


@pytest.mark.parametrize(
    "change",
    [
        {"precison": "fp32"},
        {"precision": "fp23"},
        {"scenarios": []},
        {"scenarios": [{"workload": {"isl": 1}, "axes": {}}]},
        {"speculation": {"method": "eagle3", "golden": 7}},
        {"image-digest": "sha256:0"},
        {"recipe": ""},
        {"recipe": "../recipes/x"},
        {"recipe": "x\n"},
        {"recipe": "x" * 101},
        {"speculation": {"method": "eagle3", "law": "from-curve"}},
        {"evaluations": [{"task": "gsm_mini", "limit": 1_000_001}]},
        {"evaluations": [{"task": "gsm_mini", "shots": 101}]},
        {"evaluations": [{"task": "gsm_mini", "limit": 0}]},
        {"evaluations": [{"task": "gsm_mini", "bars": {"robust": 2}}]},
    ],
)
def test_wrong_entries_are_refused(change: dict[str, Any]) -> None:
    matrix = document(ROOT / "configs/quickstart.yaml")
    assert accepts(matrix_schema(), matrix)
    matrix["minimaxm3-mini-cpu-infx"].update(change)
    assert not accepts(matrix_schema(), matrix)


@pytest.mark.parametrize(
    "axes",
    [
        {"conc": 0},
        {"conc": True},
        {"conc": []},
        {"conc": [1, 1]},
        {"mono": "onn"},
        {"tpp": 1},
        {"capture-sizes": 4},
    ],
)
def test_wrong_axes_are_refused(axes: dict[str, Any]) -> None:
    matrix = document(ROOT / "configs/quickstart.yaml")
    matrix["minimaxm3-mini-cpu-infx"]["scenarios"][0]["axes"].update(axes)
    assert not accepts(matrix_schema(), matrix)


@pytest.mark.parametrize(
    "change", [{"env": {"A-B": "1"}}, {"env": {"AB": 1}}, {"hardware": []}, {"opts": 1}]
)
def test_wrong_recipes_are_refused(change: dict[str, Any]) -> None:
    recipe = document(ROOT / "recipes/minimaxm3-mini-cpu-infx.yaml")
    assert accepts(recipe_schema(), recipe)
    assert not accepts(recipe_schema(), recipe | change)


def test_wrong_clusters_are_refused() -> None:
    assert accepts(clusters_schema(), {"x": {"executor": "local", "hardware": "cpu"}})
    assert not accepts(clusters_schema(), {"x": {"executor": "ssh", "hardware": "cpu"}})
    assert not accepts(clusters_schema(), {})


def test_an_unknown_keyword_is_not_passed_over() -> None:
    with pytest.raises(KeyError):
        conforms(7, {"multipleOf": 2}, {})


JUNK: list[Any] = [None, True, 0, 1, -1, 2.5, "", "x", "on", "a b", "1*conc", [], ["x"], [1], {}]
JUNK += ["x\n", "./x\n", "x\x1b[31m", "./x\x1b", "x" * 101, 101, 10**6 + 1, {"x\n": 1}]
JUNK += [{"x": 1}, {"x": "y"}, {"a-b": "y"}, "package:a/b", "sha256:" + "0" * 64, "eagle3"]
SECTIONS = ["WorkloadSection", "ExcludeSection", "ScenarioSection", "EvaluationSection"]
SECTIONS += ["SpeculationSection", "EntrySection", "ModelSection", "RecipeSection"]
SECTIONS += ["TimeLimitsSection", "ContainerSection", "ExcludedNodesSection", "SlurmSection"]
SECTIONS += ["PriceSection", "ProvisionedSection", "HardwareSection"]
JUNK += ["2026-04", "2026-13", "2026-04-30", "2026-04-31x", "2026", 0.0005, [{"tier": "x"}]]
JUNK += ["/x", "/x\n", "/x'", "--x", "-x", "--x=y z", "--x\n", "node[1-2]", "a,b", "pyxis", "gres"]
JUNK += [["--x"], ["--x\n"], ["A*"], ["A b"], {"hf:o/n": "/x"}, {"hf:o/n": "x"}, {"nodes": "n"}]


@pytest.mark.parametrize("name", [*SECTIONS, "ClusterSection"])
def test_what_conforms_is_what_pydantic_accepts(name: str) -> None:
    """The short cut of `shaped` lets nothing through that the model refuses."""
    definitions = {
        **matrix_schema()["$defs"],
        **recipe_schema()["$defs"],
        **clusters_schema()["$defs"],
        **hardware_schema()["$defs"],
    }
    schema, model = definitions[name], model_of(name)
    keys = schema["properties"]
    sound = {key: _sound(keys[key], definitions) for key in keys}
    model.model_validate(sound)
    accepted = 0
    for key in [*keys, "unknown"]:
        for value in JUNK:
            changed = sound | {key: value}
            if conforms(changed, schema, definitions):
                model.model_validate(changed)
                accepted += 1
        missing = {k: v for k, v in sound.items() if k != key}
        if conforms(missing, schema, definitions):
            model.model_validate(missing)
    assert accepted


def _sound(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """Return the first of some values that conforms."""
    deep = [{"workload": {"isl": 1, "osl": 1, "requests": 1}, "axes": {}}]
    choices = [*JUNK, "infx", "fp32", "local", "min-variance", deep, deep[0]["workload"]]
    choices.append({"name": "x", "weights": "random:0"})
    return next(value for value in choices if conforms(value, schema, definitions))
