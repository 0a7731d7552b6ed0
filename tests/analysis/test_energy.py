"""Joules from a log of power: exact where power is linear, none where the log does not tell."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.analysis.energy import energy_of, metered
from infx.analysis.power_log import read_power_log
from infx.analysis.validity import judge
from infx.domain.record import Energy
from tests.analysis.made_exports import BASE_NS, ours
from tests.analysis.power_logs import AMD, NVIDIA, START, Tick, amd, nvidia, steady
from tests.report.sample_runs import measurement

WINDOW = (START, START + 10.0)


def reasons(log: str, gpus: int = 1) -> tuple[str, ...]:
    found = energy_of(log, WINDOW, gpus)
    assert not found.valid
    assert (found.energy_j, found.avg_power_w, found.j_per_total_token) == (None, None, None)
    return found.reasons


@pytest.mark.parametrize("write", [nvidia, amd])
def test_constant_power_gives_power_times_window(write) -> None:
    found = energy_of(write(steady(12, 500.0, gpus=4)), WINDOW, 4)
    assert found.valid
    assert found.energy_j == pytest.approx(4 * 500 * 10)
    assert found.avg_power_w == pytest.approx(4 * 500)
    assert (found.window_s, found.gpus) == (10.0, 4)


def test_the_tool_is_told() -> None:
    assert energy_of(nvidia(steady(12)), WINDOW, 1).source == "nvidia-smi"
    assert energy_of(amd(steady(12)), WINDOW, 1).source == "amd-smi"


@given(
    watts=st.lists(st.integers(0, 1400), min_size=14, max_size=14),
    start=st.integers(0, 2000),
    length=st.integers(1, 10_000),
)
def test_it_is_exact_where_power_is_linear_between_samples(watts, start, length) -> None:
    ticks: list[Tick] = [(float(t - 1), 0, float(w)) for t, w in enumerate(watts)]
    window = START + start / 1000, START + (start + length) / 1000

    def power(at_s: float) -> float:
        index = min(int(at_s - START + 1), 12)
        share = at_s - START + 1 - index
        return watts[index] * (1 - share) + watts[index + 1] * share

    knots = {START + t for t in range(13) if window[0] < START + t < window[1]} | set(window)
    edges = sorted(knots)
    by_hand = sum((b - a) * (power(a) + power(b)) / 2 for a, b in pairwise(edges))
    found = energy_of(nvidia(ticks), window, 1)
    assert found.energy_j == pytest.approx(by_hand, abs=1e-3)


@given(st.randoms(use_true_random=False))
def test_the_order_of_the_lines_does_not_matter(rng: random.Random) -> None:
    ticks = [(float(t), gpu, 100.0 + 7 * t + gpu) for t in range(-1, 12) for gpu in range(3)]
    header, *lines = nvidia(ticks, None).splitlines(keepends=True)
    stated = "# utc-offset-s=0\n"
    straight = energy_of(stated + header + "".join(lines), WINDOW, 3)
    rng.shuffle(lines)
    assert energy_of(stated + header + "".join(lines), WINDOW, 3) == straight


def test_a_longer_window_of_the_same_log_takes_more() -> None:
    log = nvidia(steady(30, 300.0))
    found = [energy_of(log, (START, START + s), 1).energy_j for s in (5.0, 10.0, 15.5)]
    assert found == [pytest.approx(1500), pytest.approx(3000), pytest.approx(4650)]


def test_a_log_of_an_h200_under_load() -> None:
    """As driver 580 wrote it, in UTC; the load ran from 12:01:36.93 to 12:01:40.50."""
    log = (
        "# power log: tool=nvidia-smi gpus=0 utc-offset-s=0\n" + NVIDIA
        + "2026/11/30 12:01:36.746, 0, 122.42 W, 1980 MHz, 0x0000000000000000\n"
        "2026/11/30 12:01:37.746, 0, 527.37 W, 1485 MHz, 0x0000000000000004\n"
        "2026/11/30 12:01:38.746, 0, 691.54 W, 1485 MHz, 0x0000000000000004\n"
        "2026/11/30 12:01:39.747, 0, 691.14 W, 1485 MHz, 0x0000000000000004\n"
        "2026/11/30 12:01:40.747, 0, 691.19 W, 1455 MHz, 0x0000000000000004\n"
    )  # fmt: skip
    found = energy_of(log, (1796040096.93, 1796040100.50), 1)
    parts = [(196.94 + 527.37) / 2 * 0.816, (527.37 + 691.54) / 2, 691.34 * 1.001, 691.16 * 0.753]
    assert found.energy_j == pytest.approx(sum(parts), rel=1e-4)


# What makes a log useless


@pytest.mark.parametrize("write", [nvidia, amd])
def test_a_gap_over_3_s_is_one_and_3_s_are_none(write) -> None:
    ticks = steady(12)
    kept = [tick for tick in ticks if not 4 < tick[0] < 7]
    assert energy_of(write(kept), WINDOW, 1).valid
    assert reasons(write([tick for tick in ticks if not 4 < tick[0] < 8])) == ("power-gap",)


@pytest.mark.parametrize("write", [nvidia, amd])
@pytest.mark.parametrize(("first", "last"), [(1, 12), (-1, 10), (3, 5), (11, 15), (-9, -2)])
def test_a_window_that_is_not_enclosed(write, first: int, last: int) -> None:
    assert reasons(write(steady(last, first=first))) == ("power-not-bracketed",)


def test_samples_at_the_very_edges_enclose_it() -> None:
    assert energy_of(nvidia(steady(11, first=0)), WINDOW, 1).energy_j == pytest.approx(5000)


def test_a_gap_reaches_over_the_edges() -> None:
    ticks = steady(20, first=-5)
    assert reasons(nvidia([t for t in ticks if not -4 < t[0] < 1])) == ("power-gap",)
    assert reasons(nvidia([t for t in ticks if not 9 < t[0] < 14])) == ("power-gap",)


def test_gaps_outside_the_window_do_not_matter() -> None:
    ticks = [*steady(-60, first=-90), *steady(12), *steady(200, first=100)]
    assert energy_of(nvidia(ticks), WINDOW, 1).energy_j == pytest.approx(5000)


@pytest.mark.parametrize("gpus", [1, 4])
def test_another_number_of_accelerators(gpus: int) -> None:
    assert reasons(nvidia(steady(12, gpus=2)), gpus) == ("power-gpus",)


def test_one_accelerator_that_falls_silent_is_seen() -> None:
    ticks = [t for t in steady(12, gpus=2) if not (t[1] == 1 and t[0] > 6)]
    assert reasons(nvidia(ticks), 2) == ("power-not-bracketed",)


@pytest.mark.parametrize("junk", ["[N/A]", "N/A", "[Unknown Error]", "-5.00 W", "nan W", "", "0x3"])
@pytest.mark.parametrize("write", [nvidia, amd])
def test_a_sample_without_a_number(write, junk: str) -> None:
    ticks: list[Tick] = [(t, g, junk if t == 5 else w) for t, g, w in steady(12)]
    assert reasons(write(ticks)) == ("power-bad-sample",)
    late: list[Tick] = [(t, g, junk if t == 13 else w) for t, g, w in steady(15)]
    assert energy_of(write(late), WINDOW, 1).valid  # after the window nobody asks


@pytest.mark.parametrize(
    "log",
    ["", "No devices were found\n", 'Field "x" is not a valid field to query.\n', NVIDIA, AMD],
)
def test_a_log_without_a_sample(log: str) -> None:
    assert reasons(log) == ("power-unreadable",)


def test_lines_that_are_no_rows_stand_for_what_they_displace() -> None:
    lines = nvidia(steady(12)).splitlines(keepends=True)
    lines[5] = "Unable to determine the device handle for GPU0: Unknown Error\n"
    assert energy_of("".join(lines), WINDOW, 1).energy_j == pytest.approx(5000)
    lines[6] = lines[7] = "junk, more junk\n"
    assert reasons("".join(lines)) == ("power-gap",)


def test_a_last_line_that_was_cut_is_no_sample() -> None:
    log = nvidia(steady(11))  # the sample at 10 s closes the window
    assert energy_of(log, WINDOW, 1).valid
    assert reasons(log[:-1]) == ("power-not-bracketed",)
    cut = log[: log.rindex(" W")] + "\n"  # a killed tool may leave part of a number
    assert reasons(cut) == ("power-not-bracketed",)


# The clock


@pytest.mark.parametrize("offset_s", [0, 9 * 3600, -5 * 3600, 19800])
def test_local_times_are_read_by_the_offset_that_the_log_states(offset_s: int) -> None:
    assert energy_of(nvidia(steady(12), offset_s), WINDOW, 1).energy_j == pytest.approx(5000)


def test_local_times_without_an_offset_mean_nothing() -> None:
    assert reasons(nvidia(steady(12), None)) == ("power-local-time",)


@pytest.mark.parametrize("offset_s", ["86400", "-999999", "9" * 30])
def test_an_offset_that_can_be_none_is_none(offset_s: str) -> None:
    log = nvidia(steady(12), 0).replace("utc-offset-s=0", f"utc-offset-s={offset_s}")
    assert reasons(log) == ("power-local-time",)


def test_a_wrong_offset_is_a_window_that_is_not_enclosed() -> None:
    local = nvidia(steady(12), 3600).replace("utc-offset-s=3600", "utc-offset-s=0")
    assert reasons(local) == ("power-not-bracketed",)


def test_two_samplings_in_one_file_are_one_log() -> None:
    log = nvidia(steady(-50, first=-80)) + nvidia(steady(12), 3600)
    assert energy_of(log, WINDOW, 1).energy_j == pytest.approx(5000)


def test_times_of_amd_smi_may_be_iso_with_a_zone() -> None:
    sample = read_power_log(AMD + "2026-11-30T12:40:00+01:00,0,238,a,b,c,d,e\n").samples[0]
    assert (sample.at_s, sample.watts) == (START, 238.0)


# A point


def of_log(folder: Path, log: str) -> tuple[Energy, list[str]]:
    path = folder / "power.csv"
    path.write_text(log)
    rates = {"tput_tok_s_gpu": 200.0, "output_tput_tok_s_gpu": 50.0}
    made = replace(measurement(4, 20.0, 100.0), window_s=10.0, **rates)
    energy, findings = metered(path, WINDOW, made, 2)
    assert all(f.level == "warning" and f.where and f.where.file == str(path) for f in findings)
    return energy, [f"{f.code}: {f.sentence}" for f in findings]


def test_joules_a_token(tmp_path: Path) -> None:
    energy, told = of_log(tmp_path, nvidia(steady(12, 500.0, gpus=2)))
    assert (energy.energy_j, told) == (pytest.approx(10_000), [])
    assert energy.j_per_total_token == pytest.approx(10_000 / (200 * 10 * 2))
    assert energy.j_per_output_token == pytest.approx(10_000 / (50 * 10 * 2))


def test_a_log_that_does_not_tell_gives_a_warning_and_no_figure(tmp_path: Path) -> None:
    energy, told = of_log(tmp_path, "No devices were found\n")
    assert (energy.valid, energy.j_per_total_token) == (False, None)
    assert told == ["power-unreadable: the log holds no sample: No devices were found"]
    ticks = [t for t in steady(12, gpus=2) if not (t[1] == 1 and 2 < t[0] < 8)]
    told = of_log(tmp_path, nvidia(ticks))[1]
    assert told == [
        "power-gap: no sample of accelerator 1 for 6.0 s, 2.0 s into the window; at most 3 s may be"
    ]


def test_a_log_that_is_gone_is_told(tmp_path: Path) -> None:
    energy, findings = metered(tmp_path / "gone.csv", WINDOW, measurement(4, 20.0, 100.0), 1)
    assert energy.reasons == ("power-unreadable",)
    assert "cannot be read" in findings[0].sentence


@pytest.mark.parametrize(
    ("bits", "words"),
    [("0x0000000000000040", "hardware thermal slowdown"), ("0x80", "power brake")],
)
def test_clocks_that_the_driver_holds_down_are_a_warning(
    tmp_path: Path, bits: str, words: str
) -> None:
    energy, told = of_log(tmp_path, nvidia(steady(12, gpus=2), slowed=bits))
    assert energy.valid
    assert told == [
        f"gpu-slowed: accelerator {gpu} ran at lower clocks in 100% of the samples: {words}"
        for gpu in (0, 1)
    ]


@pytest.mark.parametrize("bits", ["0x0000000000000004", "0x1", "0x2", "[N/A]"])
def test_a_power_cap_and_idling_are_sound(tmp_path: Path, bits: str) -> None:
    assert of_log(tmp_path, nvidia(steady(12, gpus=2), slowed=bits))[1] == []


@pytest.mark.parametrize("watts", [300.0, "[N/A]"])
def test_a_judged_point_has_its_energy_and_its_status_is_its_own(
    tmp_path: Path, watts: float | str
) -> None:
    made = ours(tmp_path, artifacts={"aiperf": "job/aiperf", "power": "job/power.csv"})
    after_s = BASE_NS / 1e9 - START
    ticks: list[Tick] = [(after_s + t, 0, watts) for t in (-1.0, 0.0, 1.0, 2.0)]
    (tmp_path / "job/power.csv").write_text(nvidia(ticks))
    judged = judge(made, tmp_path)
    assert str(judged.status) == "ok"
    assert judged.energy
    assert judged.measurement
    told = [f.code for f in judged.findings if f.code.startswith("power")]
    if watts == 300.0:
        assert (judged.energy.avg_power_w, told) == (pytest.approx(300), [])
        tokens = judged.measurement.tput_tok_s_gpu * judged.measurement.window_s
        assert judged.energy.j_per_total_token == pytest.approx(300 * 0.5 / tokens)
    else:
        assert (judged.energy.valid, told) == (False, ["power-bad-sample"])


def test_a_point_without_a_log_has_no_energy_and_no_warning(tmp_path: Path) -> None:
    judged = judge(ours(tmp_path), tmp_path)
    assert judged.energy is None
    assert not [f for f in judged.findings if f.code.startswith("power")]
