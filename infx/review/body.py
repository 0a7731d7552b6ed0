"""The text of a pull request, written from its bundle: every claim in it passes check 15."""

from __future__ import annotations

from collections.abc import Iterator

from infx.review.bundle import Bundle, Entry
from infx.review.curves import Spot, curves
from infx.review.drafts import types_told
from infx.review.facts import affected, affected_runs, speculative, throughput, wants_throughput
from infx.review.measured import passed_jobs, score_ranges
from infx.review.rules import Rules

__all__ = ["body"]


def body(bundle: Bundle, rules: Rules) -> str:
    """Return it as Markdown: what changes, what was measured, accuracy, drafts."""
    parts = (
        ("What changes", [*_changes(bundle)]),
        ("What was measured", [*_runs(bundle), *_curves(bundle)]),
        ("Accuracy", [f"- {told}" for told in score_ranges(bundle, rules)]),
        ("Drafts", [*_drafts(bundle)]),
    )
    told = (f"## {title}\n\n" + "\n".join(lines) for title, lines in parts if lines)
    return "\n\n".join(told) + "\n"


def _changes(bundle: Bundle) -> Iterator[str]:
    before = {entry.key: entry for entry in bundle.entries.base}
    for entry in affected(bundle):
        yield f"- `{entry.key}`: {_moved(before.get(entry.key), entry)}"
        yield f"- {_points(bundle, entry.key)}"


def _moved(old: Entry | None, new: Entry) -> str:
    digest = f" ({new.image_digest})" if new.image_digest else ""
    version = f", {new.framework} {new.version}" if new.version else ""
    if old is None:
        return f"new, image {new.image}{digest}{version}"
    if old.image == new.image:
        return f"image {new.image}{digest} as before{version}"
    was = f" (was {old.version})" if old.version else ""
    return f"image {old.image} → {new.image}{digest}{version}{was}"


def _points(bundle: Bundle, key: str) -> str:
    before = {point.name for point in bundle.points.base if point.entry == key}
    after = {point.name for point in bundle.points.head if point.entry == key}
    new, gone = sorted(after - before), sorted(before - after)
    counts = f"planned: {len(after)}, new: {len(new)}, gone: {len(gone)}"
    return f"{counts} ({', '.join([*new, *gone])})" if new or gone else counts


def _runs(bundle: Bundle) -> Iterator[str]:
    runs = affected_runs(bundle)
    if not runs and wants_throughput(bundle):
        yield "The sweep is pending.\n"
    for run in runs:
        ended = "passed" if run.conclusion == "success" else f"ended in {run.conclusion}"
        yield f"Run {run.run_id} {ended} on commit {run.head_sha[:12]}: {passed_jobs(run)} jobs.\n"


def _curves(bundle: Bundle) -> Iterator[str]:
    for curve in curves(bundle):
        yield f"{curve.told}:\n"
        yield "| point | throughput | latency |\n|---|---:|---:|"
        yield from (_row(spot) for spot in curve.on_frontier)


def _row(spot: Spot) -> str:
    rate, latency = f"{spot.tput_tok_s_gpu:.1f} tok/s/GPU", f"P90 E2EL {spot.e2el_ms:.0f} ms"
    return f"| {spot.name} | {rate} | {latency} |"


def _drafts(bundle: Bundle) -> Iterator[str]:
    asked = {record.point.arm.acceptance for record in speculative(throughput(bundle))}
    for one in sorted(asked, key=lambda a: (a.golden, a.k)):
        which = f"{one.golden}, thinking {one.thinking}, K={one.k}"
        yield f"- injected acceptance length {one.length} ({which}); evaluations at real acceptance"
    for draft in bundle.drafts:
        yield f"- `{draft.model}`: {types_told(draft)}"
