"""Recorded sessions in what people read: the page, the summary, the draft."""

from __future__ import annotations

import json
from dataclasses import replace

import yaml

from infx.changelog.draft import draft_entry
from infx.domain.point import Agentic
from infx.domain.record import PointRecord
from infx.report.build import build
from infx.report.html import html
from infx.report.markdown import markdown
from tests.report.sample_runs import FACTS, LLAMA, measurement, point, record, sample_plan
from tests.report.test_report_pages import data

LOAD = Agentic(trace="semianalysis_cc_traces_weka_062126")


def records(both: bool = False) -> list[PointRecord]:
    figures = replace(measurement(2, 50.0, 400.0), theoretical_prefix_hit_share=0.873)
    sessions = replace(point(LLAMA, 2, 4), workload=LOAD, point_id="5" * 64)
    told = [record(sessions, measurement=figures)]
    return [*told, record(point(LLAMA, 2, 4), measurement=figures)] if both else told


def test_the_page_and_the_summary_say_what_was_replayed() -> None:
    model = build(records(), sample_plan(records()), FACTS)
    page = html(model)
    assert LOAD.words in page
    assert "87.3 % of the input sent before" in json.dumps(data(page))
    words = LOAD.words.replace("_", "\\_")
    assert f"**{LLAMA}** ({words}) 1 of 1 measured" in markdown(model)


def test_sessions_and_fixed_lengths_of_an_entry_are_two_lines() -> None:
    made = records(both=True)
    model = build(made, sample_plan(made), FACTS)
    assert [one.label for one in model.series] == [
        f"{LLAMA} ({LOAD.words})",
        f"{LLAMA} (64 in, 32 out)",
    ]
    assert markdown(model).count("64 in, 32 out") >= 1


def test_the_draft_names_its_scenarios() -> None:
    def types(made: list[PointRecord]) -> list[str]:
        [entry] = yaml.safe_load(draft_entry(made, sample_plan(made)))
        return list(entry["scenario-type"])

    assert types(records()) == ["agentic-coding"]
    assert types(records(both=True)) == ["agentic-coding", "fixed-seq-len"]
