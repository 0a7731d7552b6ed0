from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from infx.changelog.entry import read_changelog
from infx.changelog.history import history_of
from infx.changelog.merge import append
from infx.changelog.rules import additions, append_only_findings, check
from infx.domain.findings import Finding
from infx.domain.point import Point
from tests.changelog.entries import FRESH, LINK, LISTS, changelog, codes, entry, places
from tests.public_data import shared
from tests.report.sample_runs import LLAMA, sample_plan, sample_records

BASE = changelog(entry("a"), entry("b", link="XXX"), entry("c"))


def checked(
    head: str, base: str | None = None, pr_link: str = "", known: str = ""
) -> tuple[Finding, ...]:
    names = known.split() or None
    return check(read_changelog(head.encode(), "f"), known=names, base=base, pr_link=pr_link)


@given(LISTS, FRESH)
def test_an_append_is_clean_and_leaves_history(old: list[str], new: list[str]) -> None:
    base = changelog(*old)
    head = append(base, changelog(*new))
    assert head.startswith(base)
    assert not checked(head, base)
    assert len(additions(base, read_changelog(head.encode(), "f"))) == len(new)


@given(LISTS, FRESH, st.data(), st.sampled_from(["", "x", "\n", " ", "é"]))
def test_no_byte_of_history_changes_unseen(
    old: list[str], new: list[str], data: st.DataObject, other: str
) -> None:
    base = changelog(*old)
    assume(len(base) > 1)
    at = data.draw(st.integers(0, len(base) - 2))
    head = append(base, changelog(*new))
    head = head[:at] + other + head[at + 1 :]
    assume(head[: len(base)] != base)
    found = history_of(base, head, "f")
    assert found.findings or found.corrected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (BASE.replace('"c"', '"d"'), ["f:14:8: history-changed"]),
        (changelog(entry("a"), entry("c")), ["f:6:1: history-changed"]),
        (changelog(entry("n"), BASE), ["f:1:1: history-changed"]),
        (changelog(entry("a"), entry("n"), entry("b", link="XXX"), entry("c")),
         ["f:7:1: history-changed"]),
        (BASE.replace("\n\n", "\n\n\n", 1), ["f:6:1: history-changed"]),
        ("# a\n" + BASE, ["f:1:1: history-changed"]),
        (BASE.replace("XXX", "https://github.com/o/r/pull/8"), []),
        (BASE.replace("XXX", f"{LINK}/changes"), ["f:11:12: history-changed"]),
        (BASE.replace("XXX", f"'{LINK}'"), ["f:11:12: history-changed"]),
        (BASE.replace("XXX", f"{LINK} "), ["f:11:12: history-changed"]),
        (BASE.replace(f": {LINK}", f":  {LINK}", 1), ["f:5:12: history-changed"]),
        (BASE + "\n\n" + entry("n"), []),
        (changelog(BASE, entry("n"), BASE), []),
        ("", ["f:1:1: history-changed"] * 3),
    ],
)  # fmt: skip
def test_history_is_what_it_was_or_a_link_is_corrected(head: str, expected: list[str]) -> None:
    assert places(history_of(BASE, head, "f").findings) == expected


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        ("# one\n", "# one\n\n" + entry(), []),
        ("# one\n", "# two\n\n" + entry(), ["f:1:1: history-changed"]),
        ("# one\n", entry(), ["f:1:1: history-changed"]),
        ("", "# one\n\n" + entry(), []),
        ("# one\n\n" + entry(), "# one\n\n\n" + entry(), ["f:1:1: history-changed"]),
    ],
)
def test_what_stands_before_the_entries_stays(base: str, head: str, expected: list[str]) -> None:
    found = check(read_changelog(head.encode(), "f"), base=base)
    assert [place for place in places(found) if "history" in place] == expected


def test_a_link_that_is_only_written_otherwise_is_no_correction() -> None:
    base = entry().replace(f": {LINK}", f": '{LINK}'")
    assert places(history_of(base, entry(), "f").findings) == ["f:5:12: history-changed"]


def test_a_text_that_spells_a_link_is_no_link() -> None:
    told = "  description:\n    - |\n      pr-link: {}\n"
    base, head = (
        entry().replace('  description:\n    - "Something"\n', told.format(link))
        for link in ("here", LINK)
    )
    assert places(history_of(base, head, "f").findings) == ["f:5:17: history-changed"]


def test_what_was_wrong_already_is_a_warning_and_what_is_new_an_error() -> None:
    base = changelog(entry("a", link="XXX"), entry("b")) + "\n"
    head = base + "\n" + entry("c", link="nowhere") + "\n"
    found = checked(head, base)
    assert [(str(f.where), f.code, f.level) for f in found] == [
        ("f:5:12", "link-form", "warning"),
        ("f:12:1", "blank-lines", "error"),
        ("f:18:12", "link-form", "error"),
        ("f:19:1", "blank-lines", "error"),
    ]


def test_broken_yaml_in_history_is_no_warning() -> None:
    base = entry().replace('"Something"', '"Some"thing')
    assert codes(checked(append(base, entry()), base)) == ["yaml-syntax"]


@pytest.mark.parametrize(
    ("link", "pr_link", "expected"),
    [
        (LINK, "", []),
        ("XXX", "", []),
        ("XXX", LINK, []),
        (LINK, LINK, []),
        ("https://github.com/o/r/pull/8", LINK, ["link-form"]),
        (f"{LINK}/changes", "", ["link-form"]),
        ("https://github.com/o/r/pull/XXX", "", ["link-form"]),
        (LINK.replace("https", "http"), "", ["link-form"]),
        (LINK.replace("pull/7", "pull/07"), "", ["link-form"]),
    ],
)
def test_links_of_new_entries(link: str, pr_link: str, expected: list[str]) -> None:
    base = changelog(entry("a"))
    assert codes(checked(append(base, entry("b", link=link)), base, pr_link)) == expected


def test_a_placeholder_is_refused_where_nothing_is_new() -> None:
    assert places(checked(BASE)) == ["f:11:12: link-form"]


def test_keys_name_entries() -> None:
    base = changelog(entry("gone"))
    head = append(base, changelog(entry("ab*"), entry("abx"), entry("b*")))
    found = checked(head, base, known="abc abd")
    assert [(str(f.where), f.level) for f in found] == [
        ("f:2:7", "warning"),
        ("f:14:7", "error"),
        ("f:20:7", "error"),
    ]
    assert found[1].hint.startswith("did you mean `ab")


def test_corrections_stand_apart_from_new_entries() -> None:
    corrected = BASE.replace("XXX", LINK)
    assert not checked(corrected, BASE)
    found = checked(append(corrected, entry("n")), BASE)
    assert places(found) == ["f:11:12: mixed-change"]


def test_append_only_stands_apart_from_other_entries() -> None:
    only = "  append-only: true\n"
    assert not checked(append(BASE.replace("XXX", LINK), entry("n", more=only)), None)
    head = append(BASE, changelog(entry("n", more=only), entry("m")))
    assert codes(checked(head, BASE)) == ["mixed-change"]


def points() -> list[Point]:
    plan = sample_plan(sample_records())
    return [p for p in plan.points if p.entry == LLAMA and p.mode == "throughput"]


def appended(before: list[Point], after: list[Point], key: str = LLAMA) -> list[str]:
    (found,) = read_changelog(entry(key).encode(), "f").entries
    return codes(append_only_findings(found, before, after))


def test_append_only_keeps_every_point_and_every_curve() -> None:
    old = points()
    new = replace(old[0], point_id="new")
    assert appended(old, [*old, new]) == []
    assert appended(old, [*old[1:], new]) == ["point-removed"]
    other = replace(new, arm=replace(new.arm, image="another"))
    assert appended(old, [*old, other]) == ["curve-differs"]
    assert appended(old, old[1:], key="another-*") == []


def test_every_violation_of_the_public_file() -> None:
    data = shared("data/inferencex/perf-changelog.yaml").read_bytes()
    masters = (shared(f"data/inferencex/{chip}-master.yaml") for chip in ("amd", "nvidia"))
    known = {key for path in masters for key in re.findall(r"(?m)^([\w.-]+):", path.read_text())}
    found = check(read_changelog(data, "f"), known=known)
    counts = {code: sum(f.code == code for f in found) for code in {f.code for f in found}}
    assert counts == {"blank-lines": 45, "link-form": 2, "key-unmatched": 462}
    assert codes(found).count("key-unmatched") == 0
