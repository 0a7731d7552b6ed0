from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import infx.report.build as report
from infx.analysis.answers import ScoreChange
from infx.analysis.compare import ComparedScore
from infx.analysis.paired import pair
from infx.domain.codes import CODES
from infx.domain.findings import Finding
from infx.domain.record import PointRecord, Provenance
from infx.domain.status import Status
from infx.report.build import build
from infx.report.html import html
from infx.report.palette import DARK, LIGHT
from tests.report.browsed import browsed, many
from tests.report.many_points import ENTRIES
from tests.report.sample_runs import (
    EVIL,
    FACTS,
    evil_records,
    harder_records,
    mono_records,
    sample_plan,
    sample_records,
)


class Elements(HTMLParser):
    """Every start tag with its attributes, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@cache
def page() -> str:
    return page_of(sample_records())


def page_of(records: list[PointRecord]) -> str:
    return html(build(records, sample_plan(sample_records()), FACTS))


def data(text: str) -> dict[str, Any]:
    """What the page's script unpacks."""
    packed = re.findall(r'<script type="application/gzip" id="data">([^<]*)</script>', text)
    assert len(packed) == 1
    read: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed[0])))
    return read


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
    assert Counter(tag for tag, _ in Elements(text).tags)["script"] == plain["script"] == 2
    unpacked = data(text)
    assert any("alert(" in sentence for sentence in unpacked["texts"])
    assert "</script>" in json.dumps(unpacked)


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
    text = page_of([])
    assert "There is nothing to draw" in text
    assert "8 not run" in text
    assert 'id="plot"' not in text
    assert data(text)["rows"]["id"] == []


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


def test_boxes_that_scroll_are_reached_by_keyboard_and_named() -> None:
    boxes = [a for _, a in Elements(page()).tags if a.get("class") == "scroll"]
    assert len(boxes) == 5
    assert all(a.get("tabindex") == "0" and a.get("role") == "region" for a in boxes)
    assert len({a.get("aria-label") for a in boxes}) == 5
    tables = [tag for tag, _ in Elements(page()).tags if tag in ("table", "caption")]
    assert tables.count("table") == tables.count("caption")


def test_colours_stand_in_one_table() -> None:
    folder = Path(report.__file__).parent
    files = [p for p in folder.rglob("*") if p.suffix in (".py", ".css", ".j2", ".js")]
    colour = re.compile(r"#[0-9a-fA-F]{6}\b")
    assert [p.name for p in files if colour.search(p.read_text())] == ["palette.py"]
    text = page()
    assert all(f"--{name}: {value};" in text for name, value in {**LIGHT, **DARK}.items())


def test_what_mono_served_stands_in_an_opened_point() -> None:
    records = mono_records()
    read = data(html(build(records, sample_plan(records), FACTS)))
    said = [[read["texts"][n] for n in numbers] for numbers in read["points"]["said"]]
    assert said[0] == []  # mono off
    assert said[3] == [
        "mono served 98.2 % of its eligible steps, 91.0 % of all decode steps",
        "61 steps not by mono: mono-prefill (prompt rows in the step)",
        f"12 steps not by mono: mono-too-many-rows ({CODES['mono-too-many-rows'].meaning})",
    ]
    assert "mono: no decode step was eligible" in said[7]
    assert said[5][0].startswith("error mono-coverage: mono served 41.2 %")
    assert said[5][2].startswith("340 steps not by mono: mono-width-not-built")


def test_curves_with_and_without_mono_are_named_in_chart_legend_and_table() -> None:
    records = mono_records()
    text = html(build(records, sample_plan(records), FACTS))
    for value in ("off", "on"):
        label = f"minimaxm3-mini-cpu-infx (mono {value})"
        assert text.count(f'<tr class="group s{("off", "on").index(value)}">') == 1
        assert text.count(label) >= 3


def test_scripts_and_styles_are_allowed_by_their_hash_alone() -> None:
    text = page()
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert len(policy) == 1
    assert "unsafe" not in policy[0]
    for tag in ("style", "script"):
        inner = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert len(inner) == 1
        digest = base64.b64encode(hashlib.sha256(inner[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy[0]
    assert not [a for _, a in Elements(text).tags if "style" in a or "onclick" in a]
    assert "eval(" not in text


def test_what_arms_share_stands_once() -> None:
    text = html(many(200))
    assert text.count("--speculative-config") == 2  # one command an entry
    families = data(text)["families"]
    assert [len(family["columns"][0]) for family in families] == [10, 10]
    assert text.count("  --kv-cache-dtype <var>kv-cache-dtype</var>") == 2


def test_a_large_run_stays_small() -> None:
    text = html(many(200))
    assert len(text.encode()) < 200 * 1150 + 65_000  # the page itself, its style and script


def test_commands_of_other_lengths_stand_apart() -> None:
    records = sample_records()[3:6]
    longer = replace(
        records[1].provenance, server_argv=(*records[1].provenance.server_argv, "--verbose")
    )
    records[1] = replace(records[1], provenance=longer)
    text = html(build(records, sample_plan(records), FACTS))
    assert text.count('<details class="arm"') == 2
    read = data(text)
    assert [of[0] for of in read["points"]["of"]] == [0, 1, 0]


def test_a_record_without_commands_hides_none_that_another_tells() -> None:
    """A job that was lost leaves none; the point was measured at another time."""
    records = sample_records()[3:5]
    lost = Status("failed", "job-lost")
    bare = [replace(r, status=lost, measurement=None, provenance=Provenance()) for r in records]
    for some in ([*bare, *records], [*records, *bare]):
        read = data(html(build(some, sample_plan(records), FACTS)))
        assert [bool(family["server"]) for family in read["families"]] == [True]
        assert [len(client) > 0 for client in read["points"]["client"]] == [True, True]


def test_files_are_told_by_the_folder_that_they_share() -> None:
    read = data(html(many(2)))
    folder, *files = [read["texts"][n] for n in read["points"]["files"][0]]
    assert folder == f"jobs/{ENTRIES[0]}-{{name}}/a1/points/{ENTRIES[0]}-{{name}}-{{id}}/"
    assert files == ["aiperf", "metrics-after", "metrics-before", "power"]


def test_evaluations_are_compared_with_the_baselines() -> None:
    model = browsed()
    assert model.baseline
    before = {str(n): n < 60 for n in range(64)}
    verdict = pair(before, before | {"1": False, "63": True})
    change = ScoreChange(filter="strict-match", verdict=verdict, identical=0.875)
    score = ComparedScore(
        a="a",
        b="b",
        entry=ENTRIES[0],
        task="gsm_mini",
        run="now",
        differences=(),
        changes=(change,),
    )  # fmt: skip
    text = html(replace(model, baseline=replace(model.baseline, scores=(score,))))
    row = re.findall(r"<tr>.*?strict-match.*?</tr>", text)[-1]
    for words in ("0.938 → 0.938", "−1 +1 of 64", "87.5 %", verdict.change.replace("-", " ")):
        assert words in row


def test_what_the_baseline_does_not_share_is_listed_up_to_a_limit() -> None:
    model = browsed()
    assert model.baseline
    added = tuple(f"point-{n}" for n in range(100))
    text = html(replace(model, baseline=replace(model.baseline, added=added)))
    assert "100 points added" in text
    assert "point-59</li>" in text
    assert "point-60</li>" not in text
    assert "and 40 more" in text
