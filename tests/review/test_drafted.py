"""What infx itself writes into the changelog is nothing that check 15 finds stale."""

from __future__ import annotations

from dataclasses import replace

import yaml

from infx.changelog.draft import draft_entry
from infx.changelog.entry import PLANNED, SINCE
from infx.review.bundle import Bundle
from infx.review.claims import claims, stale
from infx.review.rules import load_rules
from tests.report.sample_runs import sample_plan
from tests.review.minimax_m3 import RUN, minimax_m3


def described(*told: str) -> Bundle:
    """The bundle with a text that claims nothing, and this description."""
    bundle = minimax_m3()
    request = replace(bundle.pull_request, title="", body="")
    [first, *_] = bundle.changelog
    entry = replace(first, description=told)
    return replace(bundle, pull_request=request, changelog=(entry,))


def wrong(*told: str) -> list[str]:
    return [one.text for one in stale(list(claims(described(*told), load_rules())))]


def test_a_drafted_entry_holds() -> None:
    records = minimax_m3().records
    [entry] = yaml.safe_load(draft_entry(records, sample_plan(list(records)), run=RUN))
    told = entry["description"]
    assert any(f"run {RUN}: 19 of 19 points, 20 of 20 evaluations" in text for text in told)
    assert wrong(*told) == []


def test_a_comparison_with_an_earlier_run_claims_nothing_of_this_one() -> None:
    compared = "20261001-0900-77c2: 17 points compared. Throughput: better on 3."
    assert wrong(f"{SINCE}{compared}") == []
    assert wrong(compared) == ["17 points"]


def test_what_was_planned_claims_nothing_of_what_was_measured() -> None:
    planned = "mini: 2 points appear: new: conc 128"
    assert wrong(planned)
    assert wrong(f"{PLANNED}{planned}") == []
