"""Exactly one primary, modifiers need one, nothing that only looks like a label of CI."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.ci.labels import read_rules, schema, settings
from infx.domain.errors import ConfigError
from tests.ci.cases import RULES

PRIMARIES = sorted(RULES.primaries)
MODIFIERS = sorted(RULES.modifiers)


def faults(*labels: str) -> list[tuple[str, str, str]]:
    with pytest.raises(ConfigError) as caught:
        settings(labels, RULES)
    return [(f.code, f.sentence, f.hint) for f in caught.value.findings]


def test_the_three_primaries() -> None:
    asked = {name: settings([name, "bug"], RULES) for name in PRIMARIES}
    assert {n: (s.canary, s.fail_fast) for n, s in asked.items() if s} == {
        "full-sweep-fail-fast": (True, True),
        "full-sweep-enabled": (True, False),
        "non-canary-full-sweep-enabled": (False, False),
    }


def test_modifiers_change_a_sweep() -> None:
    asked = settings(["evals-only", "full-sweep-enabled", "all-evals", "agentx-fast"], RULES)
    assert asked
    assert (asked.evaluations_only, asked.every_evaluation, asked.reusable) == (True, True, False)
    assert asked.fast
    assert (asked.fast.duration_s, asked.fast.warmup_requests_per_lane) == (1200, 1)
    whole = settings(["full-sweep-enabled", "all-evals"], RULES)
    assert whole
    assert (whole.every_evaluation, whole.evaluations_only, whole.reusable) == (True, False, True)


def test_no_label_of_ci_asks_for_nothing() -> None:
    assert settings(["bug", "documentation", "performance", "needs evaluation"], RULES) is None


def test_two_primaries_say_which_to_remove() -> None:
    [(code, sentence, hint)] = faults("full-sweep-fail-fast", "full-sweep-enabled")
    assert code == "two-primaries"
    assert "full-sweep-fail-fast and full-sweep-enabled" in sentence
    assert hint == "keep the one that is meant, remove the rest"


def test_a_modifier_alone_says_what_to_add() -> None:
    [(code, sentence, hint)] = faults("agentx-fast")
    assert code == "modifier-alone"
    assert sentence == "no label asks for the sweep that agentx-fast would change"
    assert all(name in hint for name in PRIMARIES)
    [(_, sentence, hint)] = faults("agentx-fast", "all-evals", "evals-only")
    assert "that all-evals, evals-only and agentx-fast would change" in sentence
    assert hint.endswith(", or remove all-evals, evals-only and agentx-fast")


@pytest.mark.parametrize(
    ("label", "meant"),
    [
        ("full-swep-enabled", "full-sweep-enabled"),
        ("Full-Sweep-Enabled", "full-sweep-enabled"),
        ("all_evals", "all-evals"),
        ("agentx-slow", ""),
        ("canary", ""),
        ("sweep-enabled", ""),
    ],
)
def test_a_label_that_looks_like_one_is_an_error(label: str, meant: str) -> None:
    [(code, sentence, hint)] = faults("full-sweep-enabled", label)
    assert (code, sentence.split("`")[1]) == ("label-unknown", label)
    assert "remove it" in hint
    assert meant in hint


def test_all_faults_are_told_at_once() -> None:
    assert {code for code, *_ in faults("all-evals", "my-sweep")} == {
        "modifier-alone",
        "label-unknown",
    }


def test_faults_are_told_in_one_order() -> None:
    wrong = [f"{letter}-sweep" for letter in "hcfbgaed"]
    told = [sentence.split("`")[1] for _, sentence, _ in faults("full-sweep-enabled", *wrong)]
    assert told == sorted(wrong)


@given(st.sets(st.sampled_from([*PRIMARIES, *MODIFIERS, "bug", "wontfix"])))
def test_labels_are_right_or_refused(labels: set[str]) -> None:
    primaries = labels & set(PRIMARIES)
    right = len(primaries) == 1 or not (primaries or labels & set(MODIFIERS))
    try:
        asked = settings(sorted(labels), RULES)
    except ConfigError:
        assert not right
        return
    assert right
    assert ({asked.primary} if asked else set()) == primaries
    assert set(asked.modifiers if asked else ()) == labels & set(MODIFIERS)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "Expected `object`"),
        ({"version": 2, "primaries": {}}, "version"),
        ({"version": 1, "primaries": {}}, "no primary"),
        ({"version": 1, "primaries": {"a": {"canary": True}}}, "fail-fast"),
        ({"version": 1, "primaries": {"a": {"canary": 1, "fail-fast": True}}}, "canary"),
        ({"version": 1, "primaries": {}, "extra": 1}, "extra"),
    ],
)
def test_rules_of_another_form_are_refused(content: object, fault: str) -> None:
    with pytest.raises(ConfigError, match="bad-label-rules") as caught:
        read_rules(content, "labels.yaml")
    assert fault in str(caught.value)
    assert "labels.yaml" in str(caught.value)


def test_a_label_is_not_both_kinds() -> None:
    one = {"canary": True, "fail-fast": True}
    with pytest.raises(ConfigError, match="a is a primary and a modifier"):
        read_rules({"version": 1, "primaries": {"a": one}, "modifiers": {"a": {}}}, "labels.yaml")


def test_the_schema_beside_the_file_is_that_of_the_code() -> None:
    text = (files("infx.ci") / "data" / "labels.schema.json").read_text("utf-8")
    assert json.loads(text) == json.loads(json.dumps(schema()))
