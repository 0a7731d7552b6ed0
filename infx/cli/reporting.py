"""The files that come out of a run: report.html, report.png, report.md, changelog-draft.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infx.domain.plan import Plan
    from infx.domain.record import PointRecord
    from infx.store import RunRow

__all__ = ["report_model", "write_reports"]


def report_model(run: RunRow, plan: Plan, records: Sequence[PointRecord]) -> Any:
    """Return the report of a run as data."""
    import infx
    from infx.report.build import build
    from infx.report.model import RunFacts

    facts = RunFacts(
        run_id=run.run_id,
        command=f"infx sweep {run.source}",
        started_s=run.created_s,
        ended_s=run.ended_s,
        infx_version=infx.__version__,
    )
    return build(records, plan, facts)


def write_reports(
    run: RunRow, plan: Plan, records: Sequence[PointRecord], folder: Path
) -> tuple[Any, list[Path]]:
    """Write all of them into ``folder``; return the model and the paths written.

    The PNG is left out where matplotlib is not installed: it is an optional part of infx.
    """
    from infx.changelog.draft import draft_entry
    from infx.report.html import write_html
    from infx.report.markdown import write_markdown
    from infx.report.png import write_png

    model = report_model(run, plan, records)
    html, png, markdown = (folder / f"report.{kind}" for kind in ("html", "png", "md"))
    write_html(model, html)
    write_markdown(model, markdown)
    draft = folder / "changelog-draft.yaml"
    draft.write_text(draft_entry(records, plan))
    try:
        write_png(model, png)
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        return model, [html, markdown, draft]
    return model, [html, png, markdown, draft]
