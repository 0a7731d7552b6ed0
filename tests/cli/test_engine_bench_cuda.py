"""infx engine bench --device cuda: options of each device, its table, what it keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infx.cli import engine_bench_cuda
from infx.cli.engine_bench import bench
from infx.engine.mono.cuda import device, measuring
from infx.engine.mono.cuda.device import DeviceFacts
from tests.cli.commands import here
from tests.engine.mono.cuda.bench_results import checked, found, result

GOOD = [
    result(1, 51.0, 44.0, 48.0),
    result(9, 130.0, 125.0, 122.0),
    result(16, 182.0, 175.0, 173.0),
]

H200 = DeviceFacts("NVIDIA H200", (9, 0), 132, 232_448, 150_000_000_000, others=0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["mono-device", "no CUDA device"]),
        (["--rounds", "3"], ["bad-option: --rounds 3 with --device cuda", "of --device cpu alone"]),
        (["--weights", "shipped"], ["bad-option: --weights shipped with --device cuda"]),
        (["--model", "mini"], ["mono-shape", "--model mini", "m3_tp4_rank"]),
        (["--kv-cache-dtype", "fp32"], ["mono-kv-cache", "fp32", "bf16, fp8, mxfp4"]),
        (["--index-cache-dtype", "fp4"], ["mono-index-cache", "fp4", "bf16, fp8, mxfp4"]),
        (["--context", "131073"], ["bad-option: --context 131073", "131072"]),
        (["--context", "3", "--rows-per-request", "4"], ["bad-option: --context 3", "4 (the rows"]),
        (["--pads", "1"], ["bad-option: --pads 1", "fewer than 1, the least width"]),
        (["--kind", "narrow"], ["bad-option: --kind narrow", "dense, sparse, sparse_dense"]),
        (["--layers", "58"], ["--layers", "58"]),
        (["--layers", "3"], ["--layers", "4<=x<=57"]),
        (["--save", "/nowhere/bench.json"], ["bad-option: --save"]),
    ],
)
def test_what_cannot_be_is_refused(arguments: list[str], words: list[str]) -> None:
    done = here("engine", "bench", "--device", "cuda", *arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("option", ["--kind", "--rows-per-request", "--pads", "--layers"])
def test_options_of_a_gpu_are_refused_on_a_cpu(option: str) -> None:
    done = here("engine", "bench", option, "8")
    assert done.returncode == 2
    assert f"bad-option: {option} 8 with --device cpu: it is of --device cuda alone" in done.stderr


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Let a run find `GOOD`, a width after the other; return what it was asked for."""
    asked: list[Any] = []

    def measure(plan: Any, builds: Any, tell: Any) -> Iterator[dict[str, Any]]:
        asked.append(plan)
        tell("51 builds compiled")
        for count in range(1, len(GOOD) + 1):
            yield found(GOOD[:count])

    monkeypatch.setattr(measuring, "measure", measure)
    monkeypatch.setattr(device, "cuda_refusal", lambda needed: asked.append(needed))
    monkeypatch.setattr(device, "device_facts", lambda: H200)
    return asked


def test_the_table_shows_what_was_measured(
    ran: list[Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kept = tmp_path / "bench.json"
    assert bench(device="cuda", widths="1,9,16", save=kept) == 0
    needed, plan = ran
    assert 8e9 < needed < 20e9
    assert (plan.widths, plan.layers) == ([1, 9, 16], 8)
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert max(map(len, lines)) <= 100
    times, gains, read = lines[:4], lines[5:9], lines[10:]
    assert times[0].split("  ")[0] == "ROWS"
    assert "182.0 [181.0, 183.0]" in times[3]
    assert gains[1].split()[:7] == ["1", "1.062", "[1.061,", "1.064]", "0.957", "[0.956,", "0.957]"]
    assert " ".join(gains[1].split()[7:]) == "17.3 34%, 39%, 36%, 38% 1.44 45, 30"
    assert gains[2].rstrip().endswith("-")  # no bar at nine rows
    assert " ".join(read[1].split()) == "1 4.0 (4.0) + shared 16.0 69.1 1980 MHz 3201 MHz 258 W"
    said = " ".join(err.split())
    for words in (
        "NVIDIA H200, driver 580.1, torch 2.11.0",
        "copy bandwidth of this run 4.00 TB/s",
        "routing: the router on random streams: nearly uniform",
        "floor = bytes / copy bandwidth",
        "the all-reduce is a self-sum",
        "right: at every width",
    ):
        assert words in said, words
    told = json.loads(kept.read_text())
    assert told["device"] == "cuda"
    assert told["results"][2]["targets_us"] == [129, 120]


def test_what_is_wrong_ends_with_1(
    ran: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spoiled = found(GOOD) | {"mixed": checked() | {"mono_differs": ["out"]}}
    monkeypatch.setattr(measuring, "measure", lambda *asked: iter([spoiled]))
    assert bench(device="cuda", as_json=True) == 1
    told = json.loads(capsys.readouterr().out)
    assert not told["ok"]
    assert told["data"]["wrong"] == ["mixed requests: mono's out"]
    engine_bench_cuda.show(told["data"])
    assert "WRONG: mixed requests: mono's out" in capsys.readouterr().err


def test_layers_with_a_dense_mlp_have_no_experts(
    ran: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = {"qkv": 2e-4, "attention": 4e-4, "o": 3e-5, "dense-up": 3e-4, "dense-down": 4e-7}
    check = checked() | {"errors": errors}
    one = result(1, 42.0, 36.0, 39.0) | {"check": check, "unions": [0, 0]}
    dense = found([one]) | {"kind": "dense", "mixed": check}
    monkeypatch.setattr(measuring, "measure", lambda *asked: iter([dense]))
    assert bench(device="cuda", widths="1", kind="dense") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[-1].split()[:3] == ["1", "-", "16.0"]
    assert "dense-up 3e-04, dense-down 4e-07" in " ".join(err.split())


def test_a_file_that_was_not_there_is_not_left_behind_by_a_refusal(tmp_path: Path) -> None:
    kept = tmp_path / "bench.json"
    assert here("engine", "bench", "--device", "cuda", "--save", str(kept)).returncode == 2
    assert not kept.exists()
    kept.write_text("before")
    assert here("engine", "bench", "--device", "cuda", "--save", str(kept)).returncode == 2
    assert kept.read_text() == "before"


def test_pads_stand_beside_the_rows_that_are_real(capsys: pytest.CaptureFixture[str]) -> None:
    us = {"unfused": 137, "unfused_pdl": 130, "mono": 128, "mono_pdl": 127}
    padded = {arm: {"us": us[arm]} for arm in us}
    told = dict(found([GOOD[1], GOOD[2] | {"nine_real_seven_pads": padded}]))
    (line,) = engine_bench_cuda._padded(told["results"])
    assert line == (
        "µs in the order of the times: 9 real rows and 7 pads in the graph of 16"
        " 137.0, 130.0, 128.0, 127.0; 16 real 182.0, 175.0, 173.0, 171.0;"
        " 9 in a graph of their own 130.0, 125.0, 122.0, 120.0"
    )


def test_a_whole_step_has_a_table_of_its_own(
    ran: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = result(4, 80.0, 50.0, 40.0) | {"group": {"layers": 8} | result(4, 90.0, 60.0, 50.0)}
    rig = found([whole]) | {"layers": 57}
    monkeypatch.setattr(measuring, "measure", lambda *asked: iter([rig]))
    assert bench(device="cuda", widths="4", layers=57) == 0
    out, err = capsys.readouterr()
    steps = "4 4.560 (5.130) 2.850 (3.420) 2.280 (2.850) 2.166 (2.736)"
    assert " ".join(out.splitlines()[-1].split()) == steps
    assert "all 57 layers in one graph" in " ".join(err.split())


def test_who_came_to_the_gpu_meanwhile_spoils_the_times(
    ran: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(device, "device_facts", lambda: replace(H200, others=2))
    assert bench(device="cuda") == 1
    assert "WRONG: 2 other processes compute on NVIDIA H200 now" in capsys.readouterr().err
