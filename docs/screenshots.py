"""The screenshots of the guide, from synthetic runs that say so: ``python docs/screenshots.py``.

Needs Chromium and Playwright; run it again when the page changes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from infx.domain.plan import Plan  # noqa: E402
from infx.domain.record import PointRecord  # noqa: E402
from infx.report.build import build_runs  # noqa: E402
from infx.report.html import write_html  # noqa: E402
from infx.report.model import ReportModel, RunData, RunFacts  # noqa: E402
from tests.report.chromium import browser, tab  # noqa: E402
from tests.report.many_points import many_plan, many_points, many_records  # noqa: E402
from tests.report.sample_runs import sample_plan, sample_records  # noqa: E402

STARTED_S = 1_796_030_000.0
SCREEN = {"width": 1280, "height": 860}


def main() -> None:
    """Write a PNG a report beside this file."""
    reports = {"report": small(), "report-baseline": with_baseline(), "report-500": large()}
    with TemporaryDirectory() as folder, browser() as chromium:
        for name, model in reports.items():
            path = Path(folder) / f"{name}.html"
            write_html(model, path)
            with tab(chromium, path, viewport=SCREEN) as page:
                page.screenshot(path=DOCS / f"{name}.png")


def small() -> ReportModel:
    """Return two entries on a laptop, with an invalid and a failed point and two evaluations."""
    records = sample_records()
    return build_runs([_run("synthetic-quickstart", records, sample_plan(records))])


def with_baseline() -> ReportModel:
    """Return forty points, each measured three times, beside a slower baseline."""
    points = [p for p in many_points(320) if p.arm.axes.tp == 8 and p.conc <= 16]
    plan = many_plan(points, repeats=3)
    now = many_records(points, run_id="synthetic-now", repeats=3, gain=1.05)
    before = many_records(points, run_id="synthetic-before", repeats=3)
    return build_runs(
        [_run("synthetic-now", now, plan)], baseline=[_run("synthetic-before", before, plan)]
    )


def large() -> ReportModel:
    """Return five hundred points on four lines."""
    points = many_points(500)
    return build_runs([_run("synthetic-500", many_records(points), many_plan(points))])


def _run(run_id: str, records: Sequence[PointRecord], plan: Plan) -> RunData:
    facts = RunFacts(
        run_id=run_id, command="python docs/screenshots.py", started_s=STARTED_S,
        ended_s=STARTED_S + 1140, infx_version="0.1.0",
    )  # fmt: skip
    attempted = [replace(r, attempt=replace(r.attempt, run_id=run_id)) for r in records]
    return RunData(facts=facts, plan=plan, records=tuple(attempted))


if __name__ == "__main__":
    main()
