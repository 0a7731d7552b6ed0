"""Points paired, figures compared, and everything that was not compared named."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.analysis.changes import Change, Comparison, Observed, Sides, compare, compare_figures
from infx.analysis.compare import Compared, compare_axis, compare_runs
from infx.analysis.metrics import COMPARED, METRICS
from infx.analysis.pairing import Seen, pair_axis, pair_runs
from infx.analysis.requests import aligned
from infx.domain.errors import UsageError
from infx.domain.identity import content_id
from infx.domain.point import Point
from infx.domain.record import Energy
from infx.domain.status import PENDING, Status
from tests.analysis.made_arms import Latency, arm_of, mono, noisy, observed, rows_of, scored, seen
from tests.report.sample_runs import LLAMA, MINI, measurement, point

LATENCIES = st.lists(
    st.tuples(st.floats(5, 500), st.floats(20, 2000)), min_size=20, max_size=30
)  # fmt: skip

TOLD = [metric for metric in COMPARED if metric.key != "j_per_token"]
"""What runs tell that logged no power."""

few = settings(max_examples=5, deadline=None)


# Figures


def one_run(a: Observed, b: Observed) -> Comparison:
    (found,) = compare([Sides(before=(a,), after=(b,))])
    return found


def changes(comparison: Comparison) -> dict[str, Change]:
    return {change.metric: change for change in comparison.changes}


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


# Pairs


def both(conc: int) -> list[Seen]:
    return [seen(mono(point(MINI, conc, 2 * conc), value)) for value in ("on", "off")]


def test_points_that_agree_in_the_rest_are_pairs_and_the_default_comes_first() -> None:
    found = pair_axis([*both(1), *both(2)], "mono")
    assert [str(told) for pair in found.pairs for told in pair.differences] == ["mono off → on"] * 2
    assert [(p.a.point.conc, p.b.point.conc) for p in found.pairs] == [(1, 1), (2, 2)]
    assert found.left_out == ()


def test_a_point_without_a_partner_is_named() -> None:
    lonely = seen(mono(point(MINI, 4, 2, queueing=True), "off"))
    late = seen(mono(point(MINI, 8, 16), "on"))
    found = pair_axis([*both(1), lonely, late, seen(point(LLAMA, 1, 1))], "mono")
    assert len(found.pairs) == 1
    assert {one.label for one in found.left_out} == {
        lonely.point.label, late.point.label, point(LLAMA, 1, 1).label,
    }  # fmt: skip
    assert {one.why for one in found.left_out} == {
        "no point with another value of mono agrees with it in the rest",
        "no point with off of mono agrees with it in the rest",
    }


def test_an_axis_that_does_not_vary_names_those_that_do() -> None:
    with pytest.raises(UsageError) as caught:
        pair_axis([seen(point(MINI, c, 2 * c)) for c in (1, 2)] + both(1)[:1], "tp")
    assert caught.value.code == "axis-constant"
    assert caught.value.hint == "axes that do: mono, max-num-seqs, capture-sizes"


def test_where_no_axis_varies_two_runs_are_advised() -> None:
    with pytest.raises(UsageError) as caught:
        pair_axis(both(1)[:1], "mono")
    assert caught.value.hint == "no axis does: compare two runs, A and B"


def test_an_axis_that_takes_another_along_says_which() -> None:
    with pytest.raises(UsageError) as caught:
        pair_axis([seen(point(MINI, c, 2 * c)) for c in (1, 2)], "max_num_seqs")
    assert caught.value.code == "nothing-to-compare"
    assert caught.value.hint == "at one concurrency and workload it does not vary"
    first = point(MINI, 1, 2)
    other = replace(
        first,
        arm=replace(first.arm, axes=replace(first.arm.axes, max_num_seqs=4, capture_sizes=(9,))),
    )
    with pytest.raises(UsageError) as caught:
        pair_axis([seen(first), seen(other)], "max_num_seqs")
    assert caught.value.hint == "where it varies, capture-sizes does too"


def test_k_takes_its_acceptance_along() -> None:
    first = point(MINI, 1, 2)
    arm = replace(first.arm, axes=replace(first.arm.axes, k=0), method="none")
    plain = replace(first, arm=replace(arm, acceptance=replace(arm.acceptance, mode="real")))
    found = pair_axis([seen(first), seen(plain)], "k")
    assert [str(told) for told in found.pairs[0].differences] == ["k 0 → 3"]


def test_a_third_value_is_compared_with_the_first_too() -> None:
    points = [point(MINI, 1, 2)] * 3
    arms = [
        replace(p.arm, axes=replace(p.arm.axes, tp=tp))
        for p, tp in zip(points, (2, 1, 4), strict=True)
    ]
    found = pair_axis(
        [seen(replace(p, arm=arm)) for p, arm in zip(points, arms, strict=True)], "tp"
    )
    assert [str(p.differences[0]) for p in found.pairs] == ["tp 1 → 2", "tp 1 → 4"]


def newer(of: Point) -> Point:
    return replace(of, arm=replace(of.arm, image="infx==2"), point_id=content_id([of.point_id]))


def test_two_runs_are_paired_by_what_they_are_asked() -> None:
    a = [seen(point(MINI, c, 2 * c)) for c in (1, 2, 4)]
    b = [seen(newer(point(MINI, c, 2 * c)), run="r2") for c in (4, 1, 8)]
    found = pair_runs(a, b)
    assert [(p.a.point.conc, p.b.point.conc) for p in found.pairs] == [(1, 1), (4, 4)]
    assert {str(told) for p in found.pairs for told in p.differences} == {"image infx → infx==2"}
    assert [(one.run_id, one.why) for one in found.left_out] == [
        ("r1", "r2 has none to match"), ("r2", "r1 has none to match"),
    ]  # fmt: skip


def test_the_nearest_servers_are_paired() -> None:
    """mono off and on in both: each with its like, whatever the order."""
    base = point(MINI, 1, 2)
    a = [seen(mono(base, value)) for value in ("off", "on")]
    b = [seen(newer(mono(base, value)), run="r2") for value in ("on", "off")]
    pairs = pair_runs(a, b).pairs
    assert [(p.a.point.arm.axes.mono, p.b.point.arm.axes.mono) for p in pairs] == [
        ("off", "off"),
        ("on", "on"),
    ]


def test_runs_of_other_workloads_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        pair_runs([seen(point(MINI, 1, 2))], [seen(point(LLAMA, 1, 2), run="r2")])
    assert caught.value.code == "nothing-to-compare"
    assert "the nearest two differ in model " in caught.value.hint


def test_runs_that_are_asked_almost_the_same_say_what_is_not() -> None:
    of = point(MINI, 1, 2)
    fewer = replace(of, workload=replace(of.workload, requests=3))
    with pytest.raises(UsageError) as caught:
        pair_runs(
            [seen(point(MINI, 4, 8)), seen(of)],
            [seen(replace(fewer, conc=2)), seen(fewer, run="r2")],
        )
    asked = of.workload.requests
    assert caught.value.hint.endswith(f"the nearest two differ in requests {asked} → 3")


# Together


def couple(folder: Path, run: str = "r1", factor: float = 0.5) -> list[Seen]:
    base = point(MINI, 1, 2)
    return [
        arm_of(folder, mono(base, "off"), noisy(30, 1), run),
        arm_of(folder, mono(base, "on"), noisy(30, 1, factor), run),
    ]


def test_an_axis_is_compared_from_the_exports(tmp_path: Path) -> None:
    found = compare_axis(couple(tmp_path), "mono")
    (told,) = found.points
    assert told.comparison.basis == "requests-paired"
    assert (told.conc, told.workload, told.runs) == (1, "64 in, 32 out", ("r1",))
    assert changes(told.comparison)["itl_p90"].ratio == pytest.approx(0.5, rel=1e-4)
    assert [str(one) for one in found.differences] == ["mono off → on"]
    assert found.left_out == ()


def test_further_runs_are_repeats(tmp_path: Path) -> None:
    runs = [
        couple(tmp_path, run, factor) for run, factor in (("r1", 0.5), ("r2", 0.6), ("r3", 0.7))
    ]
    found = compare_axis([one for run in runs for one in run], "mono")
    (told,) = found.points
    assert (told.comparison.basis, told.runs) == ("repeats-paired", ("r1", "r2", "r3"))
    assert changes(told.comparison)["itl_p50"].ratio == pytest.approx(
        (0.5 * 0.6 * 0.7) ** (1 / 3), rel=1e-3
    )


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (
            Status("invalid", "mono-coverage", "mono served 3 %"),
            "invalid:mono-coverage mono served 3 %",
        ),
        (Status("failed", "server-died", "killed"), "failed:server-died killed"),
        (PENDING, "pending"),
    ],
)
def test_a_side_that_may_not_count_is_named_with_its_reason(
    tmp_path: Path, status: Status, why: str
) -> None:
    off, on = couple(tmp_path)
    other = arm_of(tmp_path, mono(point(MINI, 2, 4), "off"), noisy(30, 1))
    bad = seen(mono(point(MINI, 2, 4), "on"), status)
    found = compare_axis([off, on, other, bad], "mono")
    assert [told.conc for told in found.points] == [1]
    assert {one.label: one.why for one in found.left_out} == {
        bad.point.label: why,
        other.point.label: f"its partner {bad.point.label} is {status}",
    }


def test_an_export_that_is_gone_is_named(tmp_path: Path) -> None:
    off, on = couple(tmp_path)
    found = compare_axis([off, replace(on, folder=tmp_path / "gone")], "mono")
    assert found.points == ()
    (told,) = found.left_out
    assert on.point.label in told.label
    assert "gone" in told.why


def test_one_run_of_a_repeat_that_failed_leaves_the_other(tmp_path: Path) -> None:
    first, second = couple(tmp_path), couple(tmp_path, "r2")
    second[1] = replace(second[1], status=Status("failed", "server-died", "killed"))
    found = compare_axis([*first, *second], "mono")
    assert found.points[0].comparison.basis == "requests-paired"
    assert {(one.run_id, one.why) for one in found.left_out} == {
        ("r2", "failed:server-died killed"),
        ("r2", f"its partner {second[1].point.label} is failed:server-died"),
    }


# Scores


def evaluated(off: Seen, on: Seen) -> Compared:
    return compare_axis([off, on], "mono")


def test_scores_are_compared_question_by_question(tmp_path: Path) -> None:
    off = scored(tmp_path, "off", [True] * 20)
    on = scored(tmp_path, "on", [False] * 12 + [True] * 8, text="41")
    (told,) = evaluated(off, on).scores
    assert [change.filter for change in told.changes] == ["strict-match", "robust"]
    verdict = told.changes[0].verdict
    assert (verdict.lost, verdict.won, verdict.change) == (12, 0, "worse")
    assert told.changes[0].identical == 0.0


def test_equal_answers_are_no_difference(tmp_path: Path) -> None:
    right = [n % 3 > 0 for n in range(20)]
    (told,) = evaluated(scored(tmp_path, "off", right), scored(tmp_path, "on", right)).scores
    assert {c.verdict.change for c in told.changes} == {"no-difference-seen"}
    assert {c.identical for c in told.changes} == {1.0}


def test_other_questions_and_lost_answers_are_named(tmp_path: Path) -> None:
    off = scored(tmp_path, "off", [True] * 5)
    other = scored(tmp_path, "on", [True] * 5, questions_hash="another")
    found = evaluated(off, other)
    assert (found.scores, [one.why for one in found.left_out]) == ((), ["the questions differ"])
    same = scored(tmp_path / "more", "on", [True] * 5)
    (tmp_path / "more/on/samples.jsonl").unlink()
    (told,) = evaluated(off, same).left_out
    assert "samples.jsonl cannot be read" in told.why


def test_two_runs_of_one_matrix_compare_scores_and_points(tmp_path: Path) -> None:
    a = [*couple(tmp_path), scored(tmp_path, "off", [True] * 5)]
    b = [
        *couple(tmp_path, "r2", 0.25),
        replace(scored(tmp_path / "2", "off", [True] * 5), run_id="r2"),
    ]
    found = compare_runs(a, b)
    assert (len(found.points), len(found.scores), found.left_out) == (2, 1, ())
    assert found.differences == ()
    itl = [changes(told.comparison)["itl_p50"] for told in found.points]
    assert [c.ratio for c in itl] == [1.0, pytest.approx(0.5, rel=1e-4)]
    assert [c.verdict for c in itl] == ["no-difference-seen", "better"]


def test_sides_without_figures_are_named() -> None:
    a = seen(mono(point(MINI, 1, 2), "off"), measurement=measurement(1, 1.0, 1.0))
    b = seen(mono(point(MINI, 1, 2), "on"))
    (told,) = compare_axis([a, b], "mono").left_out
    assert "holds neither" in told.why or "no figures" in told.why
