"""What `infx engine check` compares, over steps of a model that really runs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.domain.acceptance import Acceptance
from infx.engine.config import EngineConfig
from infx.engine.mono.probe import compiled_arms
from infx.engine.mono.probe.acceptance import AcceptanceCheck, Agreement, accepted
from infx.engine.mono.probe.arms import Reference, Run
from infx.engine.mono.probe.mono_check import MonoCheck, mono_check
from infx.engine.mono.probe.rows import Arm, Numbers
from infx.engine.mono.probe.serving import prompts, serve
from infx.engine.spec.verify import verdict_of

TOKENS = st.lists(st.integers(0, 2), max_size=7)


@given(drafts=TOKENS, more=st.integers(0, 2), data=st.data())
def test_accepted_drafts_are_those_that_the_engine_emits(
    drafts: list[int], more: int, data: st.DataObject
) -> None:
    own = st.lists(st.integers(0, 2), min_size=len(drafts), max_size=len(drafts))
    targets = [*data.draw(own), more]
    emitted = verdict_of(Acceptance(k=len(drafts)), 0)(drafts, targets, 0, 0)
    assert accepted(drafts, targets) == len(emitted) - 1


def test_agreement_counts_rows_and_lengths() -> None:
    agreement, drafts = Agreement(), [(5, 6), (7,)]
    agreement.count(drafts, [5, 6, 1, 7, 2], [5, 6, 9, 8, 2])
    assert (agreement.rows, agreement.equal_rows) == (5, 3)
    assert (agreement.verifies, agreement.equal_lengths) == (2, 1)
    assert (agreement.top1, agreement.lengths) == (0.6, 0.5)


class Twins(Reference):
    """Plain torch as mono and as the unfused layers, which may be made to differ in one layer."""

    wrong: tuple[str, int] = ("", -1)

    def running(self, arm: Arm = "reference") -> Run:
        def run(layer: int, stream: Numbers, out: Numbers) -> None:
            self._run(layer, stream, out)
            if self.wrong == (arm, layer):
                out[0] = -out[0]

        return run


def config(method: str = "eagle3", k: int = 3) -> EngineConfig:
    return EngineConfig(
        layers="reference", weights="shipped", method=method, k=k, max_num_seqs=2, max_model_len=512
    )


def looked(
    found: MonoCheck | AcceptanceCheck, questions: Sequence[list[int]], method: str = "eagle3"
) -> None:
    serve(config(method, 3 if method == "eagle3" else 0), questions, 12, found)


@pytest.mark.parametrize("method", ["eagle3", "none"])
def test_equal_layers_are_ok(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_arms, "Compiled", Twins)
    found = mono_check(config(method, 3 if method == "eagle3" else 0), 3)
    looked(found, prompts(2), method)
    assert found.ok
    assert found.seen == 3
    assert [layer.rows for layer in found.layers] == [24 if method == "eagle3" else 6] * 5
    assert all(layer.greatest == layer.from_reference == 0 for layer in found.layers)


def test_a_layer_that_differs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_arms, "Compiled", Twins)
    monkeypatch.setattr(Twins, "wrong", ("mono", 2))
    found = mono_check(config(), 2)
    looked(found, prompts(2))
    assert not found.ok
    assert [dict(layer.differing) for layer in found.layers] == [{}, {}, {"output": 2}, {}, {}]
    first = found.layers[2].first
    assert first is not None
    assert (first.step, first.row, first.what) == (0, 0, "output")
    assert found.layers[2].greatest > 0


def test_a_check_that_saw_nothing_is_not_ok() -> None:
    assert not mono_check(config(), 2).ok


def test_arms_that_choose_other_tokens_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_arms, "Compiled", Twins)
    found = AcceptanceCheck(config(), 3)
    looked(found, prompts(2))
    assert all(other.lengths == other.top1 == 1 for other in found.against.values())
    assert found.acceptance_length("mono") > 1.5  # the shipped draft's
    monkeypatch.setattr(Twins, "wrong", ("unfused", 4))
    found = AcceptanceCheck(config(), 3)
    looked(found, prompts(2))
    assert found.against["unfused"].top1 < 1
    assert found.against["reference"].top1 == 1
    assert found.against["unfused"].lengths < 1
