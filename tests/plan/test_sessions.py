from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from infx.config.matrix import AgenticSpec, Scenario
from infx.domain.errors import ConfigError
from infx.domain.plan import Plan
from infx.domain.point import Agentic
from infx.plan.make import make_plan
from infx.plan.resolve import workload_identity
from tests.plan.matrices import AT, LOCAL, entry, evaluation, matrix, scenario, value

PUBLIC = "semianalysis_cc_traces_weka_062126"


def sessions(*, spec: dict[str, Any] | None = None, **axes: Any) -> Scenario:
    said = {"trace": PUBLIC} | (spec or {})
    load = AgenticSpec(**{name: value(v) for name, v in said.items()}, where=AT)
    return replace(scenario(**axes), workload=load)


def plan_of(*scenarios: Scenario, **fields: Any) -> Plan:
    return make_plan(matrix(entry(*scenarios, **fields)))


def test_points_of_sessions_lie_on_one_curve() -> None:
    spec = {"warmup_requests_per_lane": "=2*conc", "cache_warmup_s": 9}
    plan = plan_of(sessions(spec=spec, conc=[1, 4], max_num_seqs="=2*conc"))
    assert [point.name for point in plan.points] == ["mini-agentic-c1", "mini-agentic-c4"]
    loads = [point.workload for point in plan.points]
    assert loads == [
        Agentic(trace=PUBLIC, warmup_requests_per_lane=n, cache_warmup_s=9) for n in (2, 8)
    ]
    assert len({point.curve_id for point in plan.points}) == 1
    assert len({point.point_id for point in plan.points}) == 2
    assert plan.points[0].expressions["warmup_requests_per_lane"] == "2*conc"


def test_sessions_and_fixed_lengths_are_other_curves() -> None:
    plan = plan_of(sessions(conc=[2]), scenario(conc=[2]))
    assert len({point.series_id for point in plan.points}) == 2
    assert [point.name for point in plan.points] == ["mini-agentic-c2", "mini-c2"]


def test_a_local_trace_is_what_it_holds_not_where_it_lies() -> None:
    def point_id(**spec: Any) -> str:
        [point] = plan_of(sessions(spec=spec, conc=[1])).points
        return point.point_id

    here = point_id(trace="/here/traces", content="a", longest=9)
    assert here == point_id(trace="/there", content="a", longest=9, error_share=0.5)
    assert here != point_id(trace="/here/traces", content="b", longest=9)
    assert point_id() != point_id(trace=f"{PUBLIC}_256k")
    assert "trace" in workload_identity(Agentic(trace=PUBLIC))


def test_what_sessions_cost_is_known() -> None:
    short, long = (
        plan_of(sessions(spec={"duration_s": s, "cache_warmup_s": 5}, conc=[1])).cost.wall_s
        for s in (60, 660)
    )
    assert long - short == 600
    assert 60 + 5 < short < 60 + 5 + 60


@pytest.mark.parametrize(
    ("spec", "limit", "words"),
    [
        ({"trace": f"{PUBLIC}_256k"}, 200_000, "256000 tokens is over max-model-len 200000"),
        ({"trace": f"{PUBLIC}_256k", "max_context": 200_000}, 200_000, ""),
        ({"trace": "/t", "content": "a", "longest": 900}, 512, "900 tokens is over max-model-len"),
        ({"trace": PUBLIC}, 512, ""),  # how long its requests are is not known
        ({"trace": f"{PUBLIC}_256k"}, None, ""),
    ],
)
def test_a_request_must_fit_into_the_context(spec: dict[str, Any], limit: Any, words: str) -> None:
    asked = sessions(spec=spec, conc=[1], max_model_len=limit)
    if not words:
        assert plan_of(asked).points
        return
    with pytest.raises(ConfigError) as raised:
        plan_of(asked)
    assert [finding.code for finding in raised.value.findings] == ["context-too-long"]
    assert words in raised.value.findings[0].sentence


@pytest.mark.parametrize(
    ("spec", "codes"),
    [
        ({"cache_warmup_s": 30}, []),
        ({"warmup_requests_per_lane": 1}, []),
        ({}, ["warmup-one-a-lane"]),
        ({"cache_warmup_s": 30, "duration_s": 60}, ["not-for-submission"]),
        ({"trace": "/t", "content": "a"}, ["not-for-submission", "warmup-one-a-lane"]),
        ({"cache_warmup_s": "=conc", "idle_gap_cap_s": 300}, ["not-for-submission"]),
    ],
)
def test_what_is_said_of_sessions_before_they_run(spec: dict[str, Any], codes: list[str]) -> None:
    limits = replace(LOCAL.limits, job=7200)
    plan = plan_of(sessions(spec=spec, conc=[1]), cluster=replace(LOCAL, limits=limits))
    assert [finding.code for finding in plan.findings] == codes
    assert all(finding.level == "info" for finding in plan.findings)


def test_timed_points_that_fill_the_limit_of_a_job() -> None:
    spec = {"duration_s": 1800, "warmup_requests_per_lane": 1}
    assert plan_of(sessions(spec=spec, conc=[1])).findings == ()
    [found] = plan_of(sessions(spec=spec, conc=[1, 2])).findings
    assert (found.code, found.level) == ("over-time-limit", "warning")
    assert "2 points of one engine start are timed and take 3600 s" in found.sentence


def test_an_evaluation_beside_sessions() -> None:
    plan = plan_of(sessions(conc=[1]), evaluations=(evaluation(),))
    assert [point.mode for point in plan.points] == ["throughput", "evaluation"]
