"""infx engine probe and check --device cuda, from options to output, over toy kernels."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infx.cli.engine import _probe
from infx.cli.engine_check import check
from infx.engine.mono.cuda import device, probed, replayed
from infx.engine.mono.cuda.device import DeviceFacts
from infx.engine.mono.refusal import Refusal
from infx.engine.refusal import RefusalError
from tests.engine.mono.cuda import toy_arms
from tests.engine.mono.cuda.toy_arms import ToyArms

H200 = DeviceFacts("NVIDIA H200", (9, 0), 132, 232_448, 150_000_000_000, others=0)


@pytest.fixture
def needed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the bytes that the GPU was asked for; layers are toys, and a few experts' bytes."""
    asked: list[int] = []
    toy_arms.install(monkeypatch)
    monkeypatch.setattr(device, "cuda_refusal", lambda needed: asked.append(needed))
    monkeypatch.setattr(device, "device_facts", lambda: H200)
    monkeypatch.setattr(probed.OnDevice, "experts", lambda *_: [])
    monkeypatch.setattr(replayed, "captured", toy_arms.launched_again)
    return asked


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(capsys.readouterr().out)["data"]
    return data


def test_a_probe_says_what_it_probed(needed: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    asked: dict[str, Any] = {"seeds": 1, "widths": "3", "num_layers": 1, "arm": "unfused"}
    assert _probe(device="cuda", as_json=True, replay=True, **asked) == 0
    assert needed == [4_400_000_000]
    data = told(capsys)
    wanted = {
        "arm": "unfused",
        "widths": [3],
        "replay": True,
        "gpu": "NVIDIA H200",
        "model": "m3_tp4_rank",
        "weights": "random:0",
        "layers": 1,
        "kv_cache": "fp8",
        "index_cache": "fp8",
        "all_reduce": "a self-sum of 4 equal parts",
    }
    assert {name: data[name] for name in wanted} == wanted
    assert {arm for arm, *_ in ToyArms.launches} == {"unfused"}
    assert {builds for _, builds, *_ in ToyArms.launches} == {1, 3, 16}


def test_rows_that_differ_end_with_1(
    needed: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ToyArms, "fault", "company")
    assert _probe(device="cuda", seeds=1, widths="3", num_layers=1) == 1
    assert "layer 0, row" in capsys.readouterr().out


@pytest.mark.parametrize("command", [_probe, check])
def test_a_gpu_that_cannot_is_refused_before_anything_is_drawn(
    needed: list[int], monkeypatch: pytest.MonkeyPatch, command: Any
) -> None:
    monkeypatch.setattr(device, "cuda_refusal", lambda _: Refusal("mono-residency", "in use"))
    monkeypatch.setattr(probed, "make_weights", lambda *_: pytest.fail("drawn"))
    with pytest.raises(RefusalError, match="in use") as raised:
        command(device="cuda")
    assert raised.value.code == "mono-residency"


@pytest.mark.parametrize(("fault", "code"), [("", 0), ("arm", 1)])
def test_a_check_says_what_it_compared(
    needed: list[int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    fault: str,
    code: int,
) -> None:
    monkeypatch.setattr(ToyArms, "fault", fault)
    toy_arms.install_check(monkeypatch)
    assert check(device="cuda", steps=2, num_layers=1, as_json=True) == code
    assert needed == [19_200_000_000]
    data = told(capsys)
    assert (data["gpu"], data["method"], data["k"], data["steps"]) == (
        "NVIDIA H200",
        "eagle3",
        3,
        2,
    )
    (layer,) = data["layers"]
    assert layer["rows"] >= 8
    assert bool(layer["differing"]) == bool(code)
