"""Speculation: real verification is lossless, a law gives its mean, whatever the batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.domain.acceptance import Acceptance
from infx.engine.request import SamplingParams
from infx.engine.spec.verify import verdict_of
from tests.engine.driving_engine import Driven, prompt, small

LONG = SamplingParams(max_tokens=28, ignore_eos=True)
TOKENS = st.integers(0, 3)


def synthetic(length: float, **changes):
    acceptance = Acceptance("synthetic", length, k=3)
    return small(method="eagle3", k=3, acceptance=acceptance, **changes)


@given(st.lists(TOKENS, min_size=3, max_size=3), st.lists(TOKENS, min_size=4, max_size=4))
def test_real_verification_emits_what_the_target_alone_would(drafts, targets):
    emitted = verdict_of(Acceptance(k=3), 0)(drafts, targets, 0, 0)
    accepted = len(emitted) - 1
    assert emitted == targets[: accepted + 1]
    assert emitted[:accepted] == drafts[:accepted]
    assert accepted == 3 or drafts[accepted] != targets[accepted]


@pytest.mark.parametrize("length", [1.0, 1.79, 2.78, 4.0])
def test_a_law_gives_its_mean_and_emits_the_drafts(length):
    verdict = verdict_of(Acceptance("synthetic", length, k=3), seed=7)
    drafts, targets = [10, 11, 12], [20, 21, 22, 23]
    steps = [verdict(drafts, targets, n, 3 * e) for n in range(40) for e in range(100)]
    assert all(step == [*drafts[: len(step) - 1], targets[len(step) - 1]] for step in steps)
    assert sum(map(len, steps)) / len(steps) == pytest.approx(length, abs=0.03)


def test_the_engine_realises_the_length_before_the_cut_at_max_tokens():
    driven = Driven(synthetic(2.78, max_num_seqs=4))
    requests = [driven.add(prompt(n, 20), LONG) for n in range(8)]
    driven.finish()
    steps = driven.verify_steps
    spread = 4 * (0.78 * 0.22 / steps) ** 0.5
    assert driven.emitted_by_verify / steps == pytest.approx(2.78, abs=spread)
    assert [request.generated for request in requests] == [28] * 8


def test_draws_do_not_depend_on_the_batch():
    texts, counts = [], []
    for seats in (1, 4):
        driven = Driven(synthetic(2.78, max_num_seqs=seats))
        requests = [driven.add(prompt(n, 20), LONG) for n in range(3)]
        driven.finish()
        counts.append((driven.verify_steps, driven.emitted_by_verify))
        texts.append([request.tokens for request in requests])
    assert counts[0] == counts[1]
    assert texts[0] == texts[1]


def test_all_drafts_accepted_takes_a_quarter_of_the_steps():
    steps = []
    for length in (1.0, 4.0):
        driven = Driven(synthetic(length))
        driven.add(prompt(0, 20), SamplingParams(max_tokens=25, ignore_eos=True))
        driven.finish()
        steps.append(driven.verify_steps)
    assert steps == [24, 6]
