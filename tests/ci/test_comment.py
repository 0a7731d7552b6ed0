"""The comment of a pull request: what it says, that it fits, and that nothing in it is markup."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from infx.ci.comment import LIMIT, Told, comment, hidden_mark
from infx.ci.printed import PrintedPlan, PrintedReview, read_printed
from infx.domain.errors import ConfigError
from infx.report.build import build
from infx.report.markdown_parts import safe
from infx.report.model import ReportModel
from tests.report.many_points import many_plan, many_points, many_records
from tests.report.sample_runs import FACTS, sample_plan, sample_records

HEAD = "4b94f0960000000000000000000000000000beef"
MARK = hidden_mark("sweep")


def finding(sentence: str = "say which", level: str = "error", **more: Any) -> dict[str, Any]:
    given = {"code": "two-primaries", "level": level, "sentence": sentence}
    return given | {"where": None, "hint": "remove one"} | more


def plan(*found: dict[str, Any], many: int = 2, **data: Any) -> PrintedPlan:
    told = {
        "decision": "sweep",
        "reason": "full-sweep-fail-fast: 3 points in 2 jobs",
        "pull_request": 17,
        "head_sha": HEAD,
        "settings": {"primary": "full-sweep-fail-fast"},
        "canaries": [{"job_id": "0", "label": "mini-c1"}],
        "jobs": [
            {"job_id": str(n), "name": f"mini-{n}", "cluster": "lab", "points": ["a", "b"]}
            for n in range(many)
        ],
    }
    printed = {"schema": "infx.ci-plan/1", "ok": True, "data": told | data, "diagnostics": found}
    return read_printed(json.dumps(printed).encode(), PrintedPlan, "ci-plan.json")


def review(*verdicts: str, sentence: str = "because", text: str = "line 3") -> PrintedReview:
    checks = [
        {
            "number": number,
            "name": f"check of {number}",
            "verdict": verdict,
            "sentence": sentence,
            "evidence": [{"where": "pull-request.json", "text": text}] * 3,
        }
        for number, verdict in enumerate(verdicts)
    ]
    data = {"repository": "example/lab", "pull_request": 17, "head": HEAD, "note": ""}
    worst = next((v for v in ("FAIL", "WARN", "PASS") if v in verdicts), "N/A")
    told = data | {"verdict": worst, "checks": checks}
    printed = {"schema": "infx.review/1", "ok": True, "data": told, "diagnostics": []}
    return read_printed(json.dumps(printed).encode(), PrintedReview, "review.json")


def failed(kind: type[Any], *found: dict[str, Any]) -> Any:
    printed = {"schema": "infx.error/1", "ok": False, "data": None, "diagnostics": found}
    return read_printed(json.dumps(printed).encode(), kind, "x.json")


def small() -> ReportModel:
    records = sample_records()
    return build(records, sample_plan(records), FACTS)


def large() -> ReportModel:
    points = many_points(400)
    return build(many_records(points), many_plan(points), FACTS)


def test_a_comment_tells_checks_picture_plan_and_report() -> None:
    image = "https://github.com/example/lab/raw/4b94/report.png"
    links = {"workflow": "https://github.com/example/lab/actions/runs/7"}
    told = Told(
        head=HEAD,
        plan=plan(finding("no entry names it", "warning")),
        review=review("PASS", "WARN", "N/A", "PASS"),
        report=small(),
        image=image,
        links=links,
        notes=["Published."],
    )
    text = comment(MARK, told)
    assert text.startswith("<!-- infx ci comment: sweep -->\n\n**Published.**\n\n### WARN: ")
    order = [
        "the reviewer's checks (2 PASS, 1 WARN, 1 N/A)",
        "| 1 check of 1 | WARN | because |",
        "<details><summary>3 PASS or N/A",
        "### Plan: sweep: full-sweep-fail-fast: 3 points in 2 jobs",
        "- warning: two-primaries no entry names it (remove one)",
        "| canary | mini-0 | lab | 2 |",
        f"![The curves of the report](<{image}>)",
        "| Gate |",
        "At commit 4b94f0960000 · [workflow](<https://github.com/example/lab/actions/runs/7>)",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "Left out, to fit" not in text


def test_parts_that_are_not_there_leave_nothing_behind() -> None:
    text = comment(MARK, Told(head=HEAD, notes=["Only this."]))
    assert text == f"{MARK}\n\n**Only this.**\n\nAt commit 4b94f0960000"


def test_a_plan_or_review_that_ended_with_an_error_is_a_failure_with_what_to_do() -> None:
    two = finding("a and b each ask for a sweep")
    text = comment(MARK, Told(head=HEAD, plan=failed(PrintedPlan, two)))
    assert "### FAIL: what is asked for cannot be planned\n\n- error: two-primaries a and b" in text
    assert "(remove one)" in text
    text = comment(MARK, Told(head=HEAD, review=failed(PrintedReview, two)))
    assert "### FAIL: the reviewer's checks cannot be made" in text


def test_a_plan_that_cannot_be_followed_is_a_failure() -> None:
    asked = "an owner asks to reuse run 1"
    told = plan(finding("run 1 cannot stand"), decision="reuse", reason=asked, jobs=[])
    assert f"### FAIL: reuse: {asked}\n\n- error: " in comment(MARK, Told(head=HEAD, plan=told))


def test_a_shortened_sweep_says_that_it_is_not_valid() -> None:
    assert "not valid for submission" in comment(
        MARK, Told(head=HEAD, plan=plan(submission_valid=False))
    )
    assert "not valid" not in comment(MARK, Told(head=HEAD, plan=plan()))


def test_only_a_plan_that_nobody_asked_for_is_idle() -> None:
    nothing = {"decision": "nothing", "reason": "no label asks", "jobs": []}
    assert Told(head=HEAD, plan=plan(settings=None, **nothing)).idle
    assert not Told(head=HEAD, plan=plan(**nothing)).idle
    assert not Told(head=HEAD, plan=failed(PrintedPlan, finding())).idle
    assert not Told(head=HEAD, plan=plan(settings=None, **nothing), notes=["x"]).idle
    assert not Told(head=HEAD, review=review("PASS")).idle


def whole_tables(text: str) -> None:
    """Every table has the same number of cells in each row; every fold is closed."""
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.M):
        rows = block.strip().splitlines()
        assert {row.count("|") for row in rows} == {rows[0].count("|")}
        assert all(row.endswith("|") for row in rows)
    assert text.count("<details>") == text.count("</details>")


def test_what_is_too_long_is_cut_between_rows_and_says_so() -> None:
    checks = review(*["FAIL"] * 16, sentence="why " * 400, text="@x|" * 400)
    told = Told(head=HEAD, plan=plan(many=3000), review=checks, report=large())
    text = comment(MARK, told)
    assert LIMIT - 30_000 < len(text) <= LIMIT
    assert re.search(r"Left out, to fit into a comment: .*\d+ jobs", text)
    assert text.endswith("At commit 4b94f0960000")
    whole_tables(text)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=600)


@settings(max_examples=60, deadline=None)
@given(texts, texts, st.integers(0, 400), st.lists(st.sampled_from(["PASS", "FAIL", "N/A"])))
def test_any_texts_fit_and_break_no_table(
    sentence: str, name: str, jobs: int, verdicts: list[str]
) -> None:
    told = Told(
        head=HEAD,
        plan=plan(*[finding(sentence)] * 30, many=jobs, reason=name),
        review=review(*verdicts, sentence=sentence, text=name),
        notes=[name],
    )
    text = comment(MARK, told)
    assert len(text) <= LIMIT
    whole_tables(text)


EVIL = (
    *("@somebody", "<img src=x>", "![x](https://e.example)", "#12", "a | b", "<!-- infx -->"),
    *("`x`", "</details>", "**x**", "[x](y)", "https://e.example", "www.e.example", "&lt;", "$x$"),
    *("\\", "- x", "1. x", "> x", "# x", "~~x~~", "x_y_z", "```"),
)
LIKE_MARKUP = st.text("[]()<>!*_`~#@|&;\\-+=:/.$ a1\n", min_size=1, max_size=40)
OURS = re.compile(r"</?details>(<summary>[\w /]+:? ?[\w /]*</summary>)?")


def read(text: str) -> tuple[set[str], list[str]]:
    """The kinds of what a parser of Markdown finds in a text, and what readers see of it."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = parser.parse(text)
    within = [one for token in tokens for one in token.children or ()]
    for token in (*tokens, *within):
        if token.type in ("html_block", "html_inline"):
            assert OURS.fullmatch(token.content.strip()), token.content
    shown = [
        "".join(one.content for one in token.children).replace("\u200b", "")
        for token in tokens
        if token.children
    ]
    return {token.type for token in (*tokens, *within)}, shown


@pytest.mark.parametrize("evil", EVIL)
def test_texts_of_others_are_shown_not_read(evil: str) -> None:
    shown_not_read(evil)


@settings(max_examples=100, deadline=None)
@given(LIKE_MARKUP)
def test_nothing_that_looks_like_markup_is_read(evil: str) -> None:
    shown_not_read(evil)


def shown_not_read(evil: str) -> None:
    line = " ".join(f"seen {evil}".split())
    kinds, shown = read(whole(line))
    assert kinds == read(whole("seen x"))[0]
    assert sum(line in one for one in shown) == 8  # note, heading, finding, two checks, evidence
    assert not re.search(r"[@$]|#(?!\d+;)|://|www\.", safe(line))  # GitHub reads these too


def whole(line: str) -> str:
    told = Told(
        head=HEAD,
        notes=[line],
        plan=plan(finding(line), reason=line),
        review=review("WARN", "PASS", sentence=line, text=line),
    )
    return comment(MARK, told).removeprefix(MARK)


@pytest.mark.parametrize("name", ["", "Sweep", "a b", "x -->", "-x", "a" * 65, "ä"])
def test_a_mark_is_a_plain_name(name: str) -> None:
    with pytest.raises(ValueError, match="names no comment"):
        hidden_mark(name)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"schema": "infx.review/1", "data": null}',
        b'{"schema": "infx.error/1", "data": {"decision": "x", "reason": "", "pull_request": 1,'
        b' "settings": null}}',
        b'{"schema": "infx.ci-plan/1", "data": {"decision": 3}}',
    ],
)
def test_what_the_command_did_not_print_is_an_error(data: bytes) -> None:
    with pytest.raises(ConfigError, match="not what infx ci plan --json prints") as caught:
        read_printed(data, PrintedPlan, "ci-plan.json")
    assert caught.value.code == "not-printed"
