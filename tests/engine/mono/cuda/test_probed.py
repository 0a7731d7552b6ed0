"""The probe and the check over the CUDA back end, whose kernels are toys: what they would find."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch

from infx.cli.engine_cuda import FORMATS
from infx.domain.errors import EngineError, InfraError
from infx.engine.cache import KvCache
from infx.engine.config import EngineConfig
from infx.engine.mono.cuda import back_end, probed, replayed
from infx.engine.mono.cuda.probed import (
    OnDevice,
    decodes,
    device_check,
    device_host,
    few_layers,
)
from infx.engine.mono.probe.host import SIGNALLING_NAN, _spoiled
from infx.engine.mono.probe.mono_check import MonoCheck
from infx.engine.mono.probe.probing import probe
from infx.engine.mono.probe.rows import Arm
from infx.engine.mono.probe.tally import Tally
from infx.engine.mono.refusal import Refusal
from tests.engine.mono.cuda import toy_arms
from tests.engine.mono.cuda.toy_arms import ToyArms


def config(k: int = 0) -> EngineConfig:
    drafts = {"method": "eagle3", "k": k, "max_num_seqs": 4} if k else {}
    return EngineConfig(
        model="m3_tp4_rank",
        weights="random:3",
        kv_cache_dtype="fp8",
        index_cache_dtype="fp8",
        block_size=128,
        max_model_len=100_000,
        **FORMATS,
        **drafts,
    )


def probed_by(
    monkeypatch: pytest.MonkeyPatch,
    fault: str = "",
    arm: Arm = "mono",
    running: type[OnDevice] = OnDevice,
) -> Tally:
    toy_arms.install(monkeypatch, fault)
    # Spoiling 124 experts would write a gigabyte: a part of each stands for them here.
    experts = probed.OnDevice.experts
    monkeypatch.setattr(
        probed.OnDevice,
        "experts",
        lambda self, layer, chosen: [part[0, 0, :8] for part in experts(self, layer, chosen)],
    )
    return probe(device_host(config(), 1, arm, [1, 3], running), [0], [1, 3])


@pytest.mark.parametrize("arm", ["mono", "unfused"])
def test_rows_that_stand_alone_pass_the_probe(arm: Arm, monkeypatch: pytest.MonkeyPatch) -> None:
    tally = probed_by(monkeypatch, arm=arm)
    assert tally.ok, tally
    assert all(found.rows for found in tally.findings.values())
    told = [name for name, found in tally.findings.items() if not found.untold]
    assert told == [name for name in tally.findings if name != "pads"]
    widths = {rows for _, rows, *_ in ToyArms.launches}
    assert widths == {1, 3, 16}
    assert {launch[0] for launch in ToyArms.launches} == {arm}


@pytest.mark.parametrize(("fault", "wanted"), [("company", "alone"), ("stray", "slots")])
def test_rows_that_do_not_are_found(
    fault: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert probed_by(monkeypatch, fault).findings[wanted].differing


def test_a_wait_that_gave_up_ends_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InfraError, match=r"block 9 .* behind stage up"):
        probed_by(monkeypatch, "gave up")
    assert len(ToyArms.launches) == 1, "the first result is wrong already"


def test_a_back_end_that_refuses_is_not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    toy_arms.install(monkeypatch)
    monkeypatch.setattr(
        back_end, "cuda_refusal", lambda *_, **__: Refusal("mono-residency", "a GPU in use")
    )
    with pytest.raises(EngineError, match="a GPU in use") as raised:
        device_host(config(), 1, "mono", [1])
    assert raised.value.code == "mono-residency"


def test_replays_pass_the_probe_over_tensors_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    captures: list[None] = []

    def capture(launch: Callable[[], None]) -> Callable[[], None]:
        captures.append(None)
        return toy_arms.launched_again(launch)

    monkeypatch.setattr(replayed, "captured", capture)
    tally = probed_by(monkeypatch, running=replayed.Replayed)
    assert tally.ok, tally
    # A graph for each number of rows that a step had, no more.
    assert len(captures) < len(ToyArms.launches) / 4
    assert len({stream_in for _, rows, stream_in, _ in ToyArms.launches if rows == 1}) == 1


def test_a_spoiled_expert_is_no_number_and_comes_back() -> None:
    packed, plain = torch.arange(64, dtype=torch.uint8), torch.ones(4)
    with _spoiled([packed[8:16], plain[1:2]]):
        assert packed.tolist() == [*range(8), *[255] * 8, *range(16, 64)]
        assert plain.view(torch.int32)[1] == SIGNALLING_NAN
    assert packed.tolist() == list(range(64))
    assert plain.tolist() == [1] * 4


def checked(monkeypatch: pytest.MonkeyPatch, fault: str = "", k: int = 3) -> MonoCheck:
    toy_arms.install(monkeypatch, fault)
    toy_arms.install_check(monkeypatch)
    found = device_check(config(k), 2, 3)
    for decode in decodes(config(k), 2):
        if not found(decode):
            break
    return found


def test_equal_arms_pass_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    found = checked(monkeypatch)
    assert found.ok
    assert found.seen == 3
    assert [layer.rows % 4 for layer in found.layers] == [0, 0]
    assert {arm for arm, *_ in ToyArms.launches} == {"mono", "unfused"}


def test_an_arm_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found = checked(monkeypatch, "arm", k=0)
    assert not found.ok
    assert found.layers[0].greatest == pytest.approx(1)
    assert set(found.layers[1].differing) == {"output"}


def test_steps_hold_requests_on_pages_of_their_own_within_their_contexts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    toy_arms.install(monkeypatch)
    monkeypatch.setattr(probed, "_fill", lambda *_: None)
    positions = []
    for decode in itertools.islice(decodes(config(3), 1), 40):
        batch, live = decode.batch, decode.batch.live
        assert 4 <= len(live) <= batch.rows <= 16
        assert len(live) % 4 == 0
        assert len(set(batch.slots.tolist())) == len(live)
        (group, *rest) = batch.groups
        assert not rest
        assert len(set((batch.slots // 128).tolist())) <= 2 * group.spans
        assert decode.embed[batch.tokens].shape == (batch.rows, 6144)
        positions += batch.positions[batch.live].tolist()
    assert min(positions) < 128 < 128 * 128 < max(positions) < 40_960


def test_random_layers_are_sparse_ones_of_the_rank() -> None:
    model = few_layers(3)
    assert [model.has_experts(n) and model.attends_sparsely(n) for n in range(3)] == [True] * 3
    assert KvCache.empty(model, 1).slots == 128
