"""What engines are told of a simulated acceptance is found in the commands that infx renders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from infx import frameworks
from infx.domain.acceptance import Acceptance
from infx.domain.record import PointRecord, Provenance
from infx.review.injection import injected
from tests.review.minimax_m3 import minimax_m3

GOLDEN = Acceptance("synthetic", 2.78, "min-variance", "minimaxm3_eagle3_gqa", "on", 3)


def started(framework: str, acceptance: Acceptance) -> PointRecord:
    record = minimax_m3().records[0]
    arm = replace(record.point.arm, framework=framework, acceptance=acceptance, options={})
    launch = frameworks.get(framework).launch(arm, "127.0.0.1", 8000, Path("/run"))
    seen = Provenance(server_argv=launch.argv, env=launch.env)
    return replace(record, point=replace(record.point, arm=arm), provenance=seen)


@pytest.mark.parametrize("framework", ["infx", "vllm", "sglang", "atom", "trtllm"])
def test_a_length_is_found_and_a_real_acceptance_is_not(framework: str) -> None:
    found = injected(started(framework, GOLDEN))
    assert found
    assert all(one.is_of(2.78, 3) for one in found)
    assert not any(one.is_of(2.79, 3) for one in found)
    assert injected(started(framework, Acceptance(k=3))) == ()


@pytest.mark.parametrize(
    ("words", "holds"),
    [
        (("--set", "roles.agg.args.spec-decode-acceptance-length=2.78"), True),
        (("--spec-decode-acceptance-rate", "0.5933333333"), True),
        (("--spec-decode-acceptance-rate", "2.78"), False),
        (("--spec-decode-acceptance-length", "2.7"), False),
    ],
)
def test_how_atom_may_be_told(words: tuple[str, ...], holds: bool) -> None:
    record = replace(minimax_m3().records[0], provenance=Provenance(server_argv=words))
    [found] = injected(record)
    assert found.is_of(2.78, 3) is holds


def test_every_word_of_it_is_found() -> None:
    words = ("--acceptance-length", "2.78", "--acceptance-length", "3.4")
    seen = Provenance(server_argv=words, env={"SGLANG_SIMULATE_ACC_LEN": "3.9"})
    found = injected(replace(minimax_m3().records[0], provenance=seen))
    assert [one.number for one in found] == [2.78, 3.4, 3.9]
