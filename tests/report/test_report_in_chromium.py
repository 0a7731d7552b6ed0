"""The page in a real browser: what answers to pointer and keys, and what the address keeps."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infx.analysis.metrics import METRICS
from infx.report.build import build
from infx.report.html import write_html
from infx.report.model import PointRow, ReportModel
from infx.report.placing import axis_of
from tests.report.chromium import Tab, browser
from tests.report.sample_runs import EVIL, FACTS, evil_records, sample_plan

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.slow

MARKS = "#plot a.mark"
ROWS = "table.points tr[data-i]"
PLACES = """() => Object.fromEntries(
  [...document.querySelectorAll('#plot a.mark:not([hidden])')].map(mark => [mark.dataset.i,
    ['x', 'y'].map(name => mark.firstElementChild.getAttribute(name))]))"""


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with browser() as chromium:
        yield Tab(chromium, permissions=["clipboard-read", "clipboard-write"])


@pytest.fixture
def page(tab: Tab, report: Path) -> Iterator[Page]:
    with tab.showing(report) as found:
        yield found


def shown(page: Page, what: str) -> list[int]:
    """Numbers of the rows whose marks, or rows, are shown."""
    query = f"{what}:not([hidden])"
    return [int(n) for n in page.eval_on_selector_all(query, "all => all.map(e => e.dataset.i)")]


def places(model: ReportModel, x: str, y: str, *, log: str) -> dict[str, list[str]]:
    """Where Python says that each row stands."""
    rows = [*model.rows, *(model.baseline.rows if model.baseline else ())]
    across, up = axis_of(METRICS[x], rows), axis_of(METRICS[y], rows, up=True)
    xs = (across.log if "x" in log and across.log else across.linear).at
    ys = (up.log if "y" in log and up.log else up.linear).at
    return {
        str(n): [f"{a / 100:g}%", f"{b / 100:g}%"]
        for n, (a, b) in enumerate(zip(xs[: len(model.rows)], ys, strict=False))
        if a is not None and b is not None
    }


def drawn(page: Page) -> dict[str, list[str]]:
    found: dict[str, list[str]] = page.evaluate(PLACES)
    return {n: [f"{float(v.rstrip('%')):g}%" for v in place] for n, place in found.items()}


def chip(page: Page, group: str, name: str) -> Locator:
    return page.get_by_role("group", name=group, exact=True).get_by_role("button", name=name)


def move_to(page: Page, row: PointRow) -> None:
    """Put the pointer where a point is drawn."""
    mark = page.locator(f"{MARKS}[href='#row-{row.anchor}'] > svg")
    box = page.locator("#plot").evaluate("e => e.getBoundingClientRect().toJSON()")
    across, up = (float(str(mark.get_attribute(name)).rstrip("%")) / 100 for name in "xy")
    page.mouse.move(
        box["x"] + across * box["width"] + 0.4, box["y"] + up * box["height"] + 0.4
    )  # fmt: skip


def valid(model: ReportModel) -> list[PointRow]:
    return [row for row in model.rows if row.valid]


def number_of(model: ReportModel, row: PointRow) -> int:
    return [r.anchor for r in model.rows].index(row.anchor)


def test_hovering_a_mark_shows_its_card_and_lights_its_row(page: Page, model: ReportModel) -> None:
    row = next(row for row in valid(model) if row.runs == 2 and row.on_frontier)
    move_to(page, row)
    assert page.locator("#card").is_visible()
    text = page.locator("#card").inner_text()
    for words in (
        row.name,
        row.series.label,
        "tok/s/GPU",
        "tok/s/user",
        "on the frontier",
        "2 runs",
    ):
        assert words in text
    assert row.chance is not None
    assert "with a chance of" in text
    assert page.locator(f"#row-{row.anchor}.on").count() == 1
    page.mouse.move(5, 5)
    assert page.locator("#card").is_hidden()
    assert page.locator(f"{ROWS}.on").count() == 0


def test_hovering_a_row_lights_its_mark(page: Page, model: ReportModel) -> None:
    page.locator(f"#row-{model.rows[5].anchor}").hover()
    assert page.locator(f"{MARKS}.on").evaluate("a => a.dataset.i") == "5"


def test_the_card_tells_what_is_wrong_and_what_is_reused(page: Page, model: ReportModel) -> None:
    for row, words in (
        (next(row for row in model.rows if row.plotted and not row.valid), "acceptance-off"),
        (model.rows[3], "reused from 20261129-1740-before"),
    ):
        page.locator(f"{MARKS}[href='#row-{row.anchor}']").focus()
        assert words in page.locator("#card").inner_text()


def test_the_chart_is_one_stop_and_arrows_lead_through_it(page: Page, model: ReportModel) -> None:
    page.get_by_role("button", name="baseline").focus()
    page.keyboard.press("Tab")
    first = page.evaluate("document.activeElement.dataset.i")
    assert page.locator("#card").is_visible()
    page.keyboard.press("ArrowRight")
    second = page.evaluate("document.activeElement.dataset.i")
    page.keyboard.press("ArrowDown")
    third = page.evaluate("document.activeElement.dataset.i")
    lines = [model.rows[int(n)].series.number for n in (first, second, third)]
    assert first != second
    assert lines[0] == lines[1] != lines[2]
    page.keyboard.press("Escape")
    assert page.locator("#card").is_hidden()
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.name") == "baseline"


def test_enter_opens_a_point_and_leads_to_its_row(page: Page, model: ReportModel) -> None:
    row = model.rows[2]
    page.locator(f"{MARKS}[href='#row-{row.anchor}']").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('tr').id") == f"row-{row.anchor}"
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
    assert page.evaluate("location.hash") == f"#point={row.anchor}"
    assert page.get_by_role("article").get_attribute("aria-label") == f"Point {row.name}"
    page.keyboard.press("Enter")
    assert page.get_by_role("article").count() == 0
    assert page.evaluate("location.hash") == ""


def test_an_opened_point_shows_the_exact_commands(page: Page, model: ReportModel) -> None:
    for number in (1, 30):
        row = model.rows[number]
        page.locator(f"#row-{row.anchor} > td").nth(2).click()
        article = page.get_by_role("article")
        server, client, env = article.locator("pre").all_inner_texts()
        made = row.record.provenance
        assert shlex.split(server.replace("\\\n", "")) == list(made.server_argv)
        assert shlex.split(client.replace("\\\n", "")) == list(made.client_argv)
        assert dict(line.split("=", 1) for line in env.splitlines()) == dict(made.env)
        text = article.inner_text()
        folder = row.record.artifacts["aiperf"].rpartition("/")[0]
        for words in (row.repro, folder, "infx 0.1.0", "revision c16d28d", "P90 TTFT, ms"):
            assert words in text
        assert page.get_by_role("article").count() == 1


def test_the_command_that_measures_again_is_copied(
    tab: Tab, report: Path, model: ReportModel
) -> None:
    row = model.rows[2]
    with tab.showing(report, f"#point={row.anchor}") as page:
        button = page.get_by_role("button", name="Copy the command that measures it again")
        button.click()
        page.get_by_role("article").get_by_text("copied", exact=True).wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == row.repro
        assert "Copied" in page.get_by_role("status").inner_text()


def test_without_a_clipboard_the_command_is_copied_all_the_same(
    tab: Tab, report: Path, model: ReportModel
) -> None:
    with tab.showing(report, f"#point={model.rows[2].anchor}") as page:
        page.evaluate(
            """() => {
              Object.defineProperty(navigator, 'clipboard', { value: undefined });
              addEventListener('copy', () => { window.got = String(getSelection()); });
            }"""
        )
        page.get_by_role("button", name="Copy the command that measures it again").click()
        assert page.evaluate("window.got") == model.rows[2].repro


def test_filters_narrow_chart_and_table(page: Page, model: ReportModel) -> None:
    rows = list(enumerate(model.rows))
    chip(page, "TP", "8").click()
    eight = [n for n, row in rows if row.record.point.arm.axes.tp == 8]
    assert sorted(shown(page, ROWS)) == eight
    assert sorted(shown(page, MARKS)) == [n for n in eight if model.rows[n].plotted]
    chip(page, "mono", "on").click()
    both = [n for n in eight if model.rows[n].record.point.arm.axes.mono == "on"]
    assert sorted(shown(page, ROWS)) == both
    assert page.get_by_role("status").inner_text() == f"{len(both)} of 32 points are shown."
    assert page.evaluate("location.hash") == "#tp=8&mono=on"
    assert page.locator("tr.group:not([hidden])").count() == 2
    chip(page, "TP", "8").click()
    chip(page, "mono", "on").click()
    assert len(shown(page, ROWS)) == 32
    assert page.evaluate("location.hash") == ""


FILTERS: dict[tuple[str, str], Callable[[PointRow], bool]] = {
    ("KV dtype", "fp8"): lambda row: row.record.point.arm.axes.kv_cache_dtype == "fp8",
    ("image", "vllm"): lambda row: row.record.point.arm.framework == "vllm",
    ("verdict", "invalid"): lambda row: not row.valid,
    ("entry", "mi355x"): lambda row: "mi355x" in row.series.entry,
    ("Lines", "h200-vllm (mono on)"): lambda row: row.series.label.endswith("vllm (mono on)"),
}


def test_every_filter_shows_its_points(page: Page, model: ReportModel) -> None:
    for (group, name), of in FILTERS.items():
        chip(page, group, name).click()
        assert sorted(shown(page, ROWS)) == [n for n, row in enumerate(model.rows) if of(row)]
        assert chip(page, group, name).get_attribute("aria-pressed") == "true"
        chip(page, group, name).click()


def test_the_frontier_goes_through_members_that_are_shown(page: Page, model: ReportModel) -> None:
    chip(page, "TP", "8").click()
    line = next(row.series.number for row in valid(model) if row.record.point.arm.axes.tp == 8)
    at = places(model, "e2e_interactivity_p90", "tput_tok_s_gpu", log="xy")
    members = [
        number_of(model, mark.row)
        for mark in model.charts[0].frontiers[line]
        if mark.row.record.point.arm.axes.tp == 8
    ]
    path = page.locator(f".lines path.frontier[data-line='{line}']").get_attribute("d") or ""
    corners = path.replace("M", " ").replace("V", " ").replace("H", " ").split()
    assert corners[0] == f"{float(at[str(members[0])][0][:-1]) * 100:g}"
    assert path.count("V") == path.count("H") == len(members) - 1


def test_another_metric_moves_the_marks_where_python_says(page: Page, model: ReportModel) -> None:
    rows = [*model.rows, *(model.baseline.rows if model.baseline else ())]
    for x, y in (("ttft_p90", "j_per_token"), ("e2el_p90", "output_tput_tok_s_gpu")):
        page.get_by_label("Up").select_option(y)
        page.get_by_label("across").select_option(x)
        log = "x" * axis_of(METRICS[x], rows).log_first + "y" * axis_of(METRICS[y], rows).log_first
        assert drawn(page) == places(model, x, y, log=log)
        assert f"{METRICS[x].title}, {METRICS[x].unit}" in page.locator(".across").inner_text()
        assert "less is better" in page.locator(".across").inner_text()
        assert page.evaluate("location.hash") == f"#x={x}&y={y}"
        chart = next(chart for chart in model.charts if chart.key == (x, y))
        on = {number_of(model, mark.row) for mark in chart.marks if mark.on_frontier}
        assert set(shown(page, f"{MARKS}.front")) == on
        assert (len(on) < sum(row.on_frontier for row in model.rows)) == (x == "ttft_p90")


def test_scales_switch_between_linear_and_logarithmic(page: Page, model: ReportModel) -> None:
    axes = ("e2e_interactivity_p90", "tput_tok_s_gpu")
    assert drawn(page) == places(model, *axes, log="xy")
    page.get_by_role("button", name="x", exact=True).click()
    assert drawn(page) == places(model, *axes, log="y")
    assert page.evaluate("location.hash") == "#log=y"
    page.get_by_role("button", name="y", exact=True).click()
    assert drawn(page) == places(model, *axes, log="")
    assert "log scale" not in page.locator("#caption").inner_text()
    rows = [*model.rows, *(model.baseline.rows if model.baseline else ())]
    ticks = [text for _, text in axis_of(METRICS[axes[1]], rows, up=True).linear.ticks]
    assert page.locator(".grid.y text").all_text_contents() == ticks


def test_the_baseline_can_be_hidden(page: Page, model: ReportModel) -> None:
    assert model.baseline
    ghosts = page.locator(".ghosts use:not([hidden])")
    assert ghosts.count() == sum(row.valid for row in model.baseline.rows)
    assert page.locator(".lines .before").count() == 4
    page.get_by_role("button", name="baseline").click()
    assert ghosts.count() == page.locator(".lines .before").count() == 0
    assert page.evaluate("location.hash") == "#baseline=off"


def test_the_table_sorts_over_all_lines_and_back(page: Page, model: ReportModel) -> None:
    before = shown(page, ROWS)
    head = page.get_by_role("columnheader", name="Through")
    least = sorted(
        (row.figures["tput_tok_s_gpu"].value, n) for n, row in enumerate(model.rows) if row.plotted
    )
    values = {n: float(f"{value:.3g}") if value < 1000 else round(value) for value, n in least}
    for order, sign in (("ascending", 1), ("descending", -1)):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == order
        told = [values[n] for n in shown(page, ROWS) if n in values]
        assert told == sorted(told, key=lambda value: sign * value)
        assert page.locator("tr.group:visible").count() == 0
    assert page.evaluate("location.hash") == "#sort=tput_tok_s_gpu:desc"
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert shown(page, ROWS) == before
    assert head.get_attribute("aria-sort") is None


def test_a_point_without_a_figure_is_last_whatever_the_order(tab: Tab, report: Path) -> None:
    for order in ("", ":desc"):
        with tab.showing(report, f"#sort=runs{order}") as page:
            cells = page.locator(f"{ROWS} td:nth-of-type(5)").all_inner_texts()
            found = [cell for cell in cells if cell != "–"]
            assert cells[: len(found)] == found


def test_a_change_told_as_a_factor_is_larger_than_one_in_percent(page: Page) -> None:
    told = ["×3,000", "+5.0 %", "×12.0", "+899.0 %", "-2.0 %"]
    page.evaluate(
        """told => {
          const heads = [...document.querySelectorAll(".points thead th")];
          const column = heads.findIndex(head => head.dataset.key === "change-tput_tok_s_gpu");
          document.querySelectorAll(".points tr[data-i]").forEach(
            (row, n) => { row.cells[column].textContent = told[n] || "–"; });
          heads[column].querySelector("button").click();
        }""",
        told,
    )
    key = page.locator(".points thead th").evaluate_all(
        "all => all.findIndex(head => head.dataset.key === 'change-tput_tok_s_gpu')"
    )
    rows = page.eval_on_selector_all(ROWS, f"all => all.map(row => row.cells[{key}].textContent)")
    assert rows[:5] == ["-2.0 %", "+5.0 %", "+899.0 %", "×12.0", "×3,000"]


def test_the_address_restores_what_was_chosen(tab: Tab, report: Path, model: ReportModel) -> None:
    row = next(row for row in model.rows if row.record.point.arm.axes.tp == 8)
    fragment = f"#x=ttft_p90&log=none&tp=8&sort=conc:desc&point={row.anchor}"
    with tab.showing(report, fragment) as page:
        assert page.get_by_label("across").input_value() == "ttft_p90"
        assert drawn(page).items() <= places(model, "ttft_p90", "tput_tok_s_gpu", log="").items()
        assert {model.rows[n].record.point.arm.axes.tp for n in shown(page, ROWS)} == {8}
        assert (
            page.get_by_role("columnheader", name="conc").get_attribute("aria-sort") == "descending"
        )
        assert page.get_by_role("article").is_visible()
        assert page.evaluate("location.hash") == fragment
        page.evaluate("location.hash = '#mono=on'")
        page.locator(".opened").wait_for(state="detached")
        assert {model.rows[n].record.point.arm.axes.mono for n in shown(page, ROWS)} == {"on"}
        page.get_by_role("button", name="reset").click()
        assert page.evaluate("location.hash") == ""
        assert len(shown(page, ROWS)) == 32


def test_an_address_that_makes_no_sense_changes_nothing(tab: Tab, report: Path) -> None:
    rubbish = "#x=nothing&tp=77,%zz&point=<b>&sort=%zz&log=q&=&&a=b=c&constructor=x&__proto__=y"
    with tab.showing(report, rubbish) as page:
        assert len(shown(page, ROWS)) == 32
        assert page.get_by_label("across").input_value() == "e2e_interactivity_p90"


def test_hostile_text_stays_text_wherever_the_script_puts_it(tab: Tab, tmp_path: Path) -> None:
    records = evil_records()
    path = tmp_path / "evil.html"
    write_html(build(records, sample_plan(records), replace(FACTS, run_id=EVIL)), path)
    with tab.showing(path) as page:
        page.locator(MARKS).first.focus()
        assert "<img" in page.locator("#card").inner_text()
        page.get_by_role("button", name="conc").click()
        page.locator(f"{ROWS} > th > a").first.click()
        assert "<img" in page.get_by_role("article").inner_text()
        made = "document.querySelectorAll('img, [onerror]').length + document.scripts.length"
        assert page.evaluate(made) == 2


def test_a_link_to_a_server_opens_its_details(page: Page, model: ReportModel) -> None:
    page.locator(f"#row-{model.rows[0].anchor} > th > a").click()
    page.get_by_role("link", name="all servers of this entry").click()
    page.locator("details.arm:target[open]").wait_for()
