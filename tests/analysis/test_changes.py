"""By how much figures changed, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.analysis.changes import Comparison, Observed, Sides, compare, compare_figures
from infx.analysis.metrics import COMPARED, METRICS
from infx.analysis.requests import aligned
from infx.domain.record import Energy
from tests.analysis.made_arms import Latency, changes, noisy, observed, rows_of

LATENCIES = st.lists(
    st.tuples(st.floats(5, 500), st.floats(20, 2000)), min_size=20, max_size=30
)  # fmt: skip

TOLD = [metric for metric in COMPARED if metric.key != "j_per_token"]
"""What runs tell that logged no power."""

few = settings(max_examples=5, deadline=None)


def one_run(a: Observed, b: Observed) -> Comparison:
    (found,) = compare([Sides(before=(a,), after=(b,))])
    return found


@few
@given(latencies=LATENCIES)
def test_equal_arms_differ_in_nothing(latencies: list[Latency]) -> None:
    side = observed(rows_of(latencies))
    found = one_run(side, side)
    assert found.basis == "requests-paired"
    assert {(c.ratio, c.verdict) for c in found.changes} == {(1.0, "no-difference-seen")}
    assert {(c.low, c.high) for c in found.changes} == {(1.0, 1.0)}


@few
@given(latencies=LATENCIES, other=LATENCIES)
def test_swapped_arms_invert_every_ratio(latencies: list[Latency], other: list[Latency]) -> None:
    n = min(len(latencies), len(other))
    a, b = observed(rows_of(latencies[:n])), observed(rows_of(other[:n]))
    there, back = changes(one_run(a, b)), changes(one_run(b, a))
    opposite = {"better": "worse", "worse": "better"}
    for key, change in there.items():
        assert back[key].ratio == pytest.approx(1 / change.ratio)
        assert back[key].low == pytest.approx(1 / change.high)
        assert back[key].high == pytest.approx(1 / change.low)
        assert back[key].verdict == opposite.get(change.verdict, change.verdict)


@few
@given(latencies=LATENCIES, factor=st.floats(0.3, 3).filter(lambda c: abs(c - 1) > 0.01))
def test_a_scaled_arm_gives_the_factor_and_the_verdict(
    latencies: list[Latency], factor: float
) -> None:
    scaled = [(ttft * factor, rest * factor) for ttft, rest in latencies]
    found = one_run(observed(rows_of(latencies)), observed(rows_of(scaled)))
    for metric, change in zip(TOLD, found.changes, strict=True):
        expected = factor if metric.better == "less" else 1 / factor
        assert change.ratio == pytest.approx(expected, rel=1e-4)  # times are whole ns
        assert change.low == pytest.approx(expected, rel=1e-4)
        assert change.high == pytest.approx(expected, rel=1e-4)
        assert change.verdict == ("better" if factor < 1 else "worse")


def test_every_interval_holds_its_ratio_when_prompts_differ() -> None:
    a, b = observed(rows_of(noisy(40, 1))), observed(rows_of(noisy(40, 2, 0.5)), b"other ")
    found = one_run(a, b)
    assert found.basis == "requests"
    assert "prompts differ" in found.unpaired
    for change in found.changes:
        assert change.low is not None
        assert change.high is not None
        assert change.low <= change.ratio <= change.high
    told = changes(found)
    assert told["itl_p50"].verdict == told["output_tput_tok_s_gpu"].verdict == "better"
    assert told["ttft_p50"].verdict == "no-difference-seen"


@few
@given(factor=st.floats(0.5, 2), seed=st.integers(0, 50))
def test_a_verdict_is_never_denied_by_the_figures_beside_it(factor: float, seed: int) -> None:
    """A drain halves the throughput of B, whose requests themselves took the same time."""
    a, b = (observed(rows_of(noisy(40, n))) for n in (seed, seed))
    made = replace(b.measurement, tput_tok_s_gpu=b.measurement.tput_tok_s_gpu * factor)
    change = changes(one_run(a, replace(b, measurement=made)))["tput_tok_s_gpu"]
    assert change.ratio == pytest.approx(factor)
    assert change.low is not None
    assert change.high is not None
    assert change.low <= change.ratio <= change.high
    assert change.verdict == "no-difference-seen"


def test_the_figures_are_those_of_the_measurement() -> None:
    side = observed(rows_of(noisy(30, 3)))
    told = changes(one_run(side, side))
    assert told["output_tput_tok_s_gpu"].a == side.measurement.output_tput_tok_s_gpu
    assert told["interactivity_p90"].b == side.measurement.interactivity_tok_s.p90
    assert told["e2e_interactivity_p90"].b == side.measurement.e2e_interactivity_tok_s.p90


@pytest.mark.parametrize(
    ("n", "median", "tail"), [(9, False, False), (10, True, False), (20, True, True)]
)
def test_few_requests_are_not_enough(n: int, median: bool, tail: bool) -> None:
    a, b = observed(rows_of(noisy(n, 1))), observed(rows_of(noisy(n, 2, 0.5)))
    told = changes(one_run(a, b))
    assert (told["itl_p50"].verdict == "not-enough-data") is not median
    assert (told["output_tput_tok_s_gpu"].verdict == "not-enough-data") is not median
    assert (told["itl_p90"].verdict == "not-enough-data") is not tail
    if not tail:
        assert told["itl_p90"].why == "needs 20 requests"
        assert told["itl_p90"].low is None


def of_factor(factor: float, requests: int = 30) -> Observed:
    return observed(rows_of([(20.0, 200.0 * factor)] * requests))


def of_factors(*factors: float) -> tuple[Observed, ...]:
    return tuple(map(of_factor, factors))


def test_with_repeats_the_interval_is_theirs() -> None:
    """Each run is quiet in itself; between runs the ratio goes from 0.8 to 1.25."""
    before, after = of_factors(1, 1, 1), of_factors(0.8, 1, 1.25)
    one = changes(one_run(before[0], after[0]))
    (all_,) = compare([Sides(before=before, after=after, paired=True)])
    assert one["itl_p50"].verdict == "better"
    assert (all_.basis, all_.repeats, all_.requests) == ("repeats-paired", (3, 3), (90, 90))
    itl = changes(all_)["itl_p50"]
    assert itl.ratio == pytest.approx(1.0)
    assert itl.verdict == "no-difference-seen"
    assert itl.low is not None
    assert itl.low < 0.8


def test_pairs_take_out_what_drifts_for_both_arms() -> None:
    """B is 3 % faster in each pair while the machine slows down by a half."""
    drift = (1.0, 1.2, 1.5)
    before, after = of_factors(*drift), of_factors(0.97, 1.2 * 0.971, 1.5 * 0.969)
    verdicts = {}
    for paired in (True, False):
        (found,) = compare([Sides(before=before, after=after, paired=paired)])
        verdicts[found.basis] = changes(found)["itl_p50"].verdict
    assert verdicts == {"repeats-paired": "better", "repeats": "no-difference-seen"}


def test_sides_may_be_measured_other_times() -> None:
    (found,) = compare([Sides(before=of_factors(1, 1.01, 0.99), after=of_factors(0.5, 0.51))])
    assert (found.basis, found.repeats) == ("repeats", (3, 2))
    assert changes(found)["itl_p50"].verdict == "better"
    assert changes(found)["itl_p50"].ratio == pytest.approx(0.505, rel=0.01)


def test_two_repeats_are_judged_by_the_noise_of_the_line() -> None:
    """Alone, two pairs that differ by 1 % cannot tell 6 %; three such points can."""
    point_ = Sides(before=of_factors(1, 1), after=of_factors(0.94, 0.95), paired=True)
    (alone,) = compare([point_])
    together = compare([point_] * 3)
    assert changes(alone)["itl_p50"].verdict == "no-difference-seen"
    assert {changes(one)["itl_p50"].verdict for one in together} == {"better"}
    assert (alone.noise_points, together[0].noise_points) == (1, 3)


def test_a_louder_point_keeps_its_own_noise() -> None:
    quiet = Sides(before=of_factors(1, 1), after=of_factors(0.9, 0.9), paired=True)
    loud = Sides(before=of_factors(1, 1), after=of_factors(0.6, 1.4), paired=True)
    told = [changes(one)["itl_p50"] for one in compare([quiet, quiet, loud])]
    assert [change.verdict for change in told] == ["no-difference-seen"] * 3
    widths = [change.high / change.low for change in told if change.low and change.high]
    assert widths[2] > widths[0] == widths[1]


def test_points_of_one_run_and_of_several_stand_beside_each_other() -> None:
    single = Sides(before=of_factors(1), after=of_factors(0.5))
    double = Sides(before=of_factors(1, 1), after=of_factors(0.5, 0.5), paired=True)
    assert [found.basis for found in compare([single, double, single])] == [
        "requests-paired", "repeats-paired", "requests-paired",
    ]  # fmt: skip


def test_energy_is_compared_where_all_runs_tell_it() -> None:
    def powered(joules: float, requests: int = 30) -> Observed:
        energy = Energy(
            source="nvidia-smi", gpus=1, window_s=9.0, energy_j=1.0, j_per_total_token=joules
        )
        return replace(of_factor(1, requests), energy=energy)

    plain, less = powered(2.0), powered(1.0)
    single = changes(one_run(plain, less))["j_per_token"]
    assert (single.ratio, single.verdict) == (0.5, "not-enough-data")
    assert single.why == "needs repeats"
    (twice,) = compare([Sides(before=(plain, plain), after=(less, less), paired=True)])
    assert changes(twice)["j_per_token"].verdict == "better"
    (once,) = compare([Sides(before=(plain, plain), after=(less, of_factor(1)), paired=True)])
    assert "j_per_token" not in changes(once)


def test_published_figures_have_a_ratio_and_no_interval() -> None:
    """C1 of a public pull request: two numbers a side, and nothing of how they were measured."""
    rate = compare_figures(METRICS["interactivity_p50"], 187.56, 213.44)
    itl = compare_figures(METRICS["itl_p90"], 2.68, 2.33)
    assert f"{rate.percent:+.1f} % {itl.percent:+.1f} %" == "+13.8 % -13.1 %"
    for change in (rate, itl):
        assert (change.low, change.high, change.verdict) == (None, None, "not-enough-data")
        assert change.why == "one figure a side"
    assert math.isnan(compare_figures(METRICS["itl_p90"], 0.0, 1.0).percent)


def test_throughput_of_all_tokens_stands_beside_that_of_output() -> None:
    side = observed(rows_of(noisy(30, 3)))
    told = changes(one_run(side, side))
    assert told["tput_tok_s_gpu"].a == side.measurement.tput_tok_s_gpu
    assert told["output_tput_tok_s_gpu"].a == side.measurement.output_tput_tok_s_gpu
    assert [change.metric for change in one_run(side, side).changes][:2] == [
        "tput_tok_s_gpu", "output_tput_tok_s_gpu",
    ]  # fmt: skip
    assert side.requests
    assert side.requests.columns["tokens"][0] == sum(
        side.requests.columns[name][0] for name in ("isl", "osl")
    )
    assert side.requests.columns["isl"][0] > 0


def test_requests_are_paired_by_the_name_and_words_of_their_prompt() -> None:
    rows = rows_of(noisy(12, 4))
    a, b = observed(rows).requests, observed(rows[::-1]).requests
    same, why = aligned(a, b)
    assert (why, same.names, same.columns) == ("", a.names, a.columns)


def failing(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*rows[:-1], rows[-1] | {"error": {"type": "TimeoutError"}, "metrics": {}}]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: rows[:-1], "12 and 11 requests"),
        (failing, "0 and 1 requests failed"),
        (lambda rows: [*rows[:-1], rows[0]], "name other prompts"),
        (
            lambda rows: [r | {"metadata": r["metadata"] | {"conversation_id": ""}} for r in rows],
            "name other prompts",
        ),
    ],
)
def test_requests_that_cannot_be_paired_are_not(change: Any, why: str) -> None:
    rows = rows_of(noisy(12, 4))
    _, told = aligned(observed(rows).requests, observed(change(rows)).requests)
    assert why in told
