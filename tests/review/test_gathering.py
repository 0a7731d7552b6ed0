"""What infx plans and measures, as a bundle tells it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.ci.events import Comment, User
from infx.domain.plan import Job, Origin, Plan
from infx.domain.point import Agentic
from infx.domain.record import PointRecord, Provenance
from infx.domain.status import CANCELLED, OK, PENDING, RUNNING, State, Status
from infx.review.gathering import (
    Swept,
    added,
    comments_of,
    engine_versions,
    entries_of,
    planned,
    revisions,
    run_of,
    selected,
    standing,
)
from tests.ci.cases import added as changelog
from tests.ci.cases import mini, other, plan_of, sessions
from tests.plan.matrices import matrix
from tests.store.tiny_plans import job, plan, record, stands

ORIGIN = Origin(repository="example/lab", pull_request=17, head_sha="a" * 40)
WORDS: dict[State, str] = {
    "pending": "pending",
    "running": "pending",
    "measured": "pending",
    "ok": "success",
    "failed": "failure",
    "invalid": "failure",
    "cancelled": "cancelled",
    "skipped": "skipped",
}


def status(state: State) -> Status:
    return Status(state, "engine-died" if state in ("failed", "invalid") else "")


def swept(name: str, whole: Plan, *, states: Status = OK, **more: Any) -> Swept:
    records = tuple(
        record(point, name, one.job_id, status=states) for one in whole.jobs for point in one.points
    )
    told = {"statuses": stands(whole, states), "records": records, **more}
    return Swept(run_id=name, plan=whole, **told)


def test_a_plan_is_told_with_its_entries_and_points() -> None:
    one = mini(image="vllm/vllm-openai:v1")
    whole = plan_of(one, other())
    named = selected(whole, [changelog("mini")])
    assert {point.entry for point in named} == {"mini"}
    assert {point.mode for point in named} == {"throughput", "evaluation"}
    told = planned(named)
    assert len(told) == 4
    assert {point.scenario for point in told} == {"fixed-seq-len", "agentic-coding"}
    [entry] = entries_of(matrix(one), whole, "below/", {"mini": "1.2"})
    assert (entry.key, entry.image, entry.version) == ("mini", "vllm/vllm-openai:v1", "1.2")
    assert entry.scenarios == ("fixed-lengths", "agentic")
    assert entry.files
    assert all(file.startswith("below/") for file in entry.files)


def test_the_image_of_infx_is_the_one_that_is_planned() -> None:
    [entry] = entries_of(matrix(mini()), plan_of(mini()))
    assert entry.image.startswith("pypi:infx==")
    assert entry.version == entry.image.partition("==")[2]


def test_a_changelog_entry_and_comments_keep_what_they_say() -> None:
    [told] = added([changelog("a* b", append_only=True, scenario_type=["agentic-coding"])])
    assert told.config_keys == ("a*", "b")
    assert (told.append_only, told.scenario_types) == (True, ("agentic-coding",))
    later, first = (_comment(number, f"2026-10-0{9 - number}") for number in (1, 2))
    assert [one.id for one in comments_of([later, first])] == ["2", "1"]
    assert comments_of([replace_user(first)])[0].author == ""


def _comment(number: int, day: str) -> Comment:
    return Comment(
        id=number,
        body="",
        created_at=day,
        html_url="",
        author_association="NONE",
        user=User(login="x"),
    )


def replace_user(one: Comment) -> Comment:
    return Comment(**{n: getattr(one, n) for n in one.__struct_fields__} | {"user": None})


def test_versions_are_told_where_all_servers_agree() -> None:
    [one, two] = (swept("r", plan(job(0, points=1))).records[0] for _ in range(2))

    def of(version: str) -> PointRecord:
        return replace(one, provenance=Provenance(server={"version": version}))

    assert engine_versions([of("1"), of("1"), two]) == {"tiny": "1"}
    assert engine_versions([of("1"), of("2")]) == {}


@pytest.mark.parametrize(("state", "conclusion"), WORDS.items())
def test_a_job_ends_as_its_worst_point(state: State, conclusion: str) -> None:
    whole = plan(job(0, points=2))
    [first, *_] = whole.jobs[0].points
    statuses = stands(whole, OK) | {(whole.jobs[0].job_id, first.point_id): status(state)}
    run = swept("r", whole, statuses=statuses)
    told = run_of(run, "example/lab", 17)
    assert (told.checks[0].conclusion, told.conclusion) == (conclusion, conclusion)
    assert bool(run.under_way) == (conclusion == "pending")


def test_a_job_that_nobody_heard_of_is_pending() -> None:
    run = swept("r", plan(), statuses={})
    assert run_of(run, "example/lab", 17).conclusion == "pending"


@given(st.lists(st.sampled_from([OK, PENDING, RUNNING, CANCELLED, status("failed")]), min_size=1))
def test_a_run_is_a_success_only_where_every_point_is_ok(states: list[Status]) -> None:
    whole = plan(job(0, points=len(states)))
    [only] = whole.jobs
    keys = [(only.job_id, point.point_id) for point in only.points]
    run = swept("r", whole, statuses=dict(zip(keys, states, strict=True)))
    told = run_of(run, "example/lab", 17)
    assert (told.conclusion == "success") == all(one == OK for one in states)


def test_a_job_that_measures_and_evaluates_is_told_as_both() -> None:
    whole = plan_of(mini())
    mixed = [one for one in whole.jobs if len({p.mode for p in one.points}) == 2]
    kinds = [check.kind for check in run_of(swept("r", whole), "example/lab", 17).checks]
    assert len(kinds) == len(whole.jobs) + len(mixed)


def test_whose_a_run_is_says_its_plan_or_who_asks() -> None:
    mine = run_of(swept("r", replace(plan(), origin=ORIGIN)), "example/lab", 99)
    assert (mine.pull_request, mine.head_sha) == (17, ORIGIN.head_sha)
    assert run_of(swept("r", plan()), "example/lab", 99).pull_request == 99


def test_a_shortened_run_is_not_valid_for_submission() -> None:
    short = replace(ORIGIN, submission_valid=False)
    assert not run_of(swept("r", replace(plan(), origin=short)), "x/y", 1).submission_valid
    whole = plan_of(mini(sessions(conc=[2])))
    fast = replace(whole, points=tuple(_fast(point) for point in whole.points))
    assert run_of(swept("r", whole), "x/y", 1).submission_valid
    assert not run_of(swept("r", fast), "x/y", 1).submission_valid


def _fast(point: Any) -> Any:
    load = point.workload
    if not isinstance(load, Agentic):
        return point
    return replace(point, workload=replace(load, kind="agentic-fast"))


def test_commits_are_those_of_the_plan_or_of_the_records() -> None:
    assert revisions(swept("r", replace(plan(), origin=ORIGIN))) == (ORIGIN.head_sha,)
    made = [Provenance(git_revision="b" * 40, git_dirty=dirty) for dirty in (False, True)]
    records = tuple(
        replace(one, provenance=how)
        for one, how in zip(swept("r", plan()).records, made, strict=False)
    )
    assert revisions(swept("r", plan(), records=records)) == ("b" * 40, "b" * 40 + "+")
    assert run_of(swept("r", plan(), records=records), "x/y", 1).head_sha == ""
    assert revisions(swept("r", plan())) == ()


def test_of_a_reused_run_only_the_jobs_that_are_used_count() -> None:
    whole = plan(job(0), job(1))
    ok, bad = whole.jobs
    statuses = stands(whole, OK)
    statuses |= {(bad.job_id, point.point_id): status("failed") for point in bad.points}
    run = swept("r", whole, statuses=statuses, reused=True)
    used = [one for one in run.records if one.attempt.job_id == ok.job_id]
    told = run_of(run, "example/lab", 17, used)
    assert ([check.name for check in told.checks], told.conclusion) == ([ok.name], "success")
    assert run_of(replace(run, reused=False), "example/lab", 17, used).conclusion == "failure"


def known(one: Job) -> Job:
    """The job of an engine that infx knows."""
    arm = replace(one.arm, framework="infx")
    return replace(one, arm=arm, points=tuple(replace(point, arm=arm) for point in one.points))


JOBS = tuple(known(job(number, points=2)) for number in range(3))


@given(
    st.lists(
        st.tuples(st.sets(st.integers(0, 2), min_size=1), st.booleans(), st.booleans()),
        min_size=1,
        max_size=4,
    )
)
def test_of_each_point_the_first_run_that_has_it_stands(
    asked: list[tuple[set[int], bool, bool]],
) -> None:
    def run(number: int, jobs: set[int], reused: bool, fails: bool) -> Swept:
        chosen: list[Job] = [JOBS[index] for index in sorted(jobs)]
        states = status("failed") if fails else OK
        return swept(f"r{number}", plan(*chosen), states=states, reused=reused)

    runs = [run(number, *one) for number, one in enumerate(asked)]
    wanted = [point for one in JOBS[:2] for point in one.points]
    found = standing(runs, {"tiny"}, wanted)
    assert list(found) == [one.run_id for one in runs]
    stood = [record.point.point_id for some in found.values() for record in some]
    assert len(stood) == len(set(stood))
    for point in wanted:
        able = [
            one.run_id
            for one in runs
            for record in one.records
            if record.point.point_id == point.point_id and (record.status == OK or not one.reused)
        ]
        have = [name for name, some in found.items() if point in [r.point for r in some]]
        assert have == able[:1]
    assert not any(
        record.status != OK for one in runs if one.reused for record in found[one.run_id]
    )


def test_records_of_other_entries_are_left_out() -> None:
    run = swept("r", plan(*JOBS))
    assert standing([run], {"another"}, run.plan.points) == {"r": ()}


def test_only_the_first_run_tells_what_the_head_does_not_plan() -> None:
    runs = [swept("new", plan(JOBS[0])), swept("old", plan(JOBS[1]))]
    found = standing(runs, {"tiny"}, [])
    assert len(found["new"]) == 2
    assert not found["old"]
