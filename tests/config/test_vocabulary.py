"""The vocabularies that config checks are those of the code they name."""

from __future__ import annotations

from infx import frameworks
from infx.config.evaluations import SOURCES
from infx.domain import vocabulary
from infx.domain.acceptance import LAWS, Law, distribution
from infx.workloads import lm_eval_task


def test_engines_tasks_and_filters() -> None:
    assert set(vocabulary.FRAMEWORKS) == set(frameworks.NAMES)
    assert vocabulary.TASKS == lm_eval_task.TASKS
    assert vocabulary.FILTERS == lm_eval_task.FILTERS
    assert tuple(SOURCES) == vocabulary.TASKS


def test_laws_are_those_that_a_length_decides() -> None:
    decided = [law for law in LAWS if _decided(law)]
    assert tuple(decided) == vocabulary.LAWS


def _decided(law: Law) -> bool:
    try:
        return len(distribution(law, 2.4, 3)) == 4
    except ValueError:
        return False
