"""Compiled layers with a forbidden order, each one found by the probe of the real thing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from infx.engine.cache.kinds import Kinds
from infx.engine.mono.cpu import compiled
from infx.engine.mono.cpu.source import build_text
from infx.engine.mono.probe.host import host_of
from infx.engine.mono.probe.probing import probe
from infx.engine.mono.probe.tally import Tally
from infx.engine.mono.table import Table
from infx.engine.shapes import ModelConfig, mini
from infx.engine.weights import target_weights

# Compiling one takes 20 s of a processor, and more where others want it too.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

EACH_EXPERT = "    for expert in range(SHAPE_EXPERTS + 1):\n        count = pairs_of("
DOWN = "            down_of(expert, count, ints, weights, scratch)\n"
FUSED = "@part\ndef up_and_down("

# Every second expert of the union deals its chunks to two lanes instead of one.
BY_RANK = """
@part
def down_by_rank(rank, expert, count, ints, weights, scratch):
    down_of(expert, count, ints, weights, scratch)
    if rank % 2 == 0:
        return
    starts, outs, half = ahead(ints, STARTS), ahead(ints, OUTS), SHAPE_EXPERT_SIZE // 2
    w = ahead(weights, W_DOWN_WEIGHT + expert * HIDDEN * SHAPE_EXPERT_SIZE)
    mids, done, kept = ahead(scratch, AT_MIDS), ahead(scratch, DONE), ahead(scratch, P)
    for pair in range(count):
        i, slot = ints[PAIRS + 2 * pair], ints[PAIRS + 2 * pair + 1]
        starts[0] = (ints[LIVE + i] * PICKS + slot) * SHAPE_EXPERT_SIZE
        outs[0] = (i * PICKS + slot) * HIDDEN
        x, out = ahead(mids, starts[0]), ahead(done, outs[0])
        for k in range(SHAPE_EXPERT_SIZE):
            kept[k] = x[k]
            x[k] = x[k] if k < half else np.float32(0)
        PRODUCT_DOWN(mids, starts, 1, w, done, outs)
        for j in range(HIDDEN):
            kept[SHAPE_EXPERT_SIZE + j] = out[j]
        for k in range(SHAPE_EXPERT_SIZE):
            x[k] = np.float32(0) if k < half else kept[k]
        PRODUCT_DOWN(mids, starts, 1, w, done, outs)
        for j in range(HIDDEN):
            out[j] = np.float32(kept[SHAPE_EXPERT_SIZE + j] + out[j])
        for k in range(SHAPE_EXPERT_SIZE):
            x[k] = kept[k]


"""
# Pads route and read what they chose; their rows are cleared at the end, as always.
WITH_PADS = """
@part
def find_all(step, ints):
    count = 0
    for row in range(WIDTH):
        if step[row] >= PAD:
            ints[LIVE + count] = row
            count += 1
    return count


"""
# Blocks would begin with other experts in fuller steps; rows add what is done as it comes.
ARRIVE = """
@part
def arrive(count, ints, scratch):
    for pair in range(count):
        i, slot = ints[PAIRS + 2 * pair], ints[PAIRS + 2 * pair + 1]
        order = ahead(scratch, P + i * (PICKS + 1))
        order[1 + np.int64(order[0])] = np.float32(slot)
        order[0] += ONE


"""


def replaced(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text, f"the kernels no longer say {old!r}"
        text = text.replace(old, new)
    return text


def chunks_by_union_rank(text: str) -> str:
    return replaced(
        text,
        (EACH_EXPERT, "    rank = 0\n" + EACH_EXPERT),
        (DOWN, DOWN.replace("down_of(", "down_by_rank(rank, ") + "            rank += 1\n"),
        (FUSED, BY_RANK.strip() + "\n\n\n" + FUSED),
    )


def pads_in_the_union(text: str) -> str:
    head = "@part\ndef route_all("
    route_all = text.index(head)
    before, after = text[:route_all], text[route_all:]
    return before + WITH_PADS + after.replace("find_live(", "find_all(", 1)


def combine_by_arrival(text: str) -> str:
    first = "    for i in range(rows):\n        scratch[P + i * (PICKS + 1)] = 0\n"
    turned = EACH_EXPERT.replace("for expert in", "for turn in").replace(
        "        count", "        expert = (turn + rows) % (SHAPE_EXPERTS + 1)\n        count"
    )
    by_turn = (
        "        for turn in range(PICKS):\n"
        "            slot = np.int64(scratch[P + i * (PICKS + 1) + 1 + turn])\n"
        "            share ="
    )
    start = text.index(FUSED)
    return text[:start] + replaced(
        text[start:],
        (EACH_EXPERT, first + turned),
        (DOWN, DOWN + "            arrive(count, ints, scratch)\n"),
        ("        for slot in range(PICKS):\n            share =", by_turn),
        (FUSED, ARRIVE.strip() + "\n\n\n" + FUSED),
    )


def one_layer() -> ModelConfig:
    return mini(
        num_layers=1, full_layers=0, dense_layers=0, aux_layers=(0, 0, 0), block_layers=(0,)
    )


def probed(kv: str = "fp32", index: str = "fp32") -> Tally:
    model = one_layer()
    host = host_of(model, target_weights(model, "random:0"), Kinds(kv, index), "mono")
    return probe(host, range(4), [1, 2, 6, 16])


def named(tally: Tally) -> set[str]:
    return {name for name, found in tally.findings.items() if found.differing}


def test_the_kernels_as_they_are_pass() -> None:
    tally = probed()
    assert tally.ok
    assert all(found.rows for found in tally.findings.values())


@pytest.mark.parametrize(
    ("mutate", "wanted"),
    [
        (chunks_by_union_rank, {"alone"}),
        (pads_in_the_union, {"pads"}),
        (combine_by_arrival, {"alone"}),
    ],
)
def test_a_forbidden_order_is_found(
    mutate: Callable[[str], str], wanted: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def mutant(table: Table) -> str:
        return mutate(build_text(table))

    monkeypatch.setattr(compiled, "build_text", mutant)
    tally = probed()
    assert wanted <= named(tally)
    for name in named(tally):
        print(mutate.__name__, name, tally.findings[name].first)
