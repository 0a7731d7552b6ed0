"""The files that come out of a run: report.html, report.png, report.md, changelog-draft.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infx.domain.hardware import Price
    from infx.domain.plan import Plan
    from infx.domain.record import PointRecord
    from infx.report.model import ReportModel, RunData, RunFacts
    from infx.store import RunRow, Store

__all__ = ["report_of", "run_data", "stored_run", "write_reports"]


def run_data(run: RunRow, plan: Plan, records: Sequence[PointRecord]) -> RunData:
    """Return a run that reuses nothing as a report takes it."""
    from infx.report.model import RunData

    return RunData(facts=_facts(run), plan=plan, records=tuple(records), folder=Path(run.folder))


def stored_run(store: Store, run: RunRow) -> RunData:
    """Return a run as its folder and the store tell it, with what it reuses of others.

    Raises ConfigError or UsageError where the folder is gone or one of its files cannot be read.
    """
    from infx.cli.reusing import homes, with_reused
    from infx.report.model import RunData
    from infx.store import read_run

    folder = Path(run.folder)
    plan = read_run(folder)[1]
    records = with_reused(store, folder, plan, store.records(run.run_id))
    return RunData(
        facts=_facts(run),
        plan=plan,
        records=tuple(records),
        folder=folder,
        origins=homes(store, plan),
    )


def _facts(run: RunRow) -> RunFacts:
    import infx
    from infx.report.model import RunFacts

    return RunFacts(
        run_id=run.run_id,
        command=run.command,
        started_s=run.created_s,
        ended_s=run.ended_s,
        infx_version=infx.__version__,
    )


def report_of(runs: Sequence[RunData], baseline: Sequence[RunData] = ()) -> ReportModel:
    """Return the report as data, with the prices of the working folder's project.

    Raises UsageError where numpy is missing, which intervals are drawn with.
    """
    from infx.cli.boundary import needing
    from infx.report.build import build_runs

    with needing("numpy", "a baseline", "bench"):
        return build_runs(runs, baseline, _prices())


def _prices() -> dict[str, Price]:
    from infx.cli.options import project
    from infx.config.hardware import read_hardware

    known = read_hardware(project())
    return {name: hardware.price for name, hardware in known.items() if hardware.price}


def write_reports(run: RunData) -> tuple[ReportModel, list[Path]]:
    """Write all of them into the run's folder; return the model and the paths written.

    The PNG is left out where matplotlib is not installed: it is an optional part of infx.
    """
    from infx.changelog.draft import draft_entry
    from infx.report.html import write_html
    from infx.report.markdown import write_markdown
    from infx.report.png import write_png

    model = report_of([run])
    html, png, markdown = (run.folder / f"report.{kind}" for kind in ("html", "png", "md"))
    write_html(model, html)
    write_markdown(model, markdown)
    draft = run.folder / "changelog-draft.yaml"
    draft.write_text(draft_entry(run.records, run.plan, run=run.facts.run_id))
    try:
        write_png(model, png)
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        return model, [html, markdown, draft]
    return model, [html, png, markdown, draft]
