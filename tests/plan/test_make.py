from __future__ import annotations

import dataclasses
import gc
import hashlib
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infx.config.matrix import Matrix
from infx.domain.errors import ConfigError, UsageError
from infx.domain.point import Accuracy
from infx.plan.jobs import QUESTIONS
from infx.plan.ledger import LISTED
from infx.plan.make import make_plan
from infx.plan.saved import check_inputs, read_plan, write_plan
from tests.plan.matrices import (
    LOCAL,
    eagle,
    entry,
    evaluation,
    matrix,
    scenario,
)

TWO_BARS = (evaluation(bars={"strict-match": 0.1}), evaluation(bars={"strict-match": 0.9}))


def plan_of(*entries: Any) -> Any:
    return make_plan(matrix(*entries))


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def codes(error: pytest.ExceptionInfo[ConfigError]) -> list[str]:
    return [finding.code for finding in error.value.findings]


@settings(max_examples=60, deadline=None)
@given(
    concs=st.lists(st.integers(1, 64), min_size=1, max_size=6, unique=True),
    seqs=st.lists(st.integers(64, 128), min_size=1, max_size=4, unique=True),
    limit=st.integers(0, 70),
    mono=st.sampled_from([["off"], ["off", "on"], ["on"]]),
    repeats=st.integers(1, 3),
)
def test_every_candidate_is_accounted_for(
    concs: list[int], seqs: list[int], limit: int, mono: list[str], repeats: int
) -> None:
    rules = [(f"conc > {limit}", "too many"), ("conc % 2 == 1 and max_num_seqs > 100", "odd")]
    one = scenario(
        rules,
        [{"conc": 3, "max_num_seqs": 200, "mono": "off"}],
        conc=concs,
        max_num_seqs=seqs,
        mono=mono,
    )
    plan = plan_of(entry(*[one] * repeats))
    assert plan.candidates == repeats * (len(concs) * len(seqs) * len(mono) + 1)
    assert sum(plan.counts.values()) == plan.candidates
    assert len(plan.ledger) == plan.candidates
    assert plan.counts["run"] == len(plan.points) == len({p.point_id for p in plan.points})
    left_out = sum(n for name, n in plan.counts.items() if name != "run")
    assert sum(plan.excluded_by.values()) == left_out
    in_jobs = [p.point_id for job in plan.jobs for p in job.points]
    assert sorted(in_jobs) == sorted(p.point_id for p in plan.points)
    assert all(p.conc <= limit or p.arm.axes.max_num_seqs == 200 for p in plan.points)


def test_a_derived_field_makes_each_concurrency_an_arm_of_one_curve() -> None:
    plan = plan_of(entry(scenario(conc=[1, 2, 4], max_num_seqs="=conc if conc <= 2 else 2*conc")))
    assert [p.arm.axes.max_num_seqs for p in plan.points] == [1, 2, 8]
    assert len(plan.jobs) == 3
    assert len({p.curve_id for p in plan.points}) == 1
    assert len({p.point_id for p in plan.points}) == 3


def test_a_literal_field_makes_one_arm_of_all_concurrencies() -> None:
    plan = plan_of(entry(scenario(conc=[1, 2, 4], max_num_seqs=8)))
    assert len(plan.jobs) == 1
    assert [p.conc for p in plan.jobs[0].points] == [1, 2, 4]


def test_a_literal_and_an_expression_are_different_curves_even_where_they_agree() -> None:
    derived = scenario(conc=[2, 4], max_num_seqs="=2*conc")
    fixed = scenario(
        [], [{"conc": 4, "max_num_seqs": 2, "queueing": True}], conc=[2], max_num_seqs="=2*conc"
    )
    first, second = plan_of(entry(derived)), plan_of(entry(fixed))
    included = second.points[1]
    assert included.queueing
    assert included.curve_id not in {p.curve_id for p in first.points}
    assert second.points[0].curve_id == first.points[0].curve_id


def test_identity_is_content_not_spelling() -> None:
    plain = plan_of(entry(scenario(conc=[4], max_num_seqs=8))).points[0]
    derived = plan_of(entry(scenario(conc=[4], max_num_seqs="=2*conc"), name="other")).points[0]
    assert plain.point_id == derived.point_id
    assert plain.curve_id != derived.curve_id


def test_image_is_in_the_point_but_not_in_the_series() -> None:
    old = plan_of(entry(scenario(conc=[1]), image="a")).points[0]
    new = plan_of(entry(scenario(conc=[1]), image="b")).points[0]
    assert old.point_id != new.point_id
    assert old.curve_id != new.curve_id
    assert old.series_id == new.series_id


def test_bars_and_limits_only_judge_and_do_not_identify() -> None:
    low, high = evaluation(bars={"strict-match": 0.1}), evaluation(bars={"strict-match": 0.9})
    a = plan_of(entry(scenario(conc=[1]), evaluations=(low,))).points[-1]
    b = plan_of(entry(scenario(conc=[1]), evaluations=(high,))).points[-1]
    assert a.point_id == b.point_id


def test_an_evaluation_runs_once_for_each_computation_with_real_acceptance() -> None:
    space = scenario(conc=[1, 2, 4], max_num_seqs="=2*conc", k=[0, 3])
    plan = plan_of(
        entry(
            space,
            evaluations=(evaluation(conc=4),),
            speculation=eagle({3: 2.78}),
            options={"threads": "=conc"},
        )
    )
    evaluations = [p for p in plan.points if p.mode == "evaluation"]
    assert [p.arm.axes.k for p in evaluations] == [0, 3]
    assert all(isinstance(p.workload, Accuracy) for p in evaluations)
    assert {p.arm.acceptance.mode for p in evaluations} == {"real"}
    assert {p.arm.axes.max_num_seqs for p in evaluations} == {8}
    measured = [p for p in plan.points if p.mode == "throughput" and p.arm.axes.k == 3]
    assert {(p.arm.acceptance.mode, p.arm.acceptance.length) for p in measured} == {
        ("synthetic", 2.78)
    }


def test_an_evaluation_shares_the_engine_start_of_an_equal_arm() -> None:
    plan = plan_of(entry(scenario(conc=[2, 4], max_num_seqs="=conc"), evaluations=(evaluation(),)))
    assert len(plan.points) == 3
    assert [[p.mode for p in job.points] for job in plan.jobs] == [
        ["throughput"],
        ["throughput", "evaluation"],
    ]


def test_a_refusal_of_the_engine_excludes_its_candidates_with_its_code() -> None:
    plan = plan_of(entry(scenario(conc=[1, 2], tp=2, mono=["off", "on"])))
    assert plan.counts == {"run": 2, "excluded": 2}
    (rule,) = plan.excluded_by
    assert rule.startswith("mono-tp: mono: on with tp 2: expected 1")
    assert rule.endswith("(matrix.yaml:12:9)")
    refused = [row for row in plan.ledger if row.rule == rule]
    assert {row.values["mono"] for row in refused} == {"on"}
    assert "mono-serves" in {finding.code for finding in plan.findings}


@pytest.mark.parametrize(
    ("code", "line", "made"),
    [
        ("max-num-seqs-below-conc", 11, lambda: entry(scenario(conc=[4], max_num_seqs=2))),
        ("capture-gap", 11, lambda: entry(scenario(conc=[4], capture_sizes=[(1, 2)]))),
        ("tp-heads", 10, lambda: entry(scenario(tp=3), framework="llamacpp")),
        ("context-too-long", 10, lambda: entry(scenario(max_model_len=64))),
        ("k-without-method", 10, lambda: entry(scenario(k=3))),
        ("option-unknown", 3, lambda: entry(scenario(conc=[1]), options={"thread": 1})),
        ("expression-failed", 11, lambda: entry(scenario(conc=[1], max_num_seqs="=4//(conc-1)"))),
        ("out-of-range", 11, lambda: entry(scenario(conc=[1], max_num_seqs="=conc-1"))),
        ("out-of-range", 11, lambda: entry(scenario(conc=[3], max_num_seqs="=conc/2"))),
        ("out-of-range", 11, lambda: entry(scenario(conc=[1], mono="='fused' if conc else 'off'"))),
        ("out-of-range", 1, lambda: entry(scenario(workload={"requests": "=conc-1"}, conc=[1]))),
        ("out-of-range", 1, lambda: entry(scenario(workload={"requests": "=conc/2"}, conc=[1]))),
        ("out-of-range", 1, lambda: entry(scenario(workload={"isl": "=conc > 1"}, conc=[1]))),
        ("out-of-range", 3, lambda: entry(scenario(conc=[1]), options={"threads": "=conc/2"})),
        ("tp-heads", 10, lambda: entry(scenario(tp=6), heads=12, kv_heads=4)),
        ("image-unpinned", 1, lambda: entry(scenario(conc=[1]), image="pypi:engine")),
        ("repeat-differs", 1, lambda: entry(scenario(conc=[1]), evaluations=TWO_BARS)),
    ],
)
def test_what_must_not_be_run_is_refused_at_its_line(code: str, line: int, made: Any) -> None:
    with pytest.raises(ConfigError) as error:
        plan_of(made())
    assert codes(error) == [code]
    assert error.value.findings[0].where.line == line  # type: ignore[union-attr]


def test_tp_over_the_node_is_refused() -> None:
    node = dataclasses.replace(LOCAL, gpus_per_node=2)
    with pytest.raises(ConfigError) as error:
        plan_of(entry(scenario(tp=4), cluster=node, framework="llamacpp"))
    assert codes(error) == ["tp-gpus"]


@pytest.mark.parametrize(("gpus_per_node", "counted"), [(0, 1), (8, 4)])
def test_ranks_are_accelerators_where_there_are_any(gpus_per_node: int, counted: int) -> None:
    node = dataclasses.replace(LOCAL, gpus_per_node=gpus_per_node)
    plan = plan_of(entry(scenario(conc=[1], tp=4), cluster=node))
    assert (plan.points[0].arm.axes.tp, plan.points[0].gpus) == (4, counted)
    assert plan.cost.gpu_hours == pytest.approx(gpus_per_node and 4 * plan.cost.wall_s / 3600)


def test_speculation_without_a_chat_template_is_refused() -> None:
    with pytest.raises(ConfigError) as error:
        plan_of(entry(scenario(k=3), speculation=eagle({3: 2.78}), chat_template=False))
    assert codes(error) == ["no-chat-template"]


def test_queueing_says_that_the_limit_is_meant_to_bind() -> None:
    plan = plan_of(entry(scenario(conc=[4], max_num_seqs=2, queueing=True)))
    assert plan.counts == {"run": 1}


def test_nothing_left_is_a_plan_that_says_why() -> None:
    plan = plan_of(entry(scenario([("conc >= 1", "all of them")], conc=[1, 2])))
    assert plan.points == ()
    assert plan.counts == {"excluded": 2}


def test_a_saved_plan_reads_back_and_notices_a_changed_input(tmp_path: Any) -> None:
    source = tmp_path / "matrix.yaml"
    source.write_text("a: 1\n")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    plan = make_plan(Matrix(entries=(entry(scenario(conc=[1, 2])),), inputs={source.name: digest}))
    write_plan(plan, tmp_path / "plan.json")
    again = read_plan(tmp_path / "plan.json")
    assert again == plan
    assert again.plan_id == plan.plan_id
    check_inputs(again, tmp_path)
    source.write_text("a: 2\n")
    with pytest.raises(ConfigError) as error:
        check_inputs(again, tmp_path)
    assert codes(error) == ["inputs-changed"]


@pytest.mark.slow
@pytest.mark.alone
def test_a_hundred_thousand_candidates_expand_in_about_a_second() -> None:
    space = scenario(
        [
            ("conc > 40", "over"),
            ("max_num_seqs < conc", "below"),
            ("max_num_batched_tokens < 64 * max_num_seqs", "prefill"),
            ("block_size == 128 and max_model_len < 4096", "short"),
        ],
        conc=[*range(1, 101)],
        max_num_seqs=[1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
        max_num_batched_tokens=[512, 1024, 2048, 4096, 8192],
        block_size=[16, 32, 64, 128],
        max_model_len=[1024, 2048, 4096, 8192, 16384],
        capture_sizes="=range(1, conc+1)",
    )
    gc.collect()
    gc.freeze()  # what other tests left on the heap is not the planner's to walk
    plan, spent = timed(lambda: plan_of(entry(space)))
    gc.unfreeze()
    _, counted = timed(lambda: sum(1 for _ in range(10_000_000)))
    assert plan.candidates == sum(plan.counts.values()) == 100_000
    assert max(Counter(row.rule for row in plan.ledger if row.rule).values()) == LISTED
    assert len(plan.points) > 5_000
    # About a second on a quiet machine that counts to ten million in 0.4 s: the ratio is 2 to 3.
    assert spent < 6 * counted, f"{len(plan.points)} points in {spent:.2f} s"


def test_a_draft_length_that_follows_the_concurrency_stays_on_one_curve() -> None:
    space = scenario(conc=[1, 2, 4], k="=1 if conc <= 2 else 3")
    plan = plan_of(entry(space, speculation=eagle({1: 1.79, 3: 2.78}), evaluations=(evaluation(),)))
    measured = [p for p in plan.points if p.mode == "throughput"]
    assert {p.arm.acceptance.length for p in measured} == {1.79, 2.78}
    assert len({p.curve_id for p in measured}) == len({p.series_id for p in measured}) == 1
    evaluated = [p for p in plan.points if p.mode == "evaluation"]
    assert [p.arm.axes.k for p in evaluated] == [1, 3]
    assert len({p.name for p in plan.points}) == len(plan.points)


def test_an_included_computation_is_evaluated_as_it_is() -> None:
    space = scenario([], [{"conc": 4, "k": 2}], conc=[4], k="=3 if conc > 0 else 1")
    plan = plan_of(entry(space, speculation=eagle({2: 2.4, 3: 2.78}), evaluations=(evaluation(),)))
    assert [p.arm.axes.k for p in plan.points if p.mode == "evaluation"] == [3, 2]


def test_include_rules_of_one_expression_are_one_curve() -> None:
    rules = [{"conc": conc, "max_num_seqs": "=4*conc"} for conc in (8, 16)]
    plan = plan_of(entry(scenario([], rules, conc=[1], max_num_seqs="=conc")))
    assert [p.arm.axes.max_num_seqs for p in plan.points] == [1, 32, 64]
    assert plan.points[0].curve_id != plan.points[1].curve_id == plan.points[2].curve_id


def test_queueing_is_a_permission_and_no_part_of_the_identity() -> None:
    plan = plan_of(entry(scenario(conc=[2, 4, 8], max_num_seqs=4, queueing="=conc > 4")))
    assert len({p.curve_id for p in plan.points}) == 1
    both = plan_of(entry(scenario(conc=[4], max_num_seqs=8, queueing=[False, True])))
    assert both.counts == {"run": 1, "duplicate": 1}


def test_an_evaluation_is_identified_by_its_content_and_not_by_paths() -> None:
    def ids(**given: Any) -> tuple[str, str]:
        spec = evaluation(task="/here/suite.yaml", source="hub", content="sha-1", **given)
        point = plan_of(entry(scenario(conc=[1, 4], max_num_seqs="=2*conc"), evaluations=(spec,)))
        return point.points[-1].point_id, point.points[-1].curve_id

    moved = evaluation(task="/there/suite.yaml", source="hub", content="sha-1")
    changed = evaluation(task="/here/suite.yaml", source="hub", content="sha-2")
    space = scenario(conc=[1, 4], max_num_seqs="=2*conc")
    first = ids()
    assert plan_of(entry(space, evaluations=(moved,))).points[-1].point_id == first[0]
    assert plan_of(entry(space, evaluations=(changed,))).points[-1].point_id != first[0]
    assert ids(conc=2)[1] == first[1]


def test_the_tokenizer_is_part_of_the_identity_and_the_golden_name_is_not() -> None:
    space = scenario(conc=[1], k=3)
    base = plan_of(entry(space, speculation=eagle({3: 2.78}))).points[0]
    renamed = dataclasses.replace(eagle({3: 2.78}), golden="renamed")
    assert plan_of(entry(space, speculation=renamed)).points[0].point_id == base.point_id
    other = plan_of(entry(space, speculation=eagle({3: 2.78}), tokenizer="gpt2")).points[0]
    assert other.point_id != base.point_id


def test_a_refused_evaluation_is_left_out() -> None:
    space = scenario(conc=[4], max_num_seqs="=conc")
    made = entry(space, framework="llamacpp", image="pypi:xllamacpp==1", options={"parallel": 4},
                 evaluations=(evaluation(conc=2),))  # fmt: skip
    plan = plan_of(made)
    assert plan.counts == {"run": 1, "excluded": 1}
    assert "option-conflict" in next(iter(plan.excluded_by))


def test_throughput_with_drafts_needs_a_golden_length() -> None:
    bare = dataclasses.replace(eagle({}), golden="")
    with pytest.raises(ConfigError) as error:
        plan_of(entry(scenario(k=3), speculation=bare))
    assert codes(error) == ["no-golden"]


def test_warnings_say_what_has_no_effect() -> None:
    space = scenario([("conc > 8", "never")], conc=[1])
    plan = plan_of(entry(space, speculation=eagle({3: 2.78})))
    assert {f.code: f.level for f in plan.findings} == {
        "rule-unused": "warning",
        "speculation-unused": "warning",
    }


def test_a_recipe_for_other_hardware_is_refused() -> None:
    with pytest.raises(ConfigError) as error:
        plan_of(entry(scenario(conc=[1]), cluster=dataclasses.replace(LOCAL, hardware="h200")))
    assert codes(error) == ["hardware-differs"]


def test_faults_of_all_scenarios_come_in_one_pass() -> None:
    bad = [
        scenario(conc=[1], max_num_seqs="=4//(conc-1)"),
        scenario(conc=[1], max_num_seqs="=conc-1"),
    ]
    with pytest.raises(ConfigError) as error:
        plan_of(entry(*bad), entry(scenario(k=3), name="other"))
    assert codes(error) == ["expression-failed", "out-of-range", "k-without-method"]


def test_a_plan_of_another_schema_and_a_folder_that_is_missing_are_refused(tmp_path: Any) -> None:
    plan = plan_of(entry(scenario(conc=[1])))
    write_plan(dataclasses.replace(plan, schema_version="99"), tmp_path / "plan.json")
    with pytest.raises(ConfigError, match="schema 99"):
        read_plan(tmp_path / "plan.json")
    with pytest.raises(UsageError, match="cannot write the plan"):
        write_plan(plan, tmp_path / "missing" / "plan.json")


def test_the_cost_knows_how_many_questions_a_task_has() -> None:
    from infx.workloads.lm_eval_task import QUESTIONS as GENERATED
    from infx.workloads.lm_eval_task import TASKS

    assert set(QUESTIONS) == set(TASKS)
    assert {QUESTIONS[task] for task in TASKS if task != "gsm8k"} == {GENERATED}
