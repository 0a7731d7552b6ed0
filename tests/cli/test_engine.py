"""infx engine: what it refuses, what it prints, and the three commands on the real layers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infx.cli import engine, engine_bench_cpu
from infx.cli.engine_cuda import needed_bytes
from infx.cli.engine_options import progress, read_widths
from infx.engine.kept import cache_folder
from infx.engine.mono.probe.rows import Left
from infx.engine.mono.probe.tally import PROPERTIES, Pair, Tally
from infx.engine.mono.probe.timing import Bench, WidthTimes
from tests.cli.commands import INFX, ROOT, as_json, environment, here
from tests.engine.mono.cuda.stub_gpu import has_driver


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["probe", "--device", "cuda", "--model", "mini"], ["mono-shape", "m3_tp4_rank"]),
        (["probe", "--device", "cuda", "--weights", "shipped"], ["bad-option", "random:SEED"]),
        (["check", "--device", "cuda", "--kv-cache-dtype", "fp32"], ["mono-kv-cache", "or mxfp4"]),
        (["check", "--device", "cuda", "--acceptance"], ["bad-option", "no model is served"]),
        (["probe", "--replay"], ["bad-option", "--replay with --device cpu", "expected cuda"]),
        (["probe", "--num-layers", "3"], ["bad-option", "--num-layers 3", "--device cpu"]),
        (["bench", "--device", "tpu"], ["mono-device", "no such device"]),
        (["probe", "--arm", "triton"], ["bad-option", "--arm triton", "reference"]),
        (["probe", "--widths", "0-3"], ["bad-option", "--widths 0-3", "1-16"]),
        (["probe", "--widths", "17"], ["bad-option", "--widths 17"]),
        (["probe", "--widths", "wide"], ["bad-option", "--widths wide"]),
        (["probe", "--kv-cache-dtype", "fp4"], ["unsupported-dtype", "fp4", "mxfp4"]),
        (["probe", "--weights", "/nowhere"], ["/nowhere"]),
        (["probe", "--model", "null"], ["bad-option", "no layers"]),
        (["probe", "--model", "m3"], ["too-little-memory"]),
        (["check", "--speculative-method", "medusa"], ["bad-option", "eagle3, dspark"]),
        (
            ["check", "--acceptance", "--speculative-method", "none"],
            ["bad-option", "expected eagle3, dspark"],
        ),
        (["bench", "--context", "9000"], ["bad-option", "--context 9000", "8192"]),
    ],
)
def test_what_cannot_be_is_refused(arguments: list[str], words: list[str]) -> None:
    done = here("engine", *arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr


@pytest.mark.skipif(has_driver(), reason="this machine has a CUDA driver")
@pytest.mark.parametrize("command", ["probe", "check", "bench"])
def test_a_machine_without_a_gpu_is_refused(command: str) -> None:
    done = here("engine", command, "--device", "cuda", "--model", "m3_tp4_rank")
    assert done.returncode == 2, done.stderr
    assert "mono-device: no CUDA device: no CUDA driver" in done.stderr
    assert done.stdout == ""


def test_memory_of_a_gpu_is_counted_by_layer() -> None:
    probed, checked = (needed_bytes(2, plain_torch=torch) for torch in (False, True))
    assert probed == 2 * 1_400_000_000 + 3_000_000_000
    assert checked == probed + 3 * 7_400_000_000


def test_widths_are_read() -> None:
    assert read_widths("1-16") == list(range(1, 17))
    assert read_widths("5,1-2, 2") == [1, 2, 5]


def tally(found: bytes) -> Tally:
    made, zero = Tally(), Left(bytes(4), b"", b"", ())
    made.count([Pair("alone", 2, 5, 4, zero, Left(found, b"", b"", ()))], 7, "sharer")
    made.count([Pair("pads", 1, 5, 0, fault="untold")], 7, "sharer")
    return made


def test_a_difference_is_named_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    engine._show(tally(b"\0\0\x80\x3f"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(PROPERTIES)
    assert lines[1].split() == [
        *["a", "row", "among", "others", "is", "the", "row", "alone"],
        *["1", "1", "-", "layer", "2,", "row", "4", "of", "5,", "seed", "7", "(sharer):", "output"],
    ]
    assert "1         -" in next(line for line in lines if "pads read" in line)


def test_properties_are_plain_data() -> None:
    assert tally(bytes(4)).ok
    made = engine._properties(tally(b"\0\0\x80\x3f"))
    assert list(made) == list(PROPERTIES)
    assert (made["alone"]["rows"], made["alone"]["differing"]) == (1, 1)
    assert made["alone"]["first"].width == 5


def times(mono_us: float, unfused_us: float) -> Bench:
    one = WidthTimes(4, 11.5, 2_000_000)
    one.us["mono"] = [mono_us * (1 + i / 100) for i in range(9)]
    one.us["unfused"] = [unfused_us * (1 + i / 100) for i in range(9)]
    one.us["reference"] = [1000.0] * 9
    one.prepare_us, one.copy_gb_s = [5.0] * 9, [20.0] * 9
    return Bench([1, 2], 512, [one])


def test_bench_states_the_floor_and_the_ratio_with_its_interval() -> None:
    made = engine_bench_cpu._figures(times(200, 250))["widths"][0]
    # 2 MB at 20 GB/s are 100 us; the median of 200 … 216 us is 208.
    assert made["floor_us"] == pytest.approx(100)
    assert made["share_of_floor"] == pytest.approx(100 / 208)
    assert made["gb_s"] == pytest.approx(2e6 / 208e-6 / 1e9)
    assert made["unfused_over_mono"]["ratio"] == pytest.approx(1.25)
    low, high = made["unfused_over_mono"]["interval"]
    assert low <= 1.25 <= high
    assert high - low < 0.01  # rounds are paired: their common rise is no spread


def test_benchs_table_shows_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    machine = {"cpu": "a processor", "threads": 1, "load": 0.5, "rounds": 9}
    engine_bench_cpu.show(machine | engine_bench_cpu._figures(times(200, 250)))
    lines = capsys.readouterr().out.splitlines()
    times_header, times_row, _, bytes_header, bytes_row = lines
    assert times_header.startswith("ROWS  MONO US")
    assert "1.250 [" in times_row
    assert bytes_header.startswith("ROWS  EXPERTS")
    assert bytes_row.split()[:4] == ["4", "11.5", "+", "shared"]
    assert max(map(len, lines)) <= 100


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_timed(tmp_path: Path) -> None:
    done = here("engine", "bench", "--save", tmp_path / "none" / "bench.json")
    assert done.returncode == 2
    assert "bad-option: --save" in done.stderr
    assert "No such file or directory" in done.stderr
    assert "round" not in done.stderr


def test_progress_is_told_from_the_first_on(capsys: pytest.CaptureFixture[str]) -> None:
    for done in range(1, 101):
        progress("step", done, 100)
    told = capsys.readouterr().err.splitlines()
    assert told[:2] == ["step 1 of 100", "step 10 of 100"]
    assert len(told) == 11


def started(*arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run infx with the builds of this session's folder; the first one may compile for minutes."""
    return subprocess.run(
        [*INFX, "engine", *map(str, arguments)],
        cwd=ROOT,
        env=environment(INFX_MONO_CACHE=str(cache_folder())),
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )


def run(*arguments: Any) -> dict[str, Any]:
    done = started(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    found = as_json(done)
    assert found["ok"]
    data: dict[str, Any] = found["data"]
    return data


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("arm", ["mono", "unfused"])
def test_probe_passes_on_the_real_layers(arm: str) -> None:
    data = run("probe", "--seeds", 2, "--widths", "1,3,16", "--arm", arm)
    for name, found in data["properties"].items():
        assert found["rows"], name
        assert not found["differing"] + found["untold"], name


@pytest.mark.slow
def test_probe_of_plain_torch_ends_with_1() -> None:
    done = started("probe", "--seeds", 1, "--widths", "4", "--arm", "reference")
    assert done.returncode == 1
    assert "layer 0, row" in done.stdout
    assert "seed 1 of 1" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("method", ["none", "eagle3", "dspark"])
def test_check_finds_the_layers_equal(method: str) -> None:
    data = run("check", "--steps", 3, "--speculative-method", method)
    assert data["steps"] == 3
    rows = {"none": 48, "eagle3": 48, "dspark": 48}[method]
    assert [layer["rows"] for layer in data["layers"]] == [rows] * 5


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_acceptance_is_the_same() -> None:
    data = run("check", "--acceptance", "--steps", 5)
    assert data["against"]["unfused"]["lengths"] == data["against"]["unfused"]["top1"] == 1
    assert data["against"]["reference"]["verifies"] == data["verifies"] == 20


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_bench_writes_what_it_prints(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    data = run("bench", "--widths", "1,4", "--rounds", 3, "--context", 64, "--save", file)
    assert json.loads(file.read_text()) == data
    assert [one["width"] for one in data["widths"]] == [1, 4]
    one, four = data["widths"]
    assert one["union"] == 4
    assert one["bytes"] < four["bytes"]
    assert len(one["us"]["mono"]) == 3
    assert all(us > 0 for us in four["least_us"].values())
