"""The page in a real browser: switches, sorts, answers to keys, and works without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from infx.domain.record import PointRecord
from infx.report.build import build
from infx.report.html import write_html
from tests.report.chromium import Page, page
from tests.report.sample_runs import FACTS, mono_records, sample_plan, sample_records

pytestmark = pytest.mark.slow

SHOWN = "[...document.querySelectorAll('.view')].filter(v => v.offsetParent).map(v => v.id)"
ROWS = "document.querySelectorAll('.sortable tbody tr[data-point]')"
CONCS = f"[...{ROWS}].map(r => [r.parentElement.rows[0].textContent, r.cells[2].dataset.v])"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    records = sample_records()
    write_html(build(records, sample_plan(records), FACTS), path)
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with page(tmp_path_factory.mktemp("chromium")) as tab:
        yield tab


@pytest.fixture
def tab(browser: Page, report: Path) -> Page:
    browser.scripts(disabled=False)
    browser.complaints.clear()
    browser.requested.clear()
    browser.open(report)
    return browser


def test_loads_without_complaint_or_network(tab: Page) -> None:
    assert tab.complaints == []
    assert {url.split(":")[0] for url in tab.requested} <= {"file", "about", "data"}
    assert tab.run("document.documentElement.scrollWidth <= innerWidth")


def test_the_deciding_view_comes_first_and_the_others_on_demand(tab: Page, report: Path) -> None:
    assert tab.run(SHOWN) == ["view-e2e-interactivity"]
    tab.run("document.querySelectorAll('[role=tab]')[2].click()")
    assert tab.run(SHOWN) == ["view-e2el"]
    assert tab.run("location.hash") == "#axis=e2el"
    tab.open(report, "#axis=interactivity")
    assert tab.run(SHOWN) == ["view-interactivity"]


def test_tabs_answer_to_arrow_keys(tab: Page) -> None:
    tab.run("document.querySelector('[role=tab]').focus()")
    tab.press("ArrowRight")
    assert tab.run(SHOWN) == ["view-interactivity"]
    assert tab.run("document.activeElement.getAttribute('aria-selected')") == "true"


def test_the_table_sorts_both_ways(tab: Page) -> None:
    before = tab.run(CONCS)
    head = "document.querySelectorAll('.sortable th button')[2]"
    tab.run(f"{head}.click()")
    groups = list(dict.fromkeys(group for group, _ in before))
    assert len(groups) == 2

    def ordered(sign: int) -> list[list[str]]:
        return sorted(before, key=lambda row: (groups.index(row[0]), sign * int(row[1])))

    assert tab.run(CONCS) == ordered(1)
    tab.run(f"{head}.focus()")
    tab.press("Enter")
    assert tab.run(CONCS) == ordered(-1)
    assert tab.run(f"{head}.parentElement.getAttribute('aria-sort')") == "descending"


def test_a_mark_shows_its_card_and_lights_its_row(tab: Page) -> None:
    tab.hover("#view-e2e-interactivity a.mark.one")
    assert tab.run("document.getElementById('card').hidden") is False
    assert "tok/s/GPU" in tab.run("document.getElementById('card').textContent")
    assert tab.run("document.querySelectorAll('tr.on').length") == 1


def test_marks_are_reached_by_keyboard_and_lead_to_their_row(tab: Page) -> None:
    tab.run("document.querySelector('[role=tab][aria-selected=true]').focus()")
    for _ in range(2):
        tab.press("Tab")
    assert tab.run("document.activeElement.classList.contains('mark')")
    assert tab.run("document.getElementById('card').hidden") is False
    tab.press("Enter")
    assert tab.run("document.querySelector('tr:target') !== null")


def test_an_arm_opens_from_its_row(tab: Page) -> None:
    tab.run("document.querySelector('.sortable tbody th a').click()")
    assert tab.run("document.querySelector('details.arm:target').id").startswith("arm-")
    tab.run("0")  # a turn of the event loop, for hashchange
    assert tab.run("document.querySelector('details.arm:target').open")


def test_without_scripts_everything_is_shown(browser: Page, report: Path) -> None:
    browser.scripts(disabled=True)
    browser.open(report)
    assert len(browser.run(SHOWN)) == 3
    assert browser.run("document.querySelector('.tabs').hidden")
    assert browser.run("document.querySelectorAll('.view title').length") > 20
    browser.scripts(disabled=False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(tab: Page, report: Path, scheme: str) -> None:
    tab.dark(scheme)
    tab.open(report)
    assert tab.run(CONTRAST) == []


def test_the_points_fit_a_laptop(tab: Page, tmp_path: Path) -> None:
    records = [busy(record) for record in sample_records()]
    write_html(build(records, sample_plan(records), FACTS), tmp_path / "busy.html")
    with sized(tab, 1280):
        tab.open(tmp_path / "busy.html")
        box = "document.querySelector('#points .scroll')"
        assert tab.run(f"[{box}.scrollWidth, {box}.clientWidth]") == [1230, 1230]


def busy(record: PointRecord) -> PointRecord:
    """The figures of a large machine: five digits, a long capture list, a long name."""
    axes = replace(
        record.point.arm.axes, max_num_seqs=512, capture_sizes=(1, 2, 4, *range(8, 513, 8))
    )
    point = replace(
        record.point, name=f"{record.point.entry}-c512-tp8-mono-off-mns512", conc=512,
        arm=replace(record.point.arm, axes=axes),
    )  # fmt: skip
    seen = record.measurement
    if not seen:
        return replace(record, point=point)
    wide = replace(
        seen, tput_tok_s_gpu=12345.6, output_tput_tok_s_gpu=11234.5,
        requests=replace(seen.requests, ok=5120, errors=12),
        ttft_ms=replace(seen.ttft_ms, p90=12345.6, p50=11234.5),
    )  # fmt: skip
    return replace(record, point=point, measurement=wide)


@contextmanager
def sized(tab: Page, width: int) -> Iterator[None]:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    tab.call("Emulation.setDeviceMetricsOverride", **size)
    yield
    tab.call("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("width", [1280, 500])
def test_the_chart_can_be_read(tab: Page, report: Path, width: int) -> None:
    with sized(tab, width):
        tab.open(report)
        assert tab.run("document.documentElement.scrollWidth <= innerWidth")
        texts = tab.run(DRAWN)
        assert len(texts) > 20
        assert [t for t in texts if t["px"] < 10] == []
        assert [t for t in texts if t["out"]] == []


def test_a_mark_of_the_small_chart_shows_its_card_too(tab: Page, report: Path) -> None:
    with sized(tab, 500):
        tab.open(report)
        tab.run("document.querySelector('#view-e2e-interactivity svg.narrow a.mark').focus()")
        assert "tok/s/GPU" in tab.run("document.getElementById('card').textContent")
        assert "tok/s/GPU" in tab.run("document.activeElement.getAttribute('aria-label')")


def test_print_shows_every_view_and_no_scroll_box(tab: Page, report: Path) -> None:
    with sized(tab, 1047):  # A4 on its side, between the margins that the style sheet asks for
        tab.call("Emulation.setEmulatedMedia", media="print")
        tab.open(report)
        assert len(tab.run(SHOWN)) == 3
        shown = "[...document.querySelectorAll('.view svg')].filter(e => e.clientWidth)"
        assert tab.run(f"{shown}.map(e => e.getAttribute('class'))") == ["wide"] * 3
        assert tab.run("document.documentElement.scrollWidth <= innerWidth")
        tab.call("Emulation.setEmulatedMedia", media="")


DRAWN = """[...document.querySelectorAll('.view svg text')].map(e => {
  const box = e.getBoundingClientRect(), frame = e.ownerSVGElement.getBoundingClientRect();
  const scale = frame.width / e.ownerSVGElement.viewBox.baseVal.width;
  return { text: e.textContent, px: parseFloat(getComputedStyle(e).fontSize) * scale,
    shown: box.width > 0, out: box.left < frame.left - 1 || box.right > frame.right + 1 ||
      box.top < frame.top - 1 || box.bottom > frame.bottom + 1 };
}).filter(t => t.shown)"""

CONTRAST = """(() => {
  const light = (css) => {
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
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.offsetParent && !e.closest('svg') || e.closest('script, style')) continue;
    const style = getComputedStyle(e);
    const ink = light(e.closest('svg') ? style.fill : style.color), paper = behind(e);
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (ratio < 4.5) bad.push([e.tagName, e.className.baseVal || e.className, ratio.toFixed(2)]);
  }
  return bad;
})()"""


def test_mono_off_and_on_are_drawn_apart(browser: Page, tmp_path: Path) -> None:
    """Two lines of two colours, each named in the legend and at its line."""
    records, path = mono_records(), tmp_path / "report.html"
    write_html(build(records, sample_plan(records), FACTS), path)
    browser.scripts(disabled=False)
    browser.open(path)
    shown = "#view-e2e-interactivity svg.wide"
    lines = f"[...document.querySelectorAll('{shown} path.frontier')]"
    assert browser.run(f"{lines}.length") == 2
    assert browser.run(f"new Set({lines}.map(p => getComputedStyle(p).stroke)).size") == 2
    labels = f"[...document.querySelectorAll('{shown} text.label')].map(t => t.textContent)"
    legend = "[...document.querySelectorAll('.legend > span:not(.key)')].map(s => s.textContent)"
    for names in (labels, legend):
        told = browser.run(names)
        assert [("mono off" in name, "mono on" in name) for name in told] == [
            (True, False),
            (False, True),
        ]
    browser.run("document.querySelectorAll('details.arm').forEach(d => d.open = true)")
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
