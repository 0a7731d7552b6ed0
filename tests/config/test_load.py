"""What valid files become."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from infx.config import evaluations
from infx.config.evaluations import evaluation_content
from infx.config.expressions import Expression
from infx.config.matrix import Entry
from infx.domain.axes import AXES, VOCABULARY
from infx.workloads.lm_eval_task import GSM8K_VERSION, VERSION
from tests.config.sample_project import FILES, MATRIX, Edit, load, write_project

RECIPE = "recipes/mini.yaml"


def entry(tmp_path: Path, *edits: Edit) -> Entry:
    texts = dict(FILES)
    for edit in edits:
        texts[edit.file] = edit.apply(texts[edit.file])[0]
    return load(write_project(tmp_path, texts)).entries[0]


def axis(tmp_path: Path, name: str, *edits: Edit) -> Any:
    axes = entry(tmp_path, *edits).scenarios[0].axes
    return next(axis.values for axis in axes if axis.name == name)


def test_an_entry(tmp_path: Path) -> None:
    demo = entry(tmp_path)
    assert (demo.name, demo.framework, demo.image, demo.image_digest) == (
        "demo", "infx", "pypi:infx", "",
    )  # fmt: skip
    assert (demo.recipe.model.prefix, demo.recipe.model.precision) == ("minimaxm3", "fp32")
    assert demo.recipe.env == {"OMP_NUM_THREADS": "2"}
    assert demo.options == {"num-blocks": 64}
    assert (demo.cluster.name, demo.cluster.hardware, demo.cluster.limits.job) == (
        "box", "cpu", 3600,
    )  # fmt: skip
    assert demo.speculation is not None
    assert demo.speculation.lengths == {1: 1.8, 2: 2.4, 3: 2.78}
    assert (demo.where.line, demo.scenarios[0].where.line) == (1, 11)
    (evaluation,) = demo.evaluations
    assert (evaluation.task, evaluation.source, evaluation.limit) == ("gsm_mini", "generated", 8)
    assert evaluation.bars == {"strict-match": 0.0}


def test_a_scenario(tmp_path: Path) -> None:
    (scenario,) = entry(tmp_path).scenarios
    assert {a.name: a.values for a in scenario.axes} == {
        "conc": (1, 2, 4),
        "k": (3,),
        "max_num_seqs": Expression("2*conc", frozenset({"conc"}), len),
        "capture_sizes": ((4, 8),),
        "mono": ("off", "on"),
    }
    assert scenario.workload.isl == 64
    assert scenario.workload.requests == Expression("6*conc", frozenset({"conc"}), len)
    (include,), (exclude,) = scenario.include, scenario.exclude
    assert include.values == {"conc": 4, "mono": "off", "queueing": True}
    assert exclude.reason == "too wide"
    assert exclude.when.evaluate({"mono": "on", "conc": 4}) is True
    assert (include.where.line, exclude.where.line) == (19, 21)


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("[16, 4, 8]", ((4, 8, 16),)),
        ("[[4, 8], [4]]", ((4, 8), (4,))),
        ("[]", ((),)),
    ],
)
def test_capture_sizes(tmp_path: Path, written: str, values: object) -> None:
    edits = [Edit("[4, 8]", written)]
    if len(values) > 1:  # type: ignore[arg-type]
        edits.append(Edit("queueing: true", "queueing: true, capture-sizes: [4]"))
    assert axis(tmp_path, "capture_sizes", *edits) == values


@pytest.mark.parametrize(
    "written", ["range(4, 9, 4)", '"range(4, 9, 4)"', ">-\n          range(4, 9, 4)"]
)
def test_a_text_is_an_expression(tmp_path: Path, written: str) -> None:
    found = axis(tmp_path, "capture_sizes", Edit("[4, 8]", written))
    assert found.evaluate({}) == (4, 8)


def test_null_is_the_engines_own_default(tmp_path: Path) -> None:
    assert axis(tmp_path, "max_num_seqs", Edit("2*conc", "null")) == (None,)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("max_num_seqs", Expression("max_num_seqs", frozenset({"max_num_seqs"}), len)),
        ("4*1024", Expression("4*1024", frozenset(), len)),
        ("fp32", "fp32"),
        ("'max_num_seqs'", "max_num_seqs"),
        ("/data/some-file.gguf", "/data/some-file.gguf"),
        ("a/b", "a/b"),
        ("0.5", 0.5),
        ("true", True),
        ("null", None),
        ("[1, 2]", (1, 2)),
    ],
)
def test_options(tmp_path: Path, written: str, expected: object) -> None:
    demo = entry(tmp_path, Edit("dtype: fp32", f"dtype: {written}", RECIPE))
    assert demo.recipe.options["dtype"] == expected


def test_a_task_file_of_ones_own(tmp_path: Path) -> None:
    write_project(tmp_path)
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/mine.yaml").write_text("task: mine\n")
    demo = entry(tmp_path, Edit("task: gsm_mini", "task: tasks/mine.yaml"),
                 Edit("strict-match", "my-filter"))  # fmt: skip
    assert demo.evaluations[0].task == str(tmp_path / "tasks/mine.yaml")
    assert demo.evaluations[0].bars == {"my-filter": 0.0}


def test_gsm8k_comes_from_the_hub_or_a_path(tmp_path: Path) -> None:
    hub = entry(tmp_path, Edit("gsm_mini", "gsm8k")).evaluations[0]
    assert hub.source == "hub"
    (tmp_path / "train.jsonl").write_text("")
    (tmp_path / "test.jsonl").write_text("")
    own = entry(tmp_path, Edit("gsm_mini", "gsm8k, source: .")).evaluations[0]
    assert own.source == str(tmp_path)


def test_an_evaluation_is_identified_by_the_content_of_its_task_file(tmp_path: Path) -> None:
    write_project(tmp_path)
    contents = []
    for name, text in (("a.yaml", "task: a\n"), ("b.yaml", "task: a\n"), ("a.yaml", "task: b\n")):
        (tmp_path / name).write_text(text)
        (spec,) = entry(tmp_path, Edit("gsm_mini", name), Edit("strict-match", "x")).evaluations
        assert spec.content == hashlib.sha256(text.encode()).hexdigest()
        assert spec.content == evaluation_content(spec.task, spec.source)
        contents.append(spec.content)
    assert contents[0] == contents[1] != contents[2]


def test_an_evaluation_is_identified_by_the_questions_of_gsm8k(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path)
    contents = []
    for folder, train, test in (("a", "1", "2"), ("b", "1", "2"), ("a", "1", "3"), ("a", "2", "1")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "train.jsonl").write_text(train)
        (tmp_path / folder / "test.jsonl").write_text(test)
        (spec,) = entry(tmp_path, Edit("gsm_mini", f"gsm8k, source: {folder}")).evaluations
        assert spec.content == evaluation_content(spec.task, spec.source)
        contents.append(spec.content)
    assert contents[0] == contents[1]
    assert len(set(contents)) == 3
    monkeypatch.setitem(evaluations._VERSIONS, "gsm8k", "next")
    assert evaluation_content("gsm8k", str(tmp_path / "a")) not in contents


@pytest.mark.parametrize(
    ("task", "content"),
    [
        ("gsm_mini", f"version:{VERSION}"),
        ("gsm_mini_heldout", f"version:{VERSION}"),
        ("gsm8k", f"version:{GSM8K_VERSION}"),
    ],
)
def test_a_task_of_infx_is_identified_by_its_version(
    tmp_path: Path, task: str, content: str
) -> None:
    (spec,) = entry(tmp_path, Edit("gsm_mini", task)).evaluations
    assert spec.content == content


def test_speculation_without_a_golden_file(tmp_path: Path) -> None:
    demo = entry(tmp_path, Edit(", golden: curve, thinking: on, law: geometric", ""))
    assert demo.speculation is not None
    assert (demo.speculation.golden, demo.speculation.lengths) == ("", {})


def test_every_axis_can_be_written(tmp_path: Path) -> None:
    """Each axis of the domain has a reader for its type."""
    said = {
        "int": "2",
        "bool": "true",
        "tuple[int, ...]": "[4]",
    }
    for name, field in AXES.items():
        kind = str(field.type).removesuffix(" | None")
        written = said.get(kind) or VOCABULARY[name][0]
        if name in ("conc", "k", "max_num_seqs", "capture_sizes", "mono"):
            continue
        extra = f"k: 3\n        {name.replace('_', '-')}: {written}"
        (value,) = axis(tmp_path, name, Edit("k: 3", extra))
        assert value in (2, True, VOCABULARY.get(name, ("",))[0])


def test_the_matrix_lists_entries_in_the_order_of_the_files(tmp_path: Path) -> None:
    text = FILES[MATRIX]
    both = text.replace("demo:", "zulu:") + text.replace("demo:", "alpha:")
    matrix = load(write_project(tmp_path, {MATRIX: both}))
    assert [e.name for e in matrix.entries] == ["zulu", "alpha"]
