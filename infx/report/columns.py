"""The columns of the table of points: what stands in each cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from infx.analysis.changes import Change
from infx.analysis.metrics import NORTH_STAR, THROUGHPUT
from infx.report.figures import blank, count, figure, percent, signed, spread
from infx.report.model import DECIDING, PointRow

__all__ = ["Column", "columns_of", "origin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: ``inner`` returns the HTML inside a row's cell ("": a dash)."""

    key: str
    title: str
    inner: Callable[[PointRow], str]
    unit: str = ""
    text: bool = False

    def cell(self, row: PointRow) -> Markup:
        """Return the cell of ``row``; HTML needs no end tags here, a tenth of a large table."""
        tag = 'th scope="row"' if self.key == "point" else "td"
        style = ' class="text"' if self.text and self.key != "point" else ""
        return Markup(f"<{tag}{style}>{self.inner(row) or blank}")


def columns_of(
    rows: Sequence[PointRow], homes: Mapping[str, str], pages: Mapping[str, str]
) -> list[Column]:
    """Return the columns in which a row says something; ``homes`` maps an arm to where the page
    tells its command."""
    every = [*_identity(homes, pages), *_figures(), *_counters()]
    return [column for column in every if any(column.inner(row) for row in rows)]


def _identity(homes: Mapping[str, str], pages: Mapping[str, str]) -> list[Column]:
    return [
        Column(key="point", title="Point", text=True, inner=lambda row: _point(row, homes, pages)),
        Column(key="status", title="Status", text=True, inner=_status),
        Column(key="conc", title="conc", inner=_conc),
        Column(key="max-num-seqs", title="mns", inner=_max_num_seqs),
        Column(key="requests", title="Requests", unit="ok", inner=_requests),
        Column(key="runs", title="Runs", inner=lambda row: str(row.runs) if row.runs > 1 else ""),
        Column(key="chance", title="On the frontier", unit="chance", inner=_chance),
    ]


def _figures() -> list[Column]:
    return [
        _figure("tput_tok_s_gpu", "Through­put", "tok/s/GPU"),
        _delta(THROUGHPUT.key),
        _figure("output_tput_tok_s_gpu", "Output", "tok/s/GPU"),
        _figure("e2e_interactivity_p90", "E2E-norm.", "tok/s/user"),
        _delta(NORTH_STAR.key),
        _figure("interactivity_p90", "Inter­activity", "tok/s/user", "interactivity_p50"),
        _figure("ttft_p90", "TTFT", "ms", "ttft_p50"),
        _figure("itl_p90", "ITL", "ms", "itl_p50"),
        _figure("e2el_p90", "E2EL", "s", "e2el_p50"),
        _figure("usd_per_m_tokens", "Cost", "$/M tok"),
        _figure("j_per_token", "Energy", "J/tok"),
    ]


def _counters() -> list[Column]:
    return [
        Column(key="acceptance", title="Accept. length", unit="seen / asked", inner=_acceptance),
        Column(key="prefix", title="Prefix hits", inner=_prefix),
    ]


def _figure(key: str, title: str, unit: str, beside: str = "") -> Column:
    def inner(row: PointRow) -> str:
        """Return the figure in bold, the one beside it, and the interval where it decides."""
        shown, other = row.figures.get(key), row.figures.get(beside)
        if shown is None:
            return ""
        text = f"<b>{figure(shown.value)}</b>"
        if other:
            text += f" <i>{figure(other.value)}</i>"
        interval = spread(shown.low, shown.high) if key in DECIDING else ""
        return f"{text}<small>{interval}</small>" if interval else text

    return Column(key=key, title=title, unit=unit, inner=inner)


def _delta(key: str) -> Column:
    return Column(
        key=f"change-{key}", title="Δ", unit="baseline", inner=lambda row: _change(row, key)
    )  # fmt: skip


def _change(row: PointRow, key: str) -> str:
    """Return the change; its verdict is a class, to which the style adds a sign and a word."""
    change: Change | None = row.baseline.get(key)
    if change is None:
        return ""
    return f'<span class="{change.verdict}">{signed(change.ratio - 1)}</span>'


def _point(row: PointRow, homes: Mapping[str, str], pages: Mapping[str, str]) -> str:
    home = homes.get(row.record.point.arm.arm_id, "servers")
    star = '\N{NO-BREAK SPACE}<span class="star" title="on the deciding frontier">★</span>'
    told = f'<a href="#{home}">{escape(row.name)}</a>{star if row.on_frontier else ""}'
    if not row.reused:
        return told
    return f"{told}<small>{origin(row.reused, f'row-{row.anchor}', pages)}</small>"


def origin(run: str, place: str, pages: Mapping[str, str]) -> Markup:
    """Return the run that something is reused from, linked to its ``place`` in the report of that
    run where there is one."""
    told = Markup("reused from {}").format(run)
    if run not in pages:
        return told
    return Markup('<a href="{}#{}">{}</a>').format(pages[run], place, told)


def _status(row: PointRow) -> str:
    status = row.record.status
    code = f'<span class="code">{escape(status.code)}</span>' if status.code else ""
    text = f'<span class="status {status.state}">{status.state}{code}</span>'
    if row.valid and row.warnings:
        text += f" <small>{count(row.warnings, 'warning')}</small>"
    if status.sentence:
        text += f'<span class="why">{escape(status.sentence)}</span>'
    return text


def _conc(row: PointRow) -> str:
    point = row.record.point
    return f"{point.conc}{' <small>queues</small>' if point.queueing else ''}"


def _max_num_seqs(row: PointRow) -> str:
    return str(row.record.point.arm.axes.max_num_seqs or "")


def _requests(row: PointRow) -> str:
    seen = row.record.measurement
    if seen is None:
        return ""
    failed = f" <i>{seen.requests.errors} failed</i>" if seen.requests.errors else ""
    cut = f" <i>{seen.requests.cancelled} cut</i>" if seen.requests.cancelled else ""
    return f"{seen.requests.ok:,}{failed}{cut}"


def _chance(row: PointRow) -> str:
    return "" if row.chance is None else percent(row.chance)


def _acceptance(row: PointRow) -> str:
    counters = row.record.counters
    if not counters or not counters.acceptance_length:
        return ""
    asked = figure(row.record.point.arm.acceptance.length)
    return f"{figure(counters.acceptance_length)} <i>{asked}</i>"


def _prefix(row: PointRow) -> str:
    share = row.record.counters.prefix_cache_hit_share if row.record.counters else None
    return "" if share is None else percent(share)
