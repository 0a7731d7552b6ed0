"""Steps: however requests are cut, batched, padded, cached, preempted, the tokens are the same."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
import torch

from infx.domain.acceptance import Acceptance, uniform
from infx.engine.batch import PAD, Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.model.reference import ReferenceModel
from infx.engine.request import SamplingParams
from infx.engine.runner import padded_width
from infx.engine.sampling import sample
from infx.engine.shapes import mini
from infx.engine.weights import target_weights
from tests.engine.driving_engine import GREEDY, Dice, Driven, outputs, prompt, small

EAGLE = {"method": "eagle3", "k": 3, "acceptance": Acceptance(k=3)}
PROMPTS = [prompt(number, length) for number, length in enumerate((5, 37, 130, 1))]


@pytest.fixture(scope="module")
def one_shot():
    """Each prompt served alone, whole, without speculation."""
    config = small(max_num_seqs=1, prefix_caching=False)
    return [outputs(config, [one])[0] for one in PROMPTS]


@pytest.mark.parametrize(
    "changes",
    [
        {"max_num_seqs": 4},
        {"max_num_seqs": 4, "max_num_batched_tokens": 23},
        {"max_num_seqs": 3, "capture_sizes": (2, 4, 9)},
        {"max_num_seqs": 4, **EAGLE},
        {"max_num_seqs": 2, "max_num_batched_tokens": 11, "capture_sizes": (3, 8), **EAGLE},
    ],
    ids=["batched", "chunked", "padded", "drafted", "all-together"],
)
def test_tokens_do_not_depend_on_how_they_are_computed(one_shot, changes):
    assert outputs(small(**changes), PROMPTS) == one_shot


def test_a_small_cache_preempts_and_gives_the_same_tokens():
    prompts = [prompt(n, 30) for n in range(3)]  # 3 pages each, 4 before they end
    driven = Driven(small(max_num_seqs=3, max_model_len=120, num_blocks=9, **EAGLE))
    requests = [driven.add(one) for one in prompts]
    driven.finish()
    assert driven.scheduler.preemptions > 0
    expected = [outputs(small(), [one])[0] for one in prompts]
    assert [request.tokens[30:] for request in requests] == expected


def test_sampled_tokens_with_a_seed_do_not_depend_on_batching_or_drafts():
    params = SamplingParams(max_tokens=12, temperature=1.0, top_p=0.9, seed=3, ignore_eos=True)
    alone = outputs(small(max_num_seqs=1), [PROMPTS[1]], params)[0]
    others = [PROMPTS[0], PROMPTS[1], PROMPTS[3]]
    assert outputs(small(), others, params)[1] == alone
    assert outputs(small(**EAGLE), others, params)[1] == alone
    assert outputs(small(), others, replace(params, seed=4))[1] != alone


@pytest.mark.parametrize("drafts", [{}, EAGLE], ids=["plain", "drafted"])
def test_each_output_token_has_its_own_random_number(monkeypatch, drafts):
    points = []

    def spy(logits, draws):
        points.extend(draw.point for draw in draws)
        return sample(logits, draws)

    monkeypatch.setattr("infx.engine.runner.sample", spy)
    params = SamplingParams(max_tokens=5, temperature=1.0, seed=3, ignore_eos=True)
    outputs(small(**drafts), [PROMPTS[0]], params)
    assert set(points) >= {uniform(3, 0, index) for index in range(5)}


def test_a_cached_prefix_gives_the_same_tokens(one_shot):
    driven = Driven(small(**EAGLE))
    for _ in range(2):
        request = driven.add(PROMPTS[2])
        driven.finish()
        assert request.tokens[130:] == one_shot[2]
    assert request.cached_tokens == 128
    longer = driven.add([*request.tokens, *prompt(9, 20)])
    driven.finish()
    assert longer.cached_tokens >= 128
    assert longer.tokens[-14:] == outputs(small(), [longer.tokens[:-14]])[0]


def test_a_page_is_shared_only_after_the_same_prefix():
    x, y, w, z = (prompt(number, 16) for number in range(4))
    driven = Driven(small())
    for one in ([*x, *z, 40], [*w, *y, 40]):
        driven.add(one)
    driven.finish()
    request = driven.add([*x, *y, 40])
    driven.finish()
    assert request.cached_tokens == 16
    assert request.tokens[33:] == outputs(small(), [[*x, *y, 40]])[0]


def test_the_last_token_of_a_wholly_cached_prompt_is_computed():
    driven = Driven(small(**EAGLE))
    requests = []
    for _ in range(2):
        requests.append(driven.add(prompt(7, 64)))
        driven.finish()
    assert requests[1].cached_tokens == 48
    assert requests[1].tokens == requests[0].tokens


def test_an_emission_names_its_tokens_and_when_they_were_sampled():
    driven = Driven(small(**EAGLE))
    request = driven.add(prompt(0, 5))
    step = driven.scheduler.schedule()
    begun_s = time.monotonic()
    result = driven.runner.run(step)
    ended_s = time.monotonic()
    ((whose, emission),) = driven.scheduler.commit(step, result)
    assert whose is request
    assert emission.ids == tuple(request.tokens[5:])
    assert emission.tokens == 1
    assert begun_s < emission.sampled_s < ended_s


def test_max_num_seqs_binds():
    driven = Driven(small(max_num_seqs=2))
    for one in PROMPTS:
        driven.add(one, replace(GREEDY, max_tokens=4))
    driven.step()
    assert (len(driven.scheduler.running), len(driven.scheduler.waiting)) == (2, 2)
    driven.finish()
    assert driven.most_running == 2


def test_pads_write_nothing_and_change_nothing():
    shape = mini()
    model = ReferenceModel(shape, target_weights(shape, "random:0"))
    span = Span(prompt(1, 20), 0, [2, 1])
    plain, padded = KvCache.empty(shape, 4), KvCache.empty(shape, 4)
    hidden, _ = model.forward(make_batch([span], 16), plain)
    batch = make_batch([span], 16, width=32)
    wide, _ = model.forward(batch, padded)
    assert batch.batch_ids.tolist() == [0] * 20 + [PAD] * 12
    assert torch.allclose(wide[:20], hidden, atol=1e-4)
    assert torch.isfinite(wide).all()
    for layer in range(shape.num_layers):
        untouched = [*padded.read(layer, torch.tensor([[[0, 3]]]))]
        if shape.attends_sparsely(layer):
            untouched.append(padded.read_index(layer, torch.tensor([[0, 3]])))
        assert not any(tensor.any() for tensor in untouched)


@pytest.mark.parametrize(("rows", "width"), [(1, 4), (4, 4), (5, 16), (17, 17)])
def test_padded_width_is_the_next_capture_size_or_the_rows(rows, width):
    assert padded_width(rows, (4, 16)) == width


@pytest.mark.parametrize("seed", range(8))
def test_pages_stay_whole_under_random_load_with_aborts(seed):
    rng = random.Random(seed)
    config = small(max_num_seqs=4, max_model_len=128, num_blocks=14, **EAGLE)
    driven, taken = Driven(config, Dice(seed, k=3)), []
    for _ in range(400):
        if rng.random() < 0.5 and len(driven.scheduler.waiting) < 6:
            base = prompt(rng.randrange(3), 60)[: rng.randint(1, 60)]
            params = SamplingParams(max_tokens=rng.randint(1, 60), ignore_eos=True)
            taken.append(driven.add(base, params))
        if taken and rng.random() < 0.1:
            rng.choice(taken).aborted = True
        driven.step()
    driven.finish()
    assert driven.scheduler.preemptions > 0
    assert driven.scheduler.prefix_hits > 0
    assert driven.scheduler.pool.free == 14
    assert all(request.finish_reason or request.aborted for request in taken)
    assert all(request.finish_reason is None or request.generated > 0 for request in taken)
