"""A bench's run from end to end, with plain torch in the place of kernels and of the clock."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from infx.engine.mono.cuda import bench, checking, measuring, random_layer, world
from infx.engine.mono.cuda.floor import layer_bytes, streamed_bytes
from infx.engine.mono.cuda.setting import Asked, Setting
from infx.engine.mono.shape import KINDS, Kind
from tests.engine.mono.cuda.plain_arms import PlainArms

pytestmark = pytest.mark.slow  # a layer in plain torch takes a second

EXPERTS = 6  # of 128: the bias lets no other be chosen
US = {"unfused": 60.0, "unfused_pdl": 50.0, "mono": 40.0, "mono_pdl": 30.0}
MACHINE = {"name": "none"}


class PlainBuilds:
    """In the place of builds: arms that need no compiler."""

    unwritten = ""

    def __init__(self, defines: dict[str, int], folder: Path | None) -> None:
        self.defines, self.folder = defines, folder

    def compile(self, widths: set[int]) -> int:
        return len(widths)

    def arms(self, rows: int) -> PlainArms:
        return PlainArms(rows, self.unwritten)


class Replayed:
    def __init__(self, launch: Callable[[int], None]) -> None:
        self.replay = functools.partial(launch, 0)


def rounds(launches: dict[str, Callable[[int], None]], pieces: int) -> dict[str, list[float]]:
    """Run all once; return the same times whatever they took."""
    for launch in launches.values():
        launch(0)
    return {name: [US.get(name, 5.0) + i for i in range(5)] for name in launches}


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    make_weights = random_layer.make_weights

    def few_experts(seed: int, device: str) -> dict[str, torch.Tensor]:
        made = make_weights(seed, device, EXPERTS)
        made["router_bias"][:EXPERTS] += 10
        return made

    replaced: dict[Any, dict[str, Any]] = {
        bench: {"Builds": PlainBuilds},
        random_layer: {"make_weights": few_experts},
        world: {"args_of": dict, "MIXED": (Asked(0), Asked(126, 3), Asked(2100))},
        checking: {"WATCHED_REPLAYS": 1, "CHAIN_REPLAYS": 1, "captured": Replayed},
        measuring: {
            "timed": rounds,
            "machine": lambda: MACHINE,
            "copy_bandwidth": lambda: 4.0,
            "Rank": functools.partial(world.Rank, device="cpu"),
            "captured": Replayed,
            "LOADED_US": 100,
            "GROUP": 1,
        },
        torch.cuda: {"max_memory_allocated": lambda: 7},
    }
    here = {"current_stream": lambda: 0, "finish": lambda: None}
    replaced[checking] |= here
    replaced[measuring] |= here
    for module, others in replaced.items():
        for name, other in others.items():
            monkeypatch.setattr(module, name, other)


def run(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code, and what was kept."""
    file = folder / "found.json"
    code = bench.main([*arguments, "--out", str(file)])
    return code, json.loads(file.read_text())


def test_every_width_is_checked_and_timed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Verify rows of requests at 300 tokens, the last of which has fewer rows than the others."""
    asked = ("--context", "300", "--rows-per-request", "4", "--kv", "mxfp4", "--stages")
    code, found = run(tmp_path, "--widths", "1,6", "--layers", "2", *asked)
    assert code == 0
    one, six = found["results"]
    assert (one["rows"], six["rows"]) == (1, 6)
    setting = Setting(context=300, rows_per_request=4, kv="mxfp4")
    assert one["unions"] == [4, 4]
    # Three blocks of each request, once for its rows.
    assert (one["blocks"], six["blocks"]) == ([3, 3], [6, 6])
    assert one["bytes"] == layer_bytes(setting, 1, 4, 3)
    assert six["mono"] == {"us": 42.0, "low": 41.0, "high": 43.0}
    assert six["ratios"]["unfused/mono"]["ratio"] == pytest.approx(62 / 42)
    assert set(six["stages"]) == {"qkv", "scores", "attend", "o", "router", "up", "down"}
    # Each stage runs on what the last layer left.
    assert six["reads"]["up"]["bytes"] == streamed_bytes(setting, six["unions"][-1])["up"]
    assert six["group"]["layers"] == 1
    printed = capsys.readouterr().out
    assert "copy 4.00 TB/s" in printed
    assert "2 layers in one graph, ms" in printed
    assert "WRONG" not in printed


@pytest.mark.parametrize("kind", ["sparse_dense", "dense"])
def test_layers_with_a_dense_mlp_are_checked_and_timed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: Kind
) -> None:
    asked = ("--kind", kind, "--context", "300", "--widths", "16", "--layers", "1", "--pads", "3")
    code, found = run(tmp_path, *asked)
    assert code == 0
    (wide,) = found["results"]
    assert found["kind"] == kind
    assert {"dense-normed", "dense-up", "dense-down", "attention"} <= set(wide["check"]["errors"])
    heads, index = (18, 0) if kind == "dense" else (20, 128)
    weights = 6144 * (128 * heads + 2048 + 3 * 3072)
    assert wide["bytes"] == weights + 13 * 300 * (2 * 132 + index)
    assert "WRONG" not in capsys.readouterr().out


@pytest.mark.parametrize("field", ["mids", "keys"])
def test_what_mono_does_not_write_is_told(
    field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlainBuilds, "unwritten", field)
    code, found = run(tmp_path, "--widths", "2", "--layers", "1", "--context", "300", "--check")
    assert code == 1
    assert found["mixed"]["mono_differs"] == [field]
    told = [line for line in capsys.readouterr().out.splitlines() if "WRONG" in line]
    assert f"WRONG 2 rows: mono's {field}" in told
    assert f"WRONG 2 rows: replayed {field}" in told
    assert "us" not in found["results"][0]


def test_pads_are_rows_of_nobody(tmp_path: Path) -> None:
    asked = ("--widths", "5", "--layers", "1", "--context", "130", "--pads", "2", "--check")
    code, found = run(tmp_path, *asked, "--rows-per-request", "2")
    assert code == 0
    assert found["results"][0]["check"]["errors"]["pads"] == 0


def test_builds_get_the_kinds_of_caches_and_the_numbers_that_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[PlainBuilds] = []
    monkeypatch.setattr(
        bench, "Builds", lambda *asked: made.append(PlainBuilds(*asked)) or made[-1]
    )
    asked = ["--compile", "--kv", "mxfp4", "--index", "bf16", "--define", "TRACE=1"]
    code = bench.main([*asked, "--cubins", str(tmp_path)])
    assert code == 0
    assert made[0].defines == {
        "KV_KIND": 2,
        "INDEX_KIND": 0,
        "LAYER_KIND": KINDS.index("sparse"),
        "TRACE": 1,
    }
    assert made[0].folder == tmp_path
