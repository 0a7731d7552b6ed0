from __future__ import annotations

import html as html_module
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import infx.report.build as report
from infx.domain.findings import Finding, Where
from infx.domain.record import PointRecord
from infx.domain.status import Status
from infx.report.build import build
from infx.report.html import html
from infx.report.markdown import markdown
from infx.report.palette import DARK, LIGHT
from tests.report.sample_runs import (
    FACTS,
    empty_plan,
    harder_records,
    mono_records,
    sample_plan,
    sample_records,
)

EVIL = "<script>alert('x')</script>\"'&|`\n"
MARKUP = "[a](http://x) ![b](y) *c* _d_ **e** `f` <g> @team | ~ \\\\ > h"


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
        excluded_by={EVIL: 3, f"mono-tp: {EVIL}": 1},
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
        "right answers are luck",
        "mono-tp",
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
    assert len(text.encode()) < 504 * 3300  # three views of it, each for two widths of screen


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


def marked_records() -> list[PointRecord]:
    status = Status("invalid", "errors", MARKUP)
    return [
        replace(record, status=status, point=replace(record.point, entry=MARKUP, name=MARKUP))
        for record in sample_records()
    ]


def test_markdown_from_outside_is_plain_text() -> None:
    records = marked_records()
    facts = replace(FACTS, run_id=MARKUP)
    text = markdown(build(records, sample_plan(records), facts))
    assert "(http://x)" in text
    for line in text.splitlines():
        outside = line.removeprefix("- ").removeprefix("### ").replace("| --- ", "").strip("|")
        outside = "".join(cell for cell in outside.split(" | "))
        assert re.findall(r"(?<!\\)[\[\]!*_`<>@|]", re.sub(r"\\\\", "", outside)) == []


def test_markdown_reads_back_as_it_was_written() -> None:
    records = marked_records()
    text = markdown(build(records, sample_plan(records), FACTS))
    plain = re.sub(r"\\([\\\[\]!*_`])", r"\1", text)
    read = html_module.unescape(plain).replace("\u200b", "")
    assert MARKUP in read


def test_markdown_shows_what_stands_behind_a_score_and_a_tail() -> None:
    text = markdown(build(harder_records(), empty_plan(), FACTS))
    assert "| Empty | Cut | Answer |" in text
    assert "| 2 | 40 | no-bar |" in text
    assert re.search(r"\| Point \| conc \| Requests \|", text)


def test_the_page_shows_empty_cut_and_prefix_hits() -> None:
    records = [*harder_records(), sample_records()[3]]
    text = html(build(records, sample_plan(records), FACTS))
    for words in ("Prefix hits", "31.0 %", "40 <small>at 256</small>", ">Empty<", ">Cut<"):
        assert words in text


def test_an_invalid_evaluation_stands_in_the_table_with_its_status() -> None:
    status = Status("invalid", "config-differs", "dtype is bf16")
    records = [replace(harder_records()[-1], status=status)]
    text = html(build(records, sample_plan(records), FACTS))
    assert "gsm_mini: not judged" in text
    assert "at or above" not in text
    assert "invalid:config-differs" in markdown(build(records, sample_plan(records), FACTS))


def test_boxes_that_scroll_are_reached_by_keyboard_and_named() -> None:
    boxes = [a for _, a in Elements(page()).tags if a.get("class") == "scroll"]
    assert len(boxes) == 3
    assert all(a.get("tabindex") == "0" and a.get("role") == "region" for a in boxes)
    assert len({a.get("aria-label") for a in boxes}) == 3
    tables = [tag for tag, _ in Elements(page()).tags if tag in ("table", "caption")]
    assert tables.count("table") == tables.count("caption")


def test_colours_stand_in_one_table() -> None:
    folder = Path(report.__file__).parent
    files = [p for p in folder.rglob("*") if p.suffix in (".py", ".css", ".j2", ".js")]
    colour = re.compile(r"#[0-9a-fA-F]{6}\b")
    assert [p.name for p in files if colour.search(p.read_text())] == ["palette.py"]
    text = page()
    assert all(f"--{name}: {value};" in text for name, value in {**LIGHT, **DARK}.items())


def test_what_mono_served_stands_in_the_details() -> None:
    records = mono_records()
    text = " ".join(html_module.unescape(html(build(records, sample_plan(records), FACTS))).split())
    assert "mono served 98.2 % of its eligible steps, 91.0 % of all decode steps" in text
    assert "mono: no decode step was eligible" in text
    assert '61 steps not: <span class="code">mono-prefill</span> prompt rows in the step' in text
    widths = text.index('340 steps not: <span class="code">mono-width-not-built')
    assert widths < text.index('61 steps not: <span class="code">mono-prefill', widths)
    assert text.count("of all decode steps</span>") == 3  # of the four points that claim it
    silent = [replace(record, counters=None) for record in records[:2]]
    text = html(build(silent, sample_plan(records), FACTS))
    assert text.count("mono: the engine does not tell what it served") == 1


def test_curves_with_and_without_mono_are_named_on_the_page_and_in_markdown() -> None:
    records = mono_records()
    model = build(records, sample_plan(records), FACTS)
    text = html(model)
    for value in ("off", "on"):
        label = f"minimaxm3-mini-cpu-infx (mono {value})"
        assert text.count(f'<tr class="group s{("off", "on").index(value)}">') == 1
        assert text.count(label) >= 5  # legend, group of the table, and the label in each chart
        assert f"mono {value}" in markdown(model)
