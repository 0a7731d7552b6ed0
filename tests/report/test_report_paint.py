"""How large a report of 500 points is, and how soon a real browser shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from infx.report.build import build_runs
from infx.report.html import html
from infx.report.model import RunData
from tests.report.browsed import many
from tests.report.chromium import Tab, browser
from tests.report.many_points import many_plan, many_points, many_records
from tests.report.sample_runs import FACTS

PAINT = "performance.getEntriesByName('first-contentful-paint').map(e => e.startTime)"


@pytest.mark.slow
def test_500_points_fit_800_kb_with_repeats_and_a_baseline_too() -> None:
    points = many_points(500)
    plan = many_plan(points, repeats=2)
    runs = [
        RunData(
            facts=replace(FACTS, run_id=run_id), plan=plan,
            records=tuple(many_records(points, run_id=run_id, repeats=2, gain=gain)),
        )
        for run_id, gain in (("before", 1.0), ("now", 1.05))
    ]  # fmt: skip
    assert len(html(build_runs(runs[1:], baseline=runs[:1])).encode()) < 800_000


@pytest.mark.slow
@pytest.mark.alone
def test_500_points_are_painted_within_a_second_and_fit_800_kb(tmp_path: Path) -> None:
    text, path, painted = html(many(500)), tmp_path / "report.html", []
    assert len(text.encode()) < 800_000
    path.write_text(text)
    with browser() as chromium:
        tab = Tab(chromium)
        for _ in range(3):  # the first one finds a browser that has read nothing yet
            with tab.showing(path) as page:
                assert page.locator("#plot a.mark").count() == 492
                painted += page.evaluate(PAINT)
    assert len(painted) == 3
    assert min(painted) < 1000, painted
