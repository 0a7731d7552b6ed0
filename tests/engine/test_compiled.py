"""The compiled target against the reference: prompts, verify rows with taps, wide steps."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from infx.domain.acceptance import Acceptance
from infx.engine.batch import Batch, Span, make_batch
from infx.engine.cache import KvCache
from infx.engine.config import EngineConfig
from infx.engine.model import compiled
from infx.engine.model.compiled import CompiledModel, load_compiled
from infx.engine.model.reference import ReferenceModel
from infx.engine.weights import target_weights
from tests.engine.driving_engine import prompt, small

# The first run on a machine compiles.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# Prompts in pieces of 16 rows, beyond what block selection keeps, and shorter than a piece.
CONTEXTS = (150, 83, 33, 16, 1)
CLOSE = 1e-4
EAGLE = {"method": "eagle3", "k": 3, "acceptance": Acceptance(k=3)}
DSPARK = {"method": "dspark", "k": 7, "acceptance": Acceptance(k=7)}


class Both:
    """One configuration's target twice, each over a cache of its own."""

    def __init__(self, **changes: Any) -> None:
        self.config = small(weights="random:7", layers="compiled", **changes)
        self.model = load_compiled(self.config, self.cache())
        config = self.config
        weights = target_weights(config.shape, config.weights, config.expert_dtype)
        self.reference = ReferenceModel(config.shape, weights, taps=config.taps)
        self.other = self.cache()
        pages = [tuple(range(20 * n, 20 * n + 20)) for n in range(len(CONTEXTS))]
        self.pages = [tuple(reversed(own)) for own in pages]
        prompts = [self.span(n, 0, context) for n, context in enumerate(CONTEXTS)]
        self.agree(make_batch(prompts, config.block_size), prefill=True)

    def cache(self) -> KvCache:
        config: EngineConfig = self.config
        return KvCache.empty(config.shape, 100, kinds=config.cache_kinds)

    def span(self, number: int, start: int, rows: int) -> Span:
        return Span(prompt(number, 200)[start : start + rows], start, self.pages[number])

    def verify(self, requests: int, width: int) -> Batch:
        """Each request's last token and its drafts, padded to ``width``."""
        rows = self.config.rows_per_request
        spans = [self.span(number, CONTEXTS[number], rows) for number in range(requests)]
        return make_batch(spans, self.config.block_size, width)

    def agree(self, batch: Batch, *, prefill: bool = False) -> None:
        stream, aux = self.model.forward(batch, prefill=prefill)
        wanted, wanted_aux = self.reference.forward(batch, self.other)
        live = batch.live
        assert aux.shape == wanted_aux.shape
        close(stream[live], wanted[live])
        close(aux[live], wanted_aux[live])
        close(self.model.head(stream)[live], self.reference.head(wanted)[live])


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "mini"},
        {"model": "mini", "mono": "on"} | EAGLE,
        {"model": "mini", "mono": "on"} | DSPARK,
        {"model": "mini_3_1", "mono": "on"} | EAGLE,
        {"model": "mini", "mono": "on", "router_dtype": "bf16"},
        {"model": "mini", "mono": "on", "expert_dtype": "mxfp4"},
    ],
    ids=["unfused", "eagle3", "dspark", "mini_3_1", "bf16 router", "mxfp4 experts"],
)
@torch.inference_mode()
def test_every_step_is_the_references(changes: dict[str, Any]) -> None:
    both = Both(**changes)
    mono = both.config.mono == "on"
    assert both.model.refusal is None or both.model.refusal.code == "mono-prefill"
    # Twice: the second step writes the same slots, as after rejected drafts.
    for requests, width in ((1, 0), (2, 16), (2, 0)):
        both.agree(both.verify(requests, width))
        assert both.model.refusal is None
    both.agree(both.verify(5, 24))
    refusal = both.model.refusal
    assert (refusal.code if refusal else "") == ("mono-too-many-rows" if mono else "")
    both.model.close()


@torch.inference_mode()
def test_a_row_has_the_same_bits_in_every_step_that_could_compute_it() -> None:
    """In a prompt's piece, in an unfused step, in mono beside others, and in a wide step."""
    both = Both(model="mini_3_1", mono="on", **EAGLE)

    def row(batch: Batch, prefill: bool = False) -> bytes:
        stream, aux = both.model.forward(batch, prefill=prefill)
        logits = both.model.head(stream)
        return b"".join(part[0].numpy().tobytes() for part in (stream, aux, logits))

    alone = make_batch([both.span(0, CONTEXTS[0], 1)], both.config.block_size)
    wanted = row(alone)
    assert both.model.refusal is None
    assert row(alone, prefill=True) == wanted
    for requests, width in ((1, 0), (3, 16), (5, 0), (5, 32)):
        assert row(both.verify(requests, width)) == wanted, (requests, width)
    # A pad first, where other rows of a request would stand.
    padded = make_batch([both.span(0, CONTEXTS[0], 1)], both.config.block_size, 2)
    assert row(padded) == wanted


@torch.inference_mode()
def test_layers_that_are_not_monos_run_unfused_in_its_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[tuple[str, int]] = []
    for arm in ("run", "run_unfused"):
        own = getattr(compiled.CpuBackEnd, arm)

        def noted(self: Any, layer: int, *streams: Any, arm: str = arm, own: Any = own) -> None:
            ran.append((arm, layer))
            own(self, layer, *streams)

        monkeypatch.setattr(compiled.CpuBackEnd, arm, noted)
    both = Both(model="mini_3_1", mono="on", **EAGLE)
    ran.clear()
    both.agree(both.verify(2, 0))
    assert ran == [("run_unfused", 0), *(("run", layer) for layer in range(1, 5))]
    assert isinstance(both.model, CompiledModel)
