"""Which rows are evaluated; the public files hold the whole policy, here are its edges."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.config.inferencex.evals import Evaluations
from tests.config.inferencex.sample import FIXED, MULTI, WHOLE, edited, masters, rows

ONLY, EVERY = Evaluations(only=True), Evaluations(every=True)
ROW = "- { tp: 8, conc-start: 4, conc-end: 48 }"


@pytest.mark.parametrize(
    ("concs", "evaluated"),
    [
        ([4, 8], []),
        ([4, 16], [16]),
        ([16, 32], [32]),  # the median of two is the larger
        ([4, 16, 32, 64], [32, 64]),
        ([16, 32, 64, 128], [64, 128]),
    ],
)
def test_the_largest_and_the_median_concurrency_from_16_on(
    tmp_path: Path, concs: list[int], evaluated: list[int]
) -> None:
    text = edited(ROW, f"- {{ tp: 8, conc-list: {concs} }}", FIXED)
    made = [row for row in rows(masters(tmp_path, text), Evaluations()) if row["tp"] == 8]
    assert [row["conc"] for row in made if row["run-eval"]] == evaluated


def test_every_tensor_parallelism_of_a_group_is_evaluated(tmp_path: Path) -> None:
    text = edited(ROW, f"{ROW}\n      - {{ tp: 4, conc-list: [48] }}", FIXED)
    made = rows(masters(tmp_path, text), ONLY)
    assert [(r["tp"], r["conc"]) for r in made if r["spec-decoding"] == "none"] == [
        *((8, 32), (8, 48)),
        (4, 48),
    ]


def test_other_lengths_are_never_evaluated(tmp_path: Path) -> None:
    text = edited("isl: 8192", "isl: 1024", FIXED)
    assert rows(masters(tmp_path, text), EVERY) == []


def test_agentic_rows_are_evaluated_when_asked(tmp_path: Path) -> None:
    read = masters(tmp_path, WHOLE)
    plain = [r for r in rows(read, Evaluations()) if "duration" in r]
    assert [row["run-eval"] for row in plain] == [False] * 3
    only = [r for r in rows(read, ONLY) if "duration" in r]
    assert [(row["conc"], row["eval-only"]) for row in only] == [(20, True)]
    assert len([r for r in rows(read, EVERY) if "duration" in r]) == 3


def test_without_evaluations_agentic_rows_say_nothing_of_them(tmp_path: Path) -> None:
    made = [row for row in rows(masters(tmp_path, WHOLE)) if "duration" in row]
    assert all("run-eval" not in row for row in made)


def test_the_first_of_equals_is_evaluated(tmp_path: Path) -> None:
    again = MULTI[MULTI.index("      - conc-list") :].replace("[8, 32]", "[16, 32]")
    made = rows(masters(tmp_path, MULTI + again), Evaluations())
    assert [(r["conc"], r["run-eval"]) for r in made] == [([8, 32], True), ([16, 32], False)]


def test_rows_of_one_topology_are_one_evaluation(tmp_path: Path) -> None:
    more = MULTI[MULTI.index("      - conc-list") :].replace("[8, 32]", "[4, 64]")
    read = masters(tmp_path, MULTI + more)
    marked = rows(read, Evaluations())
    assert [(r["run-eval"], r.get("eval-conc")) for r in marked] == [(False, None), (True, 64)]
    (every,) = rows(read, EVERY)
    assert every["conc"] == [4, 8, 32, 64]
    assert every["eval-all-concs"] is True
    assert "eval-conc" not in every
