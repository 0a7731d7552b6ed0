"""Markdown from records and plans is text: no markup of theirs survives."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from infx.domain.findings import Finding
from infx.domain.record import PointRecord
from infx.domain.status import Status
from infx.report.build import build
from infx.report.markdown import markdown
from infx.report.markdown_parts import code_block, folded, safe
from tests.report.sample_runs import FACTS, sample_plan, sample_records

MARKUP = "[a](http://x) ![b](y) *c* _d_ **e** `f` <g> @team | ~ \\\\ > h WWW.a.io owner/b#7 #8"
EVIL = "<script>alert('x')</script>\"'&|`\n</details>"


def renamed(text: str) -> list[PointRecord]:
    """Records of which every text is ``text``, as a hostile engine or matrix may write it."""
    status = Status("invalid", "errors", text)
    found = (Finding("errors", "error", text),)
    return [
        replace(
            record,
            status=status,
            findings=found,
            point=replace(record.point, entry=text, name=text),
        )
        for record in sample_records()
    ]


@pytest.mark.parametrize("records", [sample_records(), [], renamed(EVIL), renamed(MARKUP)])
def test_tables_keep_their_shape(records: list[PointRecord]) -> None:
    plan = sample_plan(records or sample_records())
    text = markdown(build(records, plan, replace(FACTS, run_id=EVIL)))
    assert "<script" not in text
    assert text.count("<details>") == text.count("</details>")
    widths: set[int] = set()
    for line in text.splitlines():
        widths = widths | {line.count("|")} if line.startswith("|") else set()
        assert len(widths) <= 1
    assert text.endswith("\n")


def test_text_from_outside_is_plain() -> None:
    records = renamed(MARKUP)
    text = markdown(build(records, sample_plan(records), replace(FACTS, run_id=MARKUP)))
    assert re.search(r"https?://|www\.|(?<!&)#\d", text, re.IGNORECASE) is None
    for line in text.splitlines():
        ours = r"^(- |### |\*\*|```.*)|</?(details|summary)>|\*\*(?=$| )|\| (--- \|)?|\|$"
        outside = re.sub(r"\\.", "", re.sub(ours, "", line))
        assert re.findall(r"[\[\]!*_`<>@|]", outside) == [], line


def test_text_reads_back_as_it_was_written() -> None:
    records = renamed(MARKUP)
    text = markdown(build(records, sample_plan(records), FACTS))
    read = html.unescape(re.sub(r"\\([\\\[\]!*_`~])", r"\1", text)).replace("\u200b", "")
    assert MARKUP in read


@given(st.text(st.sampled_from("`a\n@"), max_size=12))
@example("```\n@team")
def test_a_fence_holds_any_text(text: str) -> None:
    lines = code_block([text]).split("\n")
    fence = lines[-1]
    assert set(fence) == {"`"}
    assert lines[0] == f"{fence}sh"
    assert fence not in "\n".join(lines[1:-1])


def test_a_summary_cannot_close_its_fold() -> None:
    assert folded("</summary></details>", ["x"]).count("</details>") == 1
    assert "<" not in safe("</summary></details>")
    assert safe("~~struck~~") == "\\~\\~struck\\~\\~"
