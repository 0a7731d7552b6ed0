from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.changelog.text import byte_findings, decoded, layout
from infx.domain.findings import Finding
from tests.changelog.entries import changelog, entry, places

TWO = changelog(entry("a"), entry("b"))


@given(st.text("- \n\tab\r", max_size=60))
def test_blocks_put_together_are_the_file(text: str) -> None:
    found = layout(text)
    assert found.head + "".join(block.text + block.gap for block in found.blocks) == text


@given(st.text("- \n\tab\r", max_size=60))
def test_a_block_knows_its_line(text: str) -> None:
    lines = text.split("\n")
    for block in layout(text).blocks:
        assert lines[block.line - 1] == block.text.split("\n")[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TWO, []),
        ("", []),
        (TWO.replace("\n\n", "\n"), ["f:6:1: blank-lines"]),
        (TWO.replace("\n\n", "\n\n\n"), ["f:6:1: blank-lines"]),
        (TWO.replace("\n\n", "\n \n"), ["f:6:1: blank-lines"]),
        (TWO + "\n", ["f:12:1: blank-lines"]),
        (TWO[:-1], ["f:11:41: blank-lines"]),
        ("# said first\n" + TWO, ["f:1:1: blank-lines"]),
        ("# said first\n\n" + TWO, []),
        ("# said first\n# and more\n\n" + TWO, []),
        ("# said first\n\n\n" + TWO, ["f:1:1: blank-lines"]),
        ("# said first\n\n# and more\n\n" + TWO, ["f:1:1: blank-lines"]),
        ("said first\n\n" + TWO, ["f:1:1: blank-lines"]),
        ("\n" + TWO, ["f:1:1: blank-lines"]),
        ("# alone\n", []),
        ("# alone\n\n", ["f:1:1: blank-lines"]),
        ("# alone", ["f:1:1: blank-lines"]),
        (TWO.replace("Some", "So\tme", 1), ["f:4:10: control-character"]),
        (TWO.replace("Some", "So\0me", 1), ["f:4:10: control-character"]),
        (TWO.replace("Some", "So\u2028\u2028me", 1), ["f:4:10: control-character"]),
        ("\ufeff" + TWO, ["f:1:1: control-character"]),
    ],
)
def test_what_bytes_may_not_be(text: str, expected: list[str]) -> None:
    assert places(list(byte_findings(text, "f"))) == expected


def test_every_carriage_return_is_told() -> None:
    found = places(list(byte_findings(entry().replace("\n", "\r\n"), "f")))
    assert [place for place in found if "control" in place] == [
        f"f:{line}:{col}: control-character"
        for line, col in ((1, 15), (2, 12), (3, 15), (4, 18), (5, 41))
    ]


def test_a_file_of_tabs_is_read_as_fast_as_another() -> None:
    start = time.process_time()
    assert places(list(byte_findings("\t" * 400_000, "f")))[0] == "f:1:1: control-character"
    assert time.process_time() - start < 2


def test_the_first_byte_that_is_not_utf8_has_its_place() -> None:
    found = decoded(TWO.encode().replace(b"Something", b"Gr\xfc\xdfe", 1), "f")
    assert isinstance(found, Finding)
    assert places([found]) == ["f:4:10: not-utf8"]
    assert "0xfc" in found.sentence
