"""The task folders that lm-eval reads."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from infx.domain.errors import ConfigError
from infx.domain.point import Accuracy
from infx.workloads.gsm_mini import few_shot, questions
from infx.workloads.lm_eval_task import (
    FILTERS,
    GSM8K_VERSION,
    QUESTIONS,
    TASKS,
    VERSION,
    write_task,
)


def rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_generated_questions_are_written(tmp_path: Path) -> None:
    path = write_task(tmp_path / "new", Accuracy(task="gsm_mini", limit=7, shots=3, seed=5))
    assert path == tmp_path / "new" / "gsm_mini.yaml"
    asked = [row["question"] for row in rows(path.parent / "test.jsonl")]
    shots = [row["answer"] for row in rows(path.parent / "train.jsonl")]
    assert asked == [made.question for made in questions("test", 7, 5)]
    assert shots == [made.answer for made in few_shot(5, 3)]


def test_heldout_questions_come_with_shots_of_train(tmp_path: Path) -> None:
    write_task(tmp_path, Accuracy(task="gsm_mini_heldout", limit=4))
    assert rows(tmp_path / "test.jsonl")[0]["question"] == questions("heldout", 1, 0)[0].question
    assert rows(tmp_path / "train.jsonl")[0]["question"] == few_shot(0, 1)[0].question


def test_without_a_limit_there_are_all_of_them(tmp_path: Path) -> None:
    write_task(tmp_path, Accuracy(task="gsm_mini"))
    assert len(rows(tmp_path / "test.jsonl")) == QUESTIONS


def test_the_folder_works_without_infx(tmp_path: Path) -> None:
    write_task(tmp_path, Accuracy(task="gsm_mini", limit=2))
    source = "import sys, gsm_filters; print([name for name in sys.modules if 'infx' in name])"
    command = [sys.executable, "-c", source]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "'infx'" not in ran.stdout
    assert "infx.workloads" not in ran.stdout


def test_a_task_of_the_user_is_left_as_it_is(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("task: own\n")
    folder = tmp_path / "folder"
    assert write_task(folder, Accuracy(task=str(own), bars={"any": 0.5})) == own
    assert not folder.exists()


def test_gsm8k_names_the_files_it_was_given(tmp_path: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / f"{name}.jsonl").write_text("{}\n")
    path = write_task(tmp_path / "task", Accuracy(task="gsm8k", source=str(tmp_path)))
    assert f'"test": "{tmp_path / "test.jsonl"}"' in path.read_text()
    assert "first_n" not in path.read_text()


class _Task(yaml.SafeLoader):
    """Reads ``!function module.name`` as that text."""


_Task.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


def task_of(path: Path) -> dict[str, Any]:
    return yaml.load(path.read_text(), Loader=_Task)


@pytest.mark.parametrize("task", TASKS)
def test_it_asks_and_scores_as_lm_evals_own_gsm8k(task: str, tmp_path: Path) -> None:
    found = importlib.util.find_spec("lm_eval")
    assert found
    assert found.origin
    own = task_of(Path(found.origin).parent / "tasks" / "gsm8k" / "gsm8k.yaml")
    source = "hub" if task == "gsm8k" else "generated"
    ours = task_of(write_task(tmp_path, Accuracy(task=task, limit=1, source=source)))
    *filters, robust = ours["filter_list"]
    assert filters == own["filter_list"]
    assert robust["filter"][0]["filter_fn"] == "gsm_filters.last_number"
    same = (
        *("output_type", "training_split", "fewshot_split", "test_split", "doc_to_text"),
        *("doc_to_target", "generation_kwargs", "metric_list"),
    )
    assert {name: ours[name] for name in same} == {name: own[name] for name in same}
    assert tuple(f["name"] for f in ours["filter_list"]) == FILTERS
    assert str(ours["metadata"]["version"]) == (GSM8K_VERSION if task == "gsm8k" else VERSION)
    assert str(own["metadata"]["version"]) == GSM8K_VERSION


def test_gsm8k_of_the_hub(tmp_path: Path) -> None:
    path = write_task(tmp_path, Accuracy(task="gsm8k", source="hub"))
    assert "dataset_path: openai/gsm8k" in path.read_text()


@pytest.mark.parametrize(
    ("workload", "code", "named"),
    [
        (Accuracy(task="gsm_maxi"), "unknown-reference", TASKS[0]),
        (Accuracy(task="gsm8k"), "unknown-reference", "train.jsonl"),
        (Accuracy(task="gsm8k", source="/nowhere"), "file-not-found", "/nowhere/train.jsonl"),
        (Accuracy(task="/nowhere/own.yaml"), "file-not-found", "/nowhere/own.yaml"),
        (Accuracy(task="gsm_mini", bars={"strict": 0.9}), "unknown-value", "strict-match"),
    ],
)
def test_what_does_not_exist_is_named(
    tmp_path: Path, workload: Accuracy, code: str, named: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        write_task(tmp_path, workload)
    assert caught.value.code == code
    assert named in str(caught.value)
