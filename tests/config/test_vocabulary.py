"""The vocabularies that config checks are those of the code they name."""

from __future__ import annotations

from infx import frameworks
from infx.domain import vocabulary
from infx.workloads import lm_eval_task


def test_engines_tasks_and_filters() -> None:
    assert set(vocabulary.FRAMEWORKS) == set(frameworks.NAMES)
    assert vocabulary.TASKS == lm_eval_task.TASKS
    assert vocabulary.FILTERS == lm_eval_task.FILTERS
