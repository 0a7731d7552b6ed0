"""The page without scripts, on paper, in the dark, on a telephone, to a screen reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from infx.report.build import build
from infx.report.html import write_html
from infx.report.model import DECIDING, ReportModel
from tests.report.chromium import browser, tab
from tests.report.sample_runs import FACTS, sample_plan, sample_records

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

SIZES = {"wide": (1280, 800), "narrow": (390, 844)}


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    records = sample_records()
    path = tmp_path_factory.mktemp("quickstart") / "report.html"
    write_html(build(records, sample_plan(records), FACTS), path)
    return path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


def sized(name: str) -> dict[str, Any]:
    width, height = SIZES[name]
    return {"viewport": {"width": width, "height": height}}


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_without_scripts_all_but_the_controls_is_there(
    chromium: Browser, report: Path, model: ReportModel
) -> None:
    with tab(chromium, report, java_script_enabled=False) as page:
        plotted = [row for row in model.rows if row.plotted]
        assert page.locator("#plot a.mark:visible").count() == len(plotted)
        assert page.locator("#plot a.mark title").count() == len(plotted)
        assert page.locator("table.points tr[data-i]:visible").count() == len(model.rows)
        for hidden in (".tools", ".filters", "#card", ".js", ".copy"):
            assert page.locator(f"{hidden}:visible").count() == 0
        for gate in model.gates:
            assert page.get_by_text(gate.sentence, exact=True).first.is_visible()
        assert page.get_by_text("100 excluded").first.is_visible()
        family = page.locator("details.arm").first
        family.locator("summary").first.click()
        assert "--tensor-parallel-size tp" in " ".join(family.inner_text().split())
        assert family.locator("tbody tr:visible").count() == 8


def test_a_report_without_a_chart_still_answers(chromium: Browser, tmp_path: Path) -> None:
    every = sample_records()
    for name, records in (("failed", every[7:8]), ("empty", [])):
        path = tmp_path / f"{name}.html"
        write_html(build(records, sample_plan(every), FACTS), path)
        with tab(chromium, path) as page:
            assert page.get_by_text("There is nothing to draw").is_visible()
            for link in page.locator("table.points tr[data-i] > th > a").all():
                link.click()
                assert "infx repro" in page.get_by_role("article").inner_text()


def test_a_mark_leads_to_its_row_without_scripts(chromium: Browser, report: Path) -> None:
    with tab(chromium, report, java_script_enabled=False) as page:
        page.locator("#plot a.mark").first.focus()
        page.keyboard.press("Enter")
        assert page.locator("tr:target").count() == 1


@pytest.mark.parametrize("size", SIZES)
def test_chart_and_text_fit_the_screen(chromium: Browser, report: Path, size: str) -> None:
    with tab(chromium, report, **sized(size)) as page:
        assert fits(page)
        texts = page.evaluate(DRAWN)
        assert len(texts) >= 18
        assert [text for text in texts if text["px"] < 11] == []
        assert [text for text in texts if text["out"]] == []
        box = page.locator("#plot").bounding_box()
        assert box
        assert box["width"] > SIZES[size][0] * 0.6
        assert box["height"] >= 300
        page.locator("table.points tr[data-i] > th > a").first.click()
        assert page.get_by_role("article").is_visible()
        assert fits(page)


def test_the_first_screen_of_a_laptop_holds_verdict_gates_and_chart(
    chromium: Browser, quickstart: Path
) -> None:
    with tab(chromium, quickstart) as page:
        for part in ("h1", "#gates", "figure"):
            box = page.locator(part).bounding_box()
            assert box
            assert box["y"] + box["height"] <= 800, part
        box = page.locator("#points .scroll")
        assert box.evaluate("e => e.scrollWidth <= e.clientWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(chromium: Browser, report: Path, scheme: str) -> None:
    with tab(chromium, report, color_scheme=scheme) as page:
        page.locator("table.points tr[data-i] > th > a").first.click()
        page.get_by_role("group", name="TP").get_by_role("button").first.click()
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert page.evaluate(CONTRAST) == []
        assert page.evaluate(STROKES) == []
        assert page.evaluate("getComputedStyle(document.body).colorScheme") is not None


def test_the_page_prints(chromium: Browser, report: Path) -> None:
    # A4 on its side, between the margins that the style sheet asks for.
    with tab(
        chromium, report, viewport={"width": 1047, "height": 718}, color_scheme="dark"
    ) as page:
        page.emulate_media(media="print")
        assert fits(page)
        for hidden in (".tools", ".filters", ".skip", ".copy"):
            assert page.locator(f"{hidden}:visible").count() == 0
        assert page.locator("#plot a.mark:visible").count() > 20
        assert (
            page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 251, 249)"
        )
        assert page.evaluate(CUT) == []
        boxes = page.locator(".scroll")
        styles = boxes.evaluate_all("all => all.map(e => getComputedStyle(e).overflowX)")
        assert set(styles) == {"visible"}
        assert page.locator("details.arm:not([open]) pre:visible").count() >= 4


def test_a_screen_reader_finds_its_way(chromium: Browser, report: Path, model: ReportModel) -> None:
    with tab(chromium, report) as page:
        assert page.get_by_role("heading", level=1).count() == 1
        names = ("Gates", "Frontier", "Since the baseline", "Points", "Accuracy", "Servers")
        for name in names:
            assert page.get_by_role("region", name=name, exact=True).count() == 1
        chart = page.get_by_role(
            "group", name="Throughput against P90 E2E-normalised interactivity"
        )
        assert chart.count() == 1
        row = next(row for row in model.rows if row.valid)
        assert chart.get_by_role("link", name=f"{row.name} · {row.series.label}").count() == 1
        table = page.get_by_role("table", name="Every throughput point")
        assert table.get_by_role("columnheader", name="TTFT").count() == 1
        assert table.get_by_role("rowheader", name=row.name).count() >= 1
        told = [row.baseline[key].verdict for row in model.rows for key in DECIDING if row.baseline]
        assert table.get_by_role("cell", name="% better").count() == told.count("better") > 0
        for control in ("Up", "across"):
            assert page.get_by_role("combobox", name=control).count() == 1
        assert (
            page.get_by_role("group", name="Logarithmic scales").get_by_role("button").count() == 2
        )
        assert page.evaluate(UNNAMED) == []


def test_kinds_and_lines_differ_by_more_than_colour(
    chromium: Browser, report: Path, model: ReportModel
) -> None:
    with tab(chromium, report) as page:
        styles = page.eval_on_selector_all(
            "#plot path.frontier", "all => all.map(p => getComputedStyle(p).strokeDasharray)"
        )
        assert len(set(styles)) == len(styles) == 4
        shapes = page.eval_on_selector_all(
            "#plot a.mark use:first-child",
            "all => [...new Set(all.map(u => u.getAttribute('href')))]",
        )
        assert len(shapes) == 4
        kinds = {
            kind: page.locator(f"#plot a.mark.{kind}").first.evaluate(KIND)
            for kind in ("one", "many", "invalid")
        }
        assert kinds == {"one": [False, 0], "many": [True, 0], "invalid": [False, 1]}
        grey = page.locator("#plot a.mark.reused").evaluate("a => getComputedStyle(a).stroke")
        assert grey == page.evaluate("getComputedStyle(document.querySelector('.hint')).color")


KIND = """mark => {
  const style = getComputedStyle(mark);
  return [style.fill === style.stroke, mark.querySelectorAll('.cross').length];
}"""

DRAWN = """[...document.querySelectorAll('#plot text')].map(e => {
  const box = e.getBoundingClientRect(), frame = e.closest('figure').getBoundingClientRect();
  return { text: e.textContent, px: parseFloat(getComputedStyle(e).fontSize), shown: box.width > 0,
    out: box.left < frame.left || box.right > frame.right || box.top < frame.top
      || box.bottom > frame.bottom };
}).filter(t => t.shown)"""

CUT = """[...document.querySelectorAll('body *')].filter(e => {
  const style = getComputedStyle(e);
  return ['auto', 'scroll', 'hidden'].includes(style.overflowX) && !e.closest('.hide, svg')
    && e.offsetParent && e.scrollWidth > e.clientWidth + 1 && style.position !== 'absolute';
}).map(e => e.className || e.tagName)"""

UNNAMED = """[...document.querySelectorAll('a, button, select, [tabindex="0"], table')]
  .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length))
  .map(e => e.outerHTML.slice(0, 80))"""

LIGHT = """const light = (css) => {
    const parts = css.match(/[\\d.]+/g).map(Number);
    if (parts[3] === 0) return null;
    const [r, g, b] = parts.slice(0, 3).map(v => v / 255)
      .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const found = light(getComputedStyle(e).backgroundColor);
      if (found !== null) return found;
    }
    return 1;
  };
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);"""

CONTRAST = f"""(() => {{
  {LIGHT}
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {{
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length) continue;
    if (e.closest('script, style, title, desc, option')) continue;
    const style = getComputedStyle(e);
    if (e.disabled || e.closest('[hidden]')) continue;
    const found = ratio(light(e.closest('svg') ? style.fill : style.color), behind(e));
    if (found < 4.5) bad.push([e.tagName, e.className.baseVal || e.className, found.toFixed(2)]);
  }}
  return bad;
}})()"""

STROKES = f"""(() => {{
  {LIGHT}
  const paper = behind(document.getElementById('plot'));
  return [...document.querySelectorAll('#plot a.mark, #plot path.frontier')]
    .map(e => [e.getAttribute('class'), ratio(light(getComputedStyle(e).stroke), paper).toFixed(2)])
    .filter(([, found]) => found < 3);
}})()"""
