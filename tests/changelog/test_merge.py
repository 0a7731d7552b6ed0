from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from infx.changelog.entry import read_changelog
from infx.changelog.merge import Merged, append, merge
from infx.changelog.rules import check
from infx.changelog.text import layout
from infx.domain.findings import Finding
from tests.changelog.entries import FRESH, LINK, LISTS, changelog, codes, entry, places

BASE = changelog(entry("a"), entry("b", link="XXX"))


def merged(base: str, ours: str, theirs: str, ours_last: bool = False) -> Merged:
    found = merge(base, ours, theirs, ours_last=ours_last)
    assert isinstance(found, Merged), found
    return found


def blocks(text: str) -> list[str]:
    return [block.text for block in layout(text).blocks]


@given(LISTS, FRESH, FRESH)
def test_both_orders_give_the_same_entries(old: list[str], a: list[str], b: list[str]) -> None:
    base = changelog(*old)
    ours, theirs = (append(base, changelog(*new)) for new in (a, b))
    one, other = merged(base, ours, theirs), merged(base, theirs, ours)
    assert set(blocks(one.text)) == set(blocks(other.text))
    assert merged(base, theirs, ours, ours_last=True).text == one.text


@given(LISTS, FRESH, FRESH, st.booleans())
def test_a_merge_is_clean_and_leaves_history(
    old: list[str], a: list[str], b: list[str], ours_last: bool
) -> None:
    base = changelog(*old)
    ours, theirs = (append(base, changelog(*new)) for new in (a, b))
    found = merged(base, ours, theirs, ours_last)
    assert found.text.startswith(base)
    assert not codes(check(read_changelog(found.text.encode(), "f"), base=base))
    assert len(blocks(found.text)) == len(old) + found.ours + found.theirs


@given(LISTS, FRESH, FRESH)
def test_no_entry_is_lost(old: list[str], a: list[str], b: list[str]) -> None:
    base = changelog(*old)
    ours, theirs = (append(base, changelog(*new)) for new in (a, b))
    there = {_unlinked(text) for text in blocks(merged(base, ours, theirs).text)}
    assert {_unlinked(text) for text in (*old, *a, *b)} == there


@given(LISTS, FRESH, FRESH)
def test_a_header_stays_where_it_is(old: list[str], a: list[str], b: list[str]) -> None:
    base = append("# What changed.\n", changelog(*old))
    ours, theirs = (append(base, changelog(*new)) for new in (a, b))
    found = merged(base, ours, theirs).text
    assert found.startswith("# What changed.\n\n" if old or a or b else "# What changed.\n")
    plain = merged(changelog(*old), *(append(changelog(*old), changelog(*new)) for new in (a, b)))
    assert found.removeprefix("# What changed.\n").removeprefix("\n") == plain.text
    assert not codes(check(read_changelog(found.encode(), "f"), base=base))


@given(LISTS, FRESH, FRESH, FRESH)
def test_a_rebase_commit_by_commit_is_a_merge(
    old: list[str], a: list[str], b: list[str], c: list[str]
) -> None:
    """The branch appends ``a``, then ``b``; ``c`` is published meanwhile."""
    every = [_unlinked(text) for text in (*old, *a, *b, *c)]
    assume(len(set(every)) == len(every))
    base, one = changelog(*old), changelog(*old, *a)
    two, main = append(one, changelog(*b)), append(base, changelog(*c))
    first = merged(base, main, one).text
    last = merged(one, first, two)
    assert last.text == changelog(*old, *c, *a, *b)
    assert (last.ours, last.theirs) == (len(c), len(b))
    assert merged(one, two, first, ours_last=True).text == last.text
    assert not codes(check(read_changelog(last.text.encode(), "f"), base=main))


def test_a_link_is_corrected_below_what_was_published_meanwhile() -> None:
    mine, linked = (append(BASE, entry("x", link=link)) for link in ("XXX", LINK))
    ours = append(BASE, changelog(entry("m"), entry("x", link="XXX")))
    assert merged(mine, ours, linked).text == append(
        BASE, changelog(entry("m"), entry("x", link=LINK))
    )


def test_entries_among_history_on_both_sides_are_refused() -> None:
    ours, theirs = (changelog(entry("a"), entry(k), entry("b", link="XXX")) for k in ("m", "n"))
    assert places(refused(BASE, ours, theirs)) == [
        "ours:7:1: history-changed",
        "theirs:7:1: history-changed",
    ]


def test_a_side_may_begin_the_file_with_a_header() -> None:
    ours, theirs = "# What changed.\n\n" + entry("a"), entry("b")
    for one, other in ((ours, theirs), (theirs, ours)):
        found = merged("", one, other, ours_last=one == theirs).text
        assert found == "# What changed.\n\n" + changelog(entry("a"), entry("b"))


def _unlinked(text: str) -> str:
    return text.partition("  pr-link")[0]


@given(LISTS, FRESH, FRESH, FRESH)
def test_three_branches_in_any_order(
    old: list[str], a: list[str], b: list[str], c: list[str]
) -> None:
    base = changelog(*old)
    sides = [append(base, changelog(*new)) for new in (a, b, c)]
    first = merged(base, merged(base, sides[0], sides[1]).text, sides[2])
    last = merged(base, sides[2], merged(base, sides[1], sides[0]).text)
    assert set(blocks(first.text)) == set(blocks(last.text))


def test_history_with_faults_keeps_its_bytes() -> None:
    base = changelog(entry("a"), "\n" + entry("b")) + "  \n\n"
    found = merged(base, base + entry("x"), base.rstrip() + "\n\n" + entry("y"))
    assert found.text == changelog(entry("a"), "\n" + entry("b"), entry("x"), entry("y"))


def test_an_entry_of_both_sides_stands_once() -> None:
    side = append(BASE, entry("x"))
    assert blocks(merged(BASE, side, append(side, entry("y"))).text) == blocks(
        append(BASE, changelog(entry("x"), entry("y")))
    )


def test_a_placeholder_gives_way_to_the_link() -> None:
    mine, theirs = (append(BASE, entry("x", link=link)) for link in ("XXX", LINK))
    assert merged(BASE, mine, theirs).text == theirs
    assert merged(BASE, theirs, mine).text == theirs


def test_the_sides_order_new_entries() -> None:
    mine, theirs = append(BASE, entry("x")), append(BASE, entry("y"))
    assert blocks(merged(BASE, mine, theirs).text)[2:] == [entry("x"), entry("y")]
    last = merged(BASE, mine, append(theirs, entry("z")), ours_last=True)
    assert blocks(last.text)[2:] == [entry("y"), entry("z"), entry("x")]
    assert (last.ours, last.theirs) == (1, 2)


def test_a_correction_of_one_side_is_taken() -> None:
    corrected = BASE.replace("XXX", LINK)
    found = merged(BASE, append(BASE, entry("x")), corrected)
    assert found.text == append(corrected, entry("x"))


def refused(base: str, ours: str, theirs: str) -> tuple[Finding, ...]:
    found = merge(base, ours, theirs)
    assert isinstance(found, tuple)
    return found


def test_two_corrections_of_one_link_are_refused() -> None:
    sides = (BASE.replace("XXX", f"https://github.com/o/r/pull/{n}") for n in (1, 2))
    assert places(refused(BASE, *sides)) == ["ours:7:1: merge-refused"]


def test_changed_history_is_refused_on_either_side() -> None:
    changed = BASE.replace('"a"', '"z"')
    assert places(refused(BASE, BASE, changed)) == ["theirs:2:8: history-changed"]
    assert places(refused(BASE, changed, BASE)) == ["ours:2:8: history-changed"]


def test_a_file_that_both_sides_begin() -> None:
    found = merged("", entry("x"), entry("y"))
    assert found.text == changelog(entry("x"), entry("y"))


def test_a_side_without_a_last_newline() -> None:
    found = merged(BASE[:-1], append(BASE, entry("x"))[:-1], append(BASE, entry("y")))
    assert found.text == append(BASE, changelog(entry("x"), entry("y")))
    assert append(BASE[:-1], entry("x")) == append(BASE, entry("x"))
