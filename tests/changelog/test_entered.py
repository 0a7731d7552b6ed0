"""A run is entered once, and its link is set in place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.changelog.entered import announcement_of, entry_of, in_place_of, with_link
from infx.changelog.entry import read_changelog
from infx.changelog.history import history_of
from infx.changelog.text import layout
from tests.changelog.entries import FRESH, LINK, LISTS, changelog, entry

RUN = "20261129-1740-3fa1"
OURS = entry(told=f"run {RUN}: 3 points measured", link="XXX")


@given(LISTS, FRESH)
def test_a_link_is_set_and_all_else_stays(before: list[str], after: list[str]) -> None:
    text = changelog(*before, OURS, *after)
    found = entry_of(read_changelog(text.encode(), "f"), RUN)
    assert found
    assert (found.pr_link, found.where.line) == ("XXX", layout(text).blocks[len(before)].line)
    linked = with_link(text, found, LINK)
    assert linked == changelog(*before, OURS.replace("XXX", LINK), *after)
    assert not history_of(text, linked, "f").findings


def test_a_text_that_spells_a_link_stays() -> None:
    told = f'    - "run {RUN}: 3 points"\n    - |\n      pr-link: XXX\n'
    text = OURS.replace(f'    - "run {RUN}: 3 points measured"\n', told)
    found = entry_of(read_changelog(text.encode(), "f"), RUN)
    assert found
    assert with_link(text, found, LINK) == text.replace("\n  pr-link: XXX", f"\n  pr-link: {LINK}")


@pytest.mark.parametrize(
    "told", ["", f"since run {RUN}: better", f"run {RUN}-2: 3 points", f"a run {RUN}: 3 points"]
)
def test_another_run_is_another(told: str) -> None:
    text = entry(told=told or "x")
    assert entry_of(read_changelog(text.encode(), "f"), RUN) is None


@given(st.sampled_from(["", "# Said first\n"]))
def test_a_file_without_entries_has_none(text: str) -> None:
    assert entry_of(read_changelog(text.encode(), "f"), RUN) is None


PLANS = entry(told="planned: mini: 1 point appears: new: conc 2", link="XXX")


@given(LISTS, FRESH)
def test_what_was_planned_gives_its_place_to_what_was_measured(
    before: list[str], after: list[str]
) -> None:
    text = changelog(*before, PLANS, *after)
    [mine] = read_changelog(OURS.encode(), "f").entries
    planned = announcement_of(read_changelog(text.encode(), "f"), mine)
    assert planned
    assert in_place_of(text, planned, OURS) == changelog(*before, OURS, *after)


@pytest.mark.parametrize(
    "stood",
    [
        PLANS.replace("planned: ", "told: "),
        PLANS.replace("XXX", LINK),  # of a pull request that is merged
        PLANS.replace("- config-keys:\n", "- config-keys:\n    - another-entry\n"),
        PLANS.replace("  pr-link", '    - "and by hand"\n  pr-link'),
    ],
)
def test_another_entry_is_no_announcement(stood: str) -> None:
    assert stood != PLANS
    [mine] = read_changelog(OURS.encode(), "f").entries
    assert announcement_of(read_changelog(stood.encode(), "f"), mine) is None


def test_an_announcement_of_the_same_pull_request_is_one() -> None:
    linked = PLANS.replace("XXX", LINK)
    [mine] = read_changelog(OURS.replace("XXX", LINK).encode(), "f").entries
    assert announcement_of(read_changelog(linked.encode(), "f"), mine)
