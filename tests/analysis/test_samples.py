"""lm-eval's samples: read as they are, and each fault named with its file and line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infx.analysis.answers import ScoreChange, compare_answers
from infx.analysis.samples import find_samples, read_samples
from infx.analysis.unpaired import Counted
from infx.domain.errors import ConfigError, UsageError
from tests.analysis.made_samples import FILTERS, Rows, rows_of, write


def fault(call: Callable[[], Any]) -> tuple[str, str, str]:
    with pytest.raises(ConfigError) as error:
        call()
    (found,) = error.value.findings
    return found.code, str(found.where), found.sentence


def test_what_a_file_says(tmp_path: Path) -> None:
    path = write(tmp_path / "samples_gsm8k_2026-11-30T01-02-03.jsonl", rows_of([True, False]))
    found = read_samples(path)
    assert found.filters == {name: {"0": True, "1": False} for name in FILTERS}
    assert found.lines == {"0": 1, "1": 2}
    assert found.score("strict-match") == Counted(score=0.5, questions=2)


def test_metrics_that_are_no_right_or_wrong_are_left_out(tmp_path: Path) -> None:
    rows = rows_of([True, False], ["none"])
    for row in rows:
        row |= {"metrics": ["exact_match", "f1"], "f1": 0.25 + row["exact_match"] * 0.75}
    found = read_samples(write(tmp_path / "s.jsonl", rows))
    assert found.filters == {"exact_match,none": {"0": True, "1": False}}


BROKEN: list[tuple[str, Callable[[Rows], str], int, str]] = [
    ("junk", lambda rows: json.dumps(rows[0]) + "\nno JSON\n", 2, "no line of JSON"),
    ("cut", lambda rows: json.dumps(rows[0]) + "\n" + json.dumps(rows[1])[:40], 2, "the middle"),
    ("nan", lambda rows: json.dumps(rows[0] | {"exact_match": float("nan")}), 1, "the middle"),
    ("list", lambda rows: "\n\n[1]\n", 3, "expected an object"),
    ("other", lambda rows: '{"question": "q"}\n', 1, "`doc_id` is missing"),
    ("metric", lambda rows: json.dumps(rows[0] | {"metrics": ["acc"]}), 1, "`acc` is missing"),
    ("text", lambda rows: json.dumps(rows[0] | {"metrics": "exact_match"}), 1, "named metrics"),
    ("none", lambda rows: json.dumps(rows[0] | {"metrics": None}), 1, "named metrics"),
    ("filters", lambda rows: json.dumps(rows[0] | {"filter": ["none"]}), 1, "expected a filter"),
    ("twice", lambda rows: 2 * (json.dumps(rows[0]) + "\n"), 2, "on line 1 already"),
]


@pytest.mark.parametrize(("write_bad", "line", "words"), [b[1:] for b in BROKEN])
def test_a_broken_line_is_named(
    tmp_path: Path, write_bad: Callable[[Rows], str], line: int, words: str
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(write_bad(rows_of([True, True])))
    code, where, sentence = fault(lambda: read_samples(path))
    assert (code, where) == ("bad-samples", f"{path}:{line}:1")
    assert words in sentence


def test_a_file_that_tells_nothing_is_named(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty.jsonl", [])
    assert fault(lambda: read_samples(empty)) == ("bad-samples", str(empty), "it holds no sample")
    assert "cannot be read" in fault(lambda: read_samples(tmp_path / "gone.jsonl"))[2]
    rows = [row | {"exact_match": 0.5} for row in rows_of([True])]
    share = write(tmp_path / "share.jsonl", rows)
    assert "right or wrong" in fault(lambda: read_samples(share))[2]
    gap = write(tmp_path / "gap.jsonl", rows_of([True, True])[:-1])
    assert "flexible-extract has no row for question 1" in fault(lambda: read_samples(gap))[2]


@pytest.mark.parametrize(
    "name", ["samples.jsonl", "lm-eval/samples.jsonl", "model/samples_gsm8k_2026-11-30T01.jsonl"]
)
def test_a_folder_stands_for_its_file(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, rows_of([True]))
    assert find_samples(tmp_path) == find_samples(path) == path


def test_a_folder_with_none_or_two_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no samples"):
        find_samples(tmp_path)
    with pytest.raises(UsageError, match="there is no"):
        find_samples(tmp_path / "nowhere")
    for date in ("1", "2"):
        write(tmp_path / f"samples_gsm8k_{date}.jsonl", rows_of([True]))
    with pytest.raises(UsageError, match=r"2 files.*name one: .*samples_gsm8k_1"):
        find_samples(tmp_path)


def pair_of(folder: Path, a: Rows, b: Rows) -> tuple[str, str, str]:
    sides = [
        read_samples(write(folder / f"{name}.jsonl", rows)) for name, rows in (("a", a), ("b", b))
    ]
    code, where, sentence = fault(lambda: compare_answers(*sides))
    return code, where.replace(str(folder), "F"), sentence.replace(str(folder), "F")


def test_the_same_questions_are_paired(tmp_path: Path) -> None:
    a = read_samples(write(tmp_path / "a.jsonl", rows_of([True] * 20)))
    rows = rows_of([True] * 11 + [False] * 9)
    for row in rows[:5] + rows[20:25]:
        row["resps"] = [["four"]]
    found = compare_answers(a, read_samples(write(tmp_path / "b.jsonl", rows)))
    assert (found.basis, [change.filter for change in found.changes]) == ("paired", [*FILTERS])
    change = found.changes[0]
    assert isinstance(change, ScoreChange)
    assert (change.verdict.lost, change.verdict.won, change.verdict.change) == (9, 0, "worse")
    assert change.identical == 0.75


def test_our_form_and_that_of_lm_eval_are_one(tmp_path: Path) -> None:
    rows = rows_of([True, False])
    settings = rows[0]["arguments"]["gen_args_0"]["arg_1"]
    ours = [{"task": "gsm8k"} | row | {"arguments": [[["[]"], settings]]} for row in rows]
    sides = [read_samples(write(tmp_path / f"{n}.jsonl", r)) for n, r in enumerate((rows, ours))]
    assert compare_answers(*sides).basis == "paired"


@pytest.mark.parametrize("arguments", [5, "text", [5], [None], {"gen_args_0": 5}, None])
def test_arguments_of_another_form_tell_no_settings(tmp_path: Path, arguments: Any) -> None:
    rows = [row | {"arguments": arguments} for row in rows_of([True, False])]
    found = read_samples(write(tmp_path / "s.jsonl", rows))
    assert {asked[2] for asked in found.asked.values()} == {"[]"}


def test_other_questions_are_refused_with_their_line(tmp_path: Path) -> None:
    rows, other = rows_of([True] * 3), rows_of([True] * 3)
    for row in other:
        row["prompt_hash"] += "x" * (row["doc_id"] == 2)
    told = pair_of(tmp_path, rows, other)
    assert told == ("questions-differ", "F/b.jsonl:3:1", "question 2 is not the one of F/a.jsonl:3")
    told = pair_of(tmp_path, rows_of([True] * 3), rows_of([True] * 5))
    assert told[:2] == ("questions-differ", "F/b.jsonl:4:1")
    assert told[2] == "5 questions here, 3 in F/a.jsonl, which lacks question 3"


def test_other_settings_are_refused(tmp_path: Path) -> None:
    hot = rows_of([True] * 3)
    for row in hot:
        row["arguments"] = {"gen_args_0": {"arg_0": ["[]"], "arg_1": {"temperature": 1}}}
    code, where, sentence = pair_of(tmp_path, rows_of([True] * 3), hot)
    assert (code, where) == ("questions-differ", "F/b.jsonl:1:1")
    assert sentence == "question 0 had other settings than the one of F/a.jsonl:1"


def test_a_missing_filter_is_refused(tmp_path: Path) -> None:
    for a, b in ((FILTERS, FILTERS[:1]), (FILTERS[:1], FILTERS)):
        code, where, sentence = pair_of(tmp_path, rows_of([True], a), rows_of([True], b))
        lacking = "b" if len(a) > len(b) else "a"
        assert (code, where) == ("filter-missing", f"F/{lacking}.jsonl")
        assert "flexible-extract" in sentence


def test_a_file_beside_a_score_is_unpaired(tmp_path: Path) -> None:
    file = read_samples(write(tmp_path / "a.jsonl", rows_of([True] * 30 + [False] * 20)))
    score = Counted(score=0.9, questions=1319)
    found = compare_answers(file, score)
    assert (found.basis, found.why) == ("unpaired", "B is a score without its answers")
    assert [(c.filter, c.verdict.change) for c in found.changes] == [(f, "better") for f in FILTERS]
    turned = compare_answers(score, file)
    assert turned.why == "A is a score without its answers"
    assert [c.verdict.change for c in turned.changes] == ["worse", "worse"]
