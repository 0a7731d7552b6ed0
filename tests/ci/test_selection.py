"""Only added changelog entries select; what changed besides is a warning."""

from __future__ import annotations

from infx.changelog.entry import Entry
from infx.ci.diff import compare
from infx.ci.selection import Selection, select
from infx.domain.findings import Finding
from infx.domain.plan import Plan
from tests.ci.cases import added, mini, other, plan_of, sessions
from tests.plan.matrices import evaluation, scenario

NONE = plan_of()
HEAD = plan_of(mini(), other("mini-two"), other())


def selected(*additions: Entry, base: Plan = HEAD, head: Plan = HEAD) -> Selection:
    return select(base, head, compare(base, head), additions)


def names(found: frozenset[str], head: Plan = HEAD) -> list[str]:
    return [point.name for point in head.points if point.point_id in found]


def told(found: Selection) -> list[tuple[str, str]]:
    return [(finding.code, finding.level) for finding in found.findings]


def test_a_key_selects_its_entry_alone() -> None:
    found = selected(added("mini"))
    assert names(found.throughput) == ["mini-c1", "mini-c4", "mini-agentic-c2", "mini-agentic-c8"]
    assert names(found.evaluations) == ["mini-eval-gsm_mini"]
    assert (found.entries, found.everywhere, found.findings) == (("mini",), frozenset(), ())


def test_an_asterisk_stands_for_anything_and_a_dot_for_itself() -> None:
    assert selected(added("'mini*'")).entries == ("mini", "mini-two")
    assert told(selected(added("'m.ni'"))) == [("key-unmatched", "error")]


def test_a_scenario_type_narrows_it() -> None:
    found = selected(added("mini", scenario_type=["agentic-coding"]))
    assert names(found.throughput) == ["mini-agentic-c2", "mini-agentic-c8"]
    assert names(found.evaluations) == ["mini-eval-gsm_mini"]


def test_a_scenario_type_leaves_out_evaluations_of_other_servers() -> None:
    head = plan_of(mini(scenario(conc=[1], tp=1), sessions(conc=[1], tp=2)))
    scored = {p.arm.axes.tp: p.point_id for p in head.points if p.mode == "evaluation"}
    assert set(scored) == {1, 2}
    found = selected(added("mini", scenario_type=["agentic-coding"]), head=head, base=head)
    assert found.evaluations == {scored[2]}


def test_a_key_without_such_points_is_an_error() -> None:
    head = plan_of(mini(scenario(conc=[1])))
    found = selected(added("mini", scenario_type=["agentic-coding"]), head=head, base=head)
    [finding] = found.findings
    assert finding.code == "key-unmatched"
    assert "no point of agentic-coding" in finding.sentence
    assert finding.where
    assert finding.where.line == 2
    [unknown] = selected(added("minni")).findings
    assert isinstance(unknown, Finding)
    assert "did you mean `mini`?" in unknown.hint


def test_evaluations_alone_and_everywhere() -> None:
    only = selected(added("mini", evals_only=True))
    assert (names(only.throughput), names(only.evaluations)) == ([], ["mini-eval-gsm_mini"])
    every = selected(added("mini", all_evals=True))
    assert names(every.everywhere) == names(every.throughput) != []


def test_append_only_selects_what_is_new() -> None:
    base, head = (plan_of(mini(scenario(conc=concs))) for concs in ([1, 2], [1, 2, 4]))
    found = selected(added("mini", append_only=True), base=base, head=head)
    assert names(found.throughput, head) == ["mini-c4"]
    assert (names(found.evaluations, head), found.findings) == ([], ())


def test_append_only_selects_an_evaluation_that_is_new_alone() -> None:
    """Other questions of the servers that were there."""
    tasks = [evaluation(), evaluation(task="gsm_mini_heldout")]
    base, head = (
        plan_of(mini(scenario(conc=[1]), evaluations=some)) for some in (tasks[:1], tasks)
    )
    found = selected(added("mini", append_only=True), base=base, head=head)
    assert names(found.throughput | found.evaluations, head) == ["mini-eval-gsm_mini_heldout"]


def test_append_only_with_a_point_gone_is_an_error() -> None:
    base, head = (plan_of(mini(scenario(conc=concs))) for concs in ([1, 2], [2, 4]))
    found = selected(added("mini", append_only=True), base=base, head=head)
    assert told(found) == [("point-removed", "error")]
    assert "mini-c1" in found.findings[0].sentence


def test_a_change_without_an_entry_is_a_warning() -> None:
    head = plan_of(mini(), other(image="pypi:infx==9"))
    found = selected(added("mini"), base=plan_of(mini(), other()), head=head)
    assert told(found) == [("change-unannounced", "warning")]
    assert found.findings[0].sentence.startswith("other changed")
    assert found.entries == ("mini",)
    assert names(found.throughput, head) == names(selected(added("mini")).throughput)


def test_a_change_of_a_scenario_that_is_not_asked_for_is_a_warning() -> None:
    head = plan_of(mini(image="pypi:infx==9"))
    fixed = added("mini", scenario_type=["fixed-seq-len"])
    found = selected(fixed, base=plan_of(mini()), head=head)
    [finding] = found.findings
    assert (finding.code, finding.level) == ("change-unannounced", "warning")
    assert finding.sentence.startswith("mini changed in agentic-coding, which no added")
    sessions_too = added("mini", scenario_type=["agentic-coding"])
    for more in (sessions_too, added("mini")):
        assert selected(fixed, more, base=plan_of(mini()), head=head).findings == ()
    alone = plan_of(mini(scenario(conc=[1, 8]), sessions(conc=[2])))
    same = plan_of(mini(scenario(conc=[1]), sessions(conc=[2])))
    assert selected(fixed, base=same, head=alone).findings == ()


def test_no_entry_selects_nothing() -> None:
    found = selected(base=NONE)
    assert not found.throughput | found.evaluations | found.everywhere
    assert told(found) == [("change-unannounced", "warning")] * 3


def test_points_that_two_entries_share_are_selected_by_either() -> None:
    head = plan_of(mini(), mini(name="twin"))
    assert {point.entry for point in head.points} == {"mini"}
    found = selected(added("twin"), head=head, base=head)
    assert found.throughput | found.evaluations == {point.point_id for point in head.points}
    assert (found.entries, found.findings) == (("twin",), ())


def test_a_field_without_a_use_is_told() -> None:
    found = selected(added("mini", eval_min_prefill_ep=8))
    assert told(found) == [("field-unused", "warning")]
    assert found.evaluations == selected(added("mini")).evaluations
