"""What the host says of the engine's own cache and of weights that were read."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from infx.engine.cache import KvCache
from infx.engine.cache.kinds import Kinds
from infx.engine.mono.probe.arms import step_rows
from infx.engine.mono.probe.host import SIGNALLING_NAN, Trap, host_of
from infx.engine.mono.probe.layer_bytes import LayerBytes
from infx.engine.mono.probe.probing import probe
from infx.engine.mono.probe.rows import Row
from infx.engine.shapes import mini
from infx.engine.weights import target_weights

KINDS = [Kinds("fp32", "bf16"), Kinds("bf16", "fp8"), Kinds("fp8", "mxfp4"), Kinds("mxfp4", "fp32")]
VECTORS = (1, 2, 32)


def written(kinds: Kinds, layer: int, slots: list[int], seed: int) -> KvCache:
    cache, at = KvCache.empty(mini(), 5, kinds=kinds), torch.tensor(slots)
    generator = torch.Generator().manual_seed(seed)
    keys, values = (torch.randn(len(slots), 2, 32, generator=generator) for _ in range(2))
    cache.write(layer, at, keys, values)
    cache.write_index(layer, at, torch.randn(len(slots), 32, generator=generator))
    return cache


@pytest.mark.parametrize("kinds", KINDS, ids=lambda k: f"{k.kv}-{k.index}")
def test_bytes_of_a_slot_are_what_was_written_there(kinds: Kinds) -> None:
    one, other = written(kinds, 2, [7, 40], 1), written(kinds, 2, [7, 41], 1)
    ours, theirs = LayerBytes(one, 2), LayerBytes(other, 2)
    assert ours.vectors(7) == theirs.vectors(7)
    assert ours.vectors(40) == theirs.vectors(41)
    assert ours.named(40) != ours.named(7)
    assert all(not any(data) for data in ours.named(41).values())
    scales = {"fp8": {"keys scales", "values scales"}, "mxfp4": {"keys scales", "values scales"}}
    index = {"index keys scales"} if kinds.index == "mxfp4" else set()
    assert set(ours.named(7)) == {"keys", "values", "index keys"} | index | scales.get(
        kinds.kv, set()
    )


@pytest.mark.parametrize("kinds", KINDS, ids=lambda k: f"{k.kv}-{k.index}")
def test_only_a_steps_own_slots_are_put_back_silently(kinds: Kinds) -> None:
    cache = written(kinds, 2, [7, 40], 1)
    layer = LayerBytes(cache, 2)
    layer.keep()
    before = layer.vectors(7)
    cache.write(2, torch.tensor([7]), torch.ones(1, 2, 32), torch.ones(1, 2, 32))
    cache.write_index(2, torch.tensor([7]), torch.ones(1, 32))
    assert layer.vectors(7) != before
    assert layer.restore([7])
    assert layer.vectors(7) == before
    cache.write_index(2, torch.tensor([8]), torch.ones(1, 32))
    assert not layer.restore([7])
    assert layer.restore([])


def test_taken_slots_can_be_put_back() -> None:
    cache = written(KINDS[2], 2, [7, 40], 1)
    layer = LayerBytes(cache, 2)
    before = layer.take([7, 40])
    bytes_before = layer.vectors(40)
    layer.fill(0)
    layer.put([7, 40], before)
    assert layer.vectors(40) == bytes_before


def test_the_trap_hears_a_signalling_nan_and_nothing_else() -> None:
    trap, numbers = Trap(), torch.ones(64)
    quiet, loud = torch.full((64,), float("nan")), torch.ones(64)
    loud.numpy().view(np.uint32)[:] = SIGNALLING_NAN
    for other, heard in ((numbers, False), (quiet, False), (loud, True)):
        trap.set()
        torch.mul(numbers, other)
        assert trap.sprung == heard


def test_requests_of_a_step_are_numbered_as_they_come() -> None:
    stream = np.zeros(4, dtype=np.float32)
    rows = [Row(9, 17, (3, 1), stream), Row(9, 18, (3, 1), stream), Row(-1, 0, (2,), stream)]
    step = step_rows([*rows, Row(4, 0, (6,), stream)], 16)
    assert np.asarray(step.batch_ids).tolist() == [0, 0, -1, 1]
    assert np.asarray(step.slots).tolist() == [17, 18, 32, 96]
    assert np.asarray(step.pages).tolist() == [[3, 1], [3, 1], [2, 0], [6, 0]]
    assert step.requests == 2


def test_plain_torch_is_caught() -> None:
    """The figure "without invariance": rows of plain torch differ in company."""
    model = mini(num_layers=2, aux_layers=(0, 0, 1), block_layers=(0,))
    host = host_of(model, target_weights(model, "random:0"), Kinds(), "reference")
    findings = probe(host, [0], [1, 4]).findings
    assert findings["alone"].differing
    # Its masked keys are multiplied by 0: of NaN that makes NaN.
    assert findings["poison"].differing
    # It tells no experts, so of pads it proves nothing.
    assert findings["pads"].rows == 0
    assert findings["pads"].untold
    assert not findings["slots"].differing
