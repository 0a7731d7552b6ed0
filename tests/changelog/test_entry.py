from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.changelog.entry import Entry, Key, read_changelog
from infx.changelog.rules import check
from infx.domain.findings import Where
from tests.changelog.entries import FRESH, LINK, changelog, entry, places
from tests.public_data import shared


def read(text: str) -> list[str]:
    return places(read_changelog(text.encode(), "f").findings)


def only(text: str) -> Entry:
    (found,) = read_changelog(text.encode(), "f").entries
    return found


def test_an_entry_is_read_whole() -> None:
    more = "  append-only: true\n  scenario-type:\n    - agentic-coding\n"
    found = only(entry("a-*-b", "Told", LINK, more))
    assert found == Entry(
        keys=(Key("a-*-b", Where("f", 2, 7)),),
        description=("Told",),
        pr_link=LINK,
        append_only=True,
        scenario_types=("agentic-coding",),
        where=Where("f", 1, 3),
        link_where=Where("f", 8, 12),
    )
    assert only(entry(more="  eval-min-prefill-ep: 4\n")).eval_min_prefill_ep == 4


@pytest.mark.parametrize(
    ("name", "named"),
    [("a-x-b", True), ("a--b", True), ("a-b", False), ("a-x-bc", False), ("a-x.b", False)],
)
def test_only_the_star_stands_for_anything(name: str, named: bool) -> None:
    assert only(entry("a-*-b")).selects(name) is named
    assert not only(entry("a[12]?")).selects("a1x")
    assert not only(entry("a.*")).selects("ax-b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (entry(more="  evals-only: yes\n"), ["f:5:15: ambiguous-scalar"]),
        (entry(more="  evals-only: 1\n"), ["f:5:15: wrong-type"]),
        (entry(more="  eval-min-prefill-ep: 0\n"), ["f:5:24: wrong-type"]),
        (entry(more="  eval-min-prefill-ep: true\n"), ["f:5:24: wrong-type"]),
        (entry(more="  scenario-type:\n    - agentic\n"), ["f:6:7: unknown-value"]),
        (entry(more="  scenario-type: agentic-coding\n"), ["f:5:18: wrong-type"]),
        (entry(more="  evals_only: true\n"), ["f:5:3: unknown-key"]),
        (entry(more="  pr-link: a\n"), ["f:6:3: duplicate-key"]),
        (entry(more="  append-only: true\n  all-evals: true\n"), ["f:1:3: conflicting-keys"]),
        (entry(link=""), ["f:5:11: wrong-type"]),
        (entry(link="&a b"), ["f:5:12: anchor"]),
        (entry('a"\n    - "a'), ["f:3:7: repeated-value"]),
        ("- config-keys:\n    - a\n", ["f:1:3: missing-key", "f:1:3: missing-key"]),
        ("-\n" + entry()[2:].replace("config", "  config", 1), ["f:2:1: entry-start"]),
        ("a: 1\n", ["f:1:1: blank-lines", "f:1:1: wrong-type"]),
        ("- a\n", ["f:1:1: entry-start", "f:1:3: wrong-type"]),
    ],
)
def test_what_an_entry_may_not_be(text: str, expected: list[str]) -> None:
    assert read(text) == expected


def test_a_tab_does_not_hide_what_else_is_wrong() -> None:
    text = entry(more="  evals_only: true\n").replace("    - ", "\t   - ", 1)
    assert read(text) == ["f:2:1: control-character", "f:5:3: unknown-key"]


def test_broken_yaml_is_told_with_its_place() -> None:
    assert read(entry().replace('"Something"', '"Some"thing')) == ["f:4:13: yaml-syntax"]


def test_bytes_that_are_not_utf8_leave_no_entry() -> None:
    found = read_changelog(entry().encode() + b"\xff", "f")
    assert not found.entries
    assert places(found.findings) == ["f:6:1: not-utf8"]


@given(FRESH)
def test_entries_that_are_written_right_are_read_back(entries: list[str]) -> None:
    found = read_changelog(changelog(*entries).encode(), "f")
    assert not found.findings
    assert len(found.entries) == len(entries)


def test_the_public_file_is_read_whole_and_fast() -> None:
    data = shared("data/inferencex/perf-changelog.yaml").read_bytes()
    times_s = []
    for _ in range(3):
        start = time.process_time()
        found = read_changelog(data, "f")
        times_s.append(time.process_time() - start)
    assert len(found.entries) == 772
    assert len(found.findings) == 45
    assert {finding.code for finding in found.findings} == {"blank-lines"}
    assert min(times_s) < 0.5


@given(st.binary(max_size=40), st.integers(0, 90))
def test_no_bytes_end_the_reading(junk: bytes, at: int) -> None:
    good = entry().encode()
    found = read_changelog(good[:at] + junk + good[at:], "f")
    assert check(found) is not None
    assert all(finding.where and finding.where.file == "f" for finding in found.findings)


@given(st.text("-: \n\t[]{}'\"&*!|>#%@\x85\u2028\ufeff\uffff\U0001f600ab", max_size=30))
def test_no_text_ends_the_reading(text: str) -> None:
    assert check(read_changelog(text.encode(), "f"), base=text) is not None
