from __future__ import annotations

from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from infx.domain.findings import Finding, Where
from infx.domain.record import PointRecord
from infx.domain.status import Status
from infx.report.build import build
from infx.report.html import html
from infx.report.markdown import markdown
from tests.report.sample_runs import FACTS, sample_plan, sample_records

EVIL = "<script>alert('x')</script>\"'&|`\n"


class Elements(HTMLParser):
    """Every start tag with its attributes, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def page(records: list[PointRecord] | None = None) -> str:
    everything = sample_records()
    shown = everything if records is None else records
    return html(build(shown, sample_plan(everything), FACTS))


def evil_records() -> list[PointRecord]:
    found = Finding("errors", "error", EVIL, Where(EVIL))
    return [
        replace(
            record,
            point=replace(record.point, entry=EVIL, name=EVIL),
            status=Status("invalid", "errors", EVIL),
            findings=(found,),
            artifacts={EVIL: EVIL},
            phases_s={EVIL: 1.0},
            provenance=replace(
                record.provenance, server_argv=(EVIL,), client_argv=(EVIL,), env={EVIL: EVIL},
                server={EVIL: [EVIL]}, host={EVIL: EVIL}, packages={EVIL: EVIL},
            ),
        )
        for record in sample_records()
    ]  # fmt: skip


def test_is_one_offline_file() -> None:
    text = page()
    assert len(text.encode()) < 150_000
    for tag, attributes in Elements(text).tags:
        assert "src" not in attributes
        assert tag not in ("link", "iframe", "img", "object")
        assert (attributes.get("href") or "#").startswith("#")
    assert "@import" not in text
    assert "url(" not in text


def test_every_link_leads_somewhere_and_ids_are_unique() -> None:
    tags = Elements(page()).tags
    ids = Counter(attributes["id"] for _, attributes in tags if "id" in attributes)
    assert max(ids.values()) == 1
    links = {attributes["href"] for _, attributes in tags if attributes.get("href")}
    assert {str(link)[1:] for link in links} <= set(ids)


def test_text_from_records_cannot_become_markup() -> None:
    records = evil_records()
    plan = sample_plan(records)
    evil_plan = replace(
        plan,
        ledger=tuple(
            replace(c, rule=EVIL, sentence=EVIL, values={EVIL: EVIL}) for c in plan.ledger
        ),
        excluded_by={EVIL: 3},
        findings=(Finding("mono-serves", "info", EVIL),),
    )
    text = html(build(records, evil_plan, replace(FACTS, run_id=EVIL, command=EVIL)))
    assert "alert(" in text
    assert "<script>alert" not in text
    plain = Counter(tag for tag, _ in Elements(page()).tags)
    assert Counter(tag for tag, _ in Elements(text).tags)["script"] == plain["script"] == 1


def test_says_what_a_reviewer_needs() -> None:
    text = page()
    for words in (
        "aiperf profile",
        "python -m infx.engine",
        "questions only",
        "a random model scores 0",
        "mono-not-built",
        "configs/quickstart.yaml:41:9",
        "4100 steps",
        "10</b> run",
    ):
        assert words in text


def test_an_empty_report_explains_itself() -> None:
    text = page([])
    assert "There is nothing to draw" in text
    assert "8 not run" in text
    assert '<svg viewBox="0 0 960' not in text


def test_a_large_run_stays_small() -> None:
    text = page(sample_records()[:6] * 84)
    assert len(text.encode()) < 504 * 2600


@pytest.mark.parametrize("records", [sample_records(), [], evil_records()])
def test_markdown_tables_keep_their_shape(records: list[PointRecord]) -> None:
    text = markdown(build(records, sample_plan(sample_records()), FACTS))
    assert "<script" not in text
    widths: list[int] = []
    for line in text.splitlines():
        if line.startswith("|"):
            widths.append(line.replace("\\|", "").count("|"))
        elif widths:
            assert len(set(widths)) == 1
            widths = []
    assert text.endswith("\n")
