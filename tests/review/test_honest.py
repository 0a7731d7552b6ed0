"""Honest pull requests of other kinds raise no alarm, and what does not apply is said so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from infx.review.bundle import Bundle
from infx.review.checks import review
from infx.review.reading import bundle_of
from infx.review.writing import bundle_files
from tests.review.honest import append_only, evals_only, fixed_lengths
from tests.review.minimax_m3 import ARTIFACTS


@pytest.mark.parametrize(
    ("made", "apart"),
    [
        (fixed_lengths, {9: "N/A", 11: "N/A", 12: "N/A", 13: "N/A"}),
        (evals_only, {3: "N/A", 9: "N/A", 12: "N/A", 14: "N/A"}),
        (append_only, {3: "N/A"}),
    ],
)
def test_an_honest_bundle_passes(made: Callable[[], Bundle], apart: dict[int, str]) -> None:
    bundle = made()
    files = bundle_files(bundle, {path: ARTIFACTS[path] for path in bundle.artifacts})
    checks = review(bundle_of(files, "b")).checks
    said = {check.number: check.verdict for check in checks if check.verdict != "PASS"}
    assert said == apart, [check.sentence for check in checks if check.verdict in ("WARN", "FAIL")]
