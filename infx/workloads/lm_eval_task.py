"""lm-eval task folders: one YAML, its two callbacks, and the questions that infx generates.

    gsm_mini           questions of the `test` split, shots of the `train` split
    gsm_mini_heldout   questions from templates that no training question is made from
    gsm8k              the real one, from a folder with train.jsonl and test.jsonl, or the hub
    PATH.yaml          any task of the user's own, left as it is

The GSM8K tasks are scored by the three filters of FILTERS: GSM8K's strict and flexible ones as
lm-eval 0.4.13 defines them, and `robust`, which compares the answer's last number by value.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where
from infx.domain.point import Accuracy
from infx.workloads import gsm_filters
from infx.workloads.gsm_mini import Question, Split, few_shot, questions

__all__ = ["FILTERS", "QUESTIONS", "STOPS", "TASKS", "VERSION", "write_task"]

FILTERS = ("strict-match", "flexible-extract", "robust")
TASKS = ("gsm_mini", "gsm_mini_heldout", "gsm8k")
QUESTIONS = 500
"""Questions of gsm_mini when no limit is set: a standard error of 0.013 at a score of 0.9."""

VERSION = "2.0"
"""Of gsm_mini: its templates, ranges and shots. Scores of two versions cannot be compared."""

GSM8K_VERSION = "3.0"
"""Of lm-eval's gsm8k task, whose prompt, stops and first two filters are used here."""

STOPS = ("Question:", "</s>", "<|im_end|>")
"""Where an answer ends: acceptance is measured on what evaluations let a model write."""

_SPLITS: dict[str, Split] = {"gsm_mini": "test", "gsm_mini_heldout": "heldout"}

# The same examples stand before every gsm_mini question, so that a prefix cache is of use; gsm8k
# draws them anew for each question, as lm-eval does.
_FIXED_SHOTS = """\
fewshot_config:
  sampler: first_n
"""

_TASK = """\
task: {task}
metadata: {{version: {version}}}
{source}
output_type: generate_until
training_split: train
fewshot_split: train
test_split: test
{shots}doc_to_text: "Question: {{{{question}}}}\\nAnswer:"
doc_to_target: "{{{{answer}}}}"
generation_kwargs:
  until: {stops}
  do_sample: false
  temperature: 0.0
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
    ignore_case: true
    ignore_punctuation: false
    regexes_to_ignore: [",", "\\\\$", "(?s).*#### ", "\\\\.$"]
filter_list:
  - name: strict-match
    filter:
      - function: regex
        regex_pattern: '#### (\\-?[0-9\\.\\,]+)'
      - function: take_first
  - name: flexible-extract
    filter:
      - function: regex
        group_select: -1
        regex_pattern: '(-?[$0-9.,]{{2,}})|(-?[0-9]+)'
      - function: take_first
  - name: robust
    filter:
      - function: custom
        filter_fn: !function gsm_filters.last_number
      - function: take_first
"""


def write_task(folder: Path, workload: Accuracy) -> Path:
    """Return the path of the task's YAML, written into ``folder`` unless it is the user's own.

    Raises ConfigError when the task (``unknown-reference``), its questions (``file-not-found``) or
    a filter that a bar is set for (``unknown-value``) do not exist.
    """
    if workload.task.endswith((".yaml", ".yml")):
        return _existing(Path(workload.task), "a task's YAML file")
    if workload.task not in TASKS:
        known = f"expected one of {', '.join(TASKS)} or the path of a task's .yaml file"
        raise _unknown("unknown-reference", f"no evaluation task {workload.task!r}: {known}")
    for name in workload.bars:
        if name not in FILTERS:
            message = (
                f"a bar for {name!r}, but {workload.task} has the filters {', '.join(FILTERS)}"
            )
            raise _unknown("unknown-value", message)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(gsm_filters.__file__, folder / "gsm_filters.py")
    source = _gsm8k(workload) if workload.task == "gsm8k" else _generated(folder, workload)
    shots, version = ("", GSM8K_VERSION) if workload.task == "gsm8k" else (_FIXED_SHOTS, VERSION)
    path = folder / f"{workload.task}.yaml"
    path.write_text(
        _TASK.format(
            task=workload.task,
            version=version,
            source=source,
            shots=shots,
            stops=json.dumps(STOPS),
        ),
        encoding="utf-8",
    )
    return path


def _generated(folder: Path, workload: Accuracy) -> str:
    split = _SPLITS[workload.task]
    asked = questions(split, workload.limit or QUESTIONS, workload.seed)
    _write_rows(folder / "test.jsonl", asked)
    _write_rows(folder / "train.jsonl", few_shot(workload.seed, max(workload.shots, 1)))
    return _in_memory("train.jsonl", "test.jsonl")


def _gsm8k(workload: Accuracy) -> str:
    if workload.source == "hub":
        return "dataset_path: openai/gsm8k\ndataset_name: main"
    if workload.source == "generated":
        message = "gsm8k is not generated: set source to a folder with train.jsonl and test.jsonl"
        raise _unknown("unknown-reference", f"{message}, or to hub")
    folder = Path(workload.source).resolve()
    train = _existing(folder / "train.jsonl", "GSM8K's training questions")
    test = _existing(folder / "test.jsonl", "GSM8K's test questions")
    return _in_memory(str(train), str(test))


def _in_memory(train: str, test: str) -> str:
    paths = json.dumps({"train": train, "test": test})
    return f"custom_dataset: !function gsm_filters.load\ndataset_kwargs: {paths}"


def _write_rows(path: Path, rows: list[Question]) -> None:
    lines = [json.dumps({"question": row.question, "answer": row.answer}) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _existing(path: Path, what: str) -> Path:
    if not path.is_file():
        raise _unknown("file-not-found", f"{path} does not exist; expected {what}", str(path))
    return path.resolve()


def _unknown(code: str, sentence: str, file: str = "") -> ConfigError:
    return ConfigError([Finding(code, "error", sentence, Where(file) if file else None)])
