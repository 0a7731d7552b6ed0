"""Speculation: real verification is lossless, a law gives its mean, whatever the batch."""

from __future__ import annotations

import statistics
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.domain.acceptance import Acceptance, distribution, draw, moments
from infx.engine.config import EngineConfig
from infx.engine.model.reference import ReferenceModel
from infx.engine.request import SamplingParams
from infx.engine.spec.dspark import DsparkDrafter
from infx.engine.spec.eagle import EagleDraft
from infx.engine.spec.verify import verdict_of
from tests.engine.driving_engine import Driven, outputs, prompt, small
from tests.engine.tiny import BLOCK, serve_tiny

LONG = SamplingParams(max_tokens=28, ignore_eos=True)
TOKENS = st.integers(0, 3)
ROUNDS, PAIRS = 20, 8
LAWS = [
    ("min-variance", 1.0, 3, ()),
    ("min-variance", 2.78, 3, ()),
    ("min-variance", 4.0, 7, ()),
    ("geometric", 2.78, 3, ()),
    ("geometric", 3.52, 7, ()),
    ("from-curve", 2.78, 3, (0.79, 0.6, 0.39)),
    ("from-curve", 2.39, 2, (0.79, 0.6)),
]


def synthetic(length: float, **changes):
    acceptance = Acceptance("synthetic", length, k=3)
    return small(method="eagle3", k=3, acceptance=acceptance, **changes)


def formula(law: str, length: float, k: int, curve: tuple[float, ...]) -> tuple[float, float]:
    """Mean and variance of the tokens a step, by the law's own formula."""
    if law == "min-variance":
        rest = length % 1
        return length, rest * (1 - rest)
    if law == "geometric":
        low, high = 0.0, 1.0
        while high - low > 1e-12:
            p = (low + high) / 2
            low, high = (p, high) if (1 - p ** (k + 1)) / (1 - p) < length else (low, p)
        curve = tuple(low**i for i in range(1, k + 1))
    # E[N] = 1 + sum of P(N > i); E[N^2] = 1 + sum of (2i + 1) P(N > i)
    mean = 1 + sum(curve)
    return mean, 1 + sum((2 * i + 1) * p for i, p in enumerate(curve, 1)) - mean**2


@pytest.mark.parametrize("draws", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("law", "length", "k", "curve"), LAWS)
def test_mean_and_variance_of_a_law_are_those_of_its_formula(law, length, k, curve, draws):
    probabilities = distribution(law, length, k, curve)
    mean, variance = formula(law, length, k, curve)
    assert moments(probabilities) == pytest.approx((mean, variance), abs=1e-6)
    assert mean == pytest.approx(length, abs=1e-6)
    drawn = [draw(probabilities, 11, n // 50, n % 50) for n in range(draws)]
    # Five standard errors: of the mean from the variance, of the variance from the fourth moment.
    fourth = sum((n - mean) ** 4 * p for n, p in enumerate(probabilities, 1))
    assert statistics.fmean(drawn) == pytest.approx(mean, abs=5 * (variance / draws) ** 0.5 + 1e-9)
    spread = 5 * (max(fourth - variance**2, 0.0) / draws) ** 0.5
    assert statistics.pvariance(drawn, mean) == pytest.approx(variance, abs=spread + 1e-6)


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


def synthetic_tiny(method: str, k: int, length: float, **changes) -> EngineConfig:
    fields = {"model": "tiny", "block_size": BLOCK, "max_model_len": 400, "method": method, "k": k}
    acceptance = Acceptance("synthetic", length, k=k)
    return EngineConfig(**(fields | {"acceptance": acceptance} | changes))


@pytest.mark.parametrize(("method", "k"), [("eagle3", 3), ("dspark", 7)])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_text_with_drafts_is_the_text_without(method, k, temperature, monkeypatch):
    serve_tiny(monkeypatch)
    fields = {"model": "tiny", "block_size": BLOCK, "max_model_len": 200, "max_num_seqs": 3}
    drafts = {"method": method, "k": k, "acceptance": Acceptance(k=k)}
    prompts = [prompt(number, 5 + 11 * number) for number in range(4)]
    for seed in (1, 2) if temperature else (1,):
        params = SamplingParams(max_tokens=24, ignore_eos=True, temperature=temperature, seed=seed)
        plain = outputs(EngineConfig(**fields), prompts, params)
        assert outputs(EngineConfig(**fields, **drafts), prompts, params) == plain


@pytest.fixture
def passes(monkeypatch) -> list[tuple[str, int]]:
    """Every pass of the target and of a draft from now on: which, and how many rows or blocks."""
    seen = []

    def watch(kind, name, size) -> None:
        inner = getattr(kind, name)

        def spy(whose, first, *rest):
            seen.append((kind.__name__, size(first)))
            return inner(whose, first, *rest)

        monkeypatch.setattr(kind, name, spy)

    watch(ReferenceModel, "forward", lambda batch: batch.rows)
    watch(EagleDraft, "forward", lambda batch: batch.rows)
    watch(DsparkDrafter, "_pass", len)
    return seen


@pytest.mark.parametrize(
    ("method", "k", "drafts"),
    [
        ("eagle3", 3, [("EagleDraft", 8), ("EagleDraft", 2), ("EagleDraft", 2)]),
        ("dspark", 7, [("DsparkDrafter", 2)]),
    ],
)
@pytest.mark.parametrize("accepted", [0, 2, None])
def test_draft_and_verify_compute_the_same_rows_at_every_length(
    method, k, drafts, accepted, monkeypatch, passes
):
    serve_tiny(monkeypatch)
    length = 1.0 + (k if accepted is None else accepted)
    driven = Driven(synthetic_tiny(method, k, length, max_num_seqs=2))
    for number in range(2):
        driven.add(prompt(number, 20), SamplingParams(max_tokens=300, ignore_eos=True))
    driven.step()
    for _ in range(5):
        passes.clear()
        driven.step()
        assert passes == [("ReferenceModel", 2 * (k + 1)), *drafts]
    assert driven.emitted_by_verify == 10 * length


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize(("method", "k"), [("eagle3", 3), ("dspark", 7)])
def test_a_step_takes_the_same_time_at_every_length(method, k, monkeypatch):
    """Paired steps of two engines in turn: the median of the ratios stands above the noise.

    Contexts stay nearly equal: after a few steps both engines begin again with the same prompts.
    """
    serve_tiny(monkeypatch)
    engines = [Driven(synthetic_tiny(method, k, length, max_num_seqs=2)) for length in (1, k + 1)]
    ratios = []
    for _ in range(ROUNDS):
        for driven in engines:
            begin_again(driven)
        ratios += [paired_ratio(engines, first=number % 2) for number in range(PAIRS)]
    ratios.sort()
    middle, spread = len(ratios) // 2, round(len(ratios) ** 0.5)  # 95 % of a binomial, 2 sd
    low, median, high = (ratios[middle + d] for d in (-spread, 0, spread))
    print(f"{method}: median ratio {median:.3f}, 95 % {low:.3f} to {high:.3f}")
    assert median == pytest.approx(1.0, abs=0.15), (low, high)


def begin_again(driven: Driven) -> None:
    """Two requests of the same long prompts, as far as their first token."""
    for request in driven.scheduler.running:
        request.aborted = True
    for number in range(2):
        driven.add(prompt(number, 300), SamplingParams(max_tokens=90, ignore_eos=True))
    driven.step()
    while not all(request.decoding for request in driven.scheduler.running):
        driven.step()


def paired_ratio(engines: list[Driven], first: int) -> float:
    """Return time of a step with all drafts accepted ÷ one with none, ``first`` going first."""
    took = [0.0, 0.0]
    for which in (first, 1 - first):
        begun = time.perf_counter()
        engines[which].step()
        took[which] = time.perf_counter() - begun
    return took[1] / took[0]
