"""Checks of drafts, and of what was there: acceptance (11), append-only (12), types (13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import PurePosixPath

from infx.analysis.acceptance import independent_draws, tolerance
from infx.analysis.evidence import Limits
from infx.config.nodes import MapNode, Report, parse_yaml, plain
from infx.domain.record import PointRecord
from infx.report.figures import count as plural
from infx.review.bundle import Bundle, Draft
from infx.review.facts import (
    added_lines,
    evaluations,
    grouped,
    in_servers,
    matches,
    selected,
    speculative,
    throughput,
)
from infx.review.injection import Injected, injected
from infx.review.result import Evidence, Said
from infx.review.rules import Rules
from infx.review.shipped import UNKNOWN

__all__ = ["append_only", "draft_as_shipped", "golden_acceptance", "types_told"]

_BITS = {
    **dict.fromkeys(("fp32", "float32"), 32),
    **dict.fromkeys(("bf16", "bfloat16", "fp16", "float16"), 16),
    **dict.fromkeys(("fp8", "mxfp8", "int8", "q8"), 8),
    **dict.fromkeys(("fp4", "mxfp4", "nvfp4", "int4", "q4"), 4),
}


def golden_acceptance(bundle: Bundle, rules: Rules) -> Said:
    """Throughput ran at the golden length, told to the server and realised by it; evaluations at
    real acceptance."""
    drafting = speculative(throughput(bundle))
    scored = speculative(evaluations(bundle))
    if not drafting and not scored:
        return Said("N/A", "no measured point drafts")
    wrong = [(r, why) for r in drafting for why in _injection(r, bundle, rules)]
    unreal = [r for r in scored if r.point.arm.acceptance.mode != "real" or injected(r)]
    faults = [*grouped([*wrong, *((r, "evaluated at a simulated acceptance") for r in unreal)])]
    evidence = tuple(_lengths(record, bundle) for record in drafting)
    if faults:
        return Said("FAIL", "; ".join(faults), evidence)
    told = [*_injected_told(drafting), f"{plural(len(scored), 'evaluation')} at real acceptance"]
    doubts = [*_unrealised(drafting), *_golden_moved(drafting, bundle)]
    return Said("WARN" if doubts else "PASS", "; ".join([*told, *doubts]), evidence)


def _injected_told(records: Sequence[PointRecord]) -> Iterator[str]:
    if records:
        asked = ", ".join(sorted({_asked(record) for record in records}))
        yield f"{plural(len(records), 'point')} injected {asked}, realised {_span(records)}"


def _span(records: Sequence[PointRecord]) -> str:
    seen = [found for record in records if (found := _realised(record)) is not None]
    return f"{min(seen):.4g} … {max(seen):.4g}" if seen else "nowhere"


def _realised(record: PointRecord) -> float | None:
    return record.counters.acceptance_length if record.counters else None


def _unrealised(records: Sequence[PointRecord]) -> Iterator[str]:
    untold = [record for record in records if _realised(record) is None]
    yield from grouped((record, "the realised length is not told") for record in untold)


def _golden_moved(records: Sequence[PointRecord], bundle: Bundle) -> Iterator[str]:
    """Yield the golden files that the pull request itself changes: it may not set its own goal
    unseen."""
    used = {record.point.arm.acceptance.golden for record in records}
    for path in bundle.pull_request.changed:
        if path.endswith(".yaml") and PurePosixPath(path).stem in used:
            yield f"the pull request changes {path}"


def _asked(record: PointRecord) -> str:
    acceptance = record.point.arm.acceptance
    return (
        f"{acceptance.length} = {acceptance.golden} thinking-{acceptance.thinking} K={acceptance.k}"
    )


def _lengths(record: PointRecord, bundle: Bundle) -> Evidence:
    seen = _realised(record)
    realised = "not told" if seen is None else f"{seen:.4g}"
    golden = _golden(record, bundle)
    said = _told(injected(record))
    text = f"asked {_asked(record)}, golden {golden}, in the command {said}"
    return Evidence(f"records.json:{record.point.label}", f"{text}, realised {realised}")


def _told(words: Sequence[Injected]) -> str:
    return " and ".join(one.text for one in words) or "nothing"


def _golden(record: PointRecord, bundle: Bundle) -> float | None:
    """Return the length that the golden file of the bundle holds for the record; None without."""
    asked = record.point.arm.acceptance
    models = _curves(bundle.golden.get(asked.golden, ""), f"golden/{asked.golden}.yaml")
    lengths = [modes.get(f"thinking_{asked.thinking}", {}).get(asked.k) for modes in models]
    return lengths[0] if len(lengths) == 1 else None


@cache
def _curves(text: str, name: str) -> tuple[Mapping[str, Mapping[int, float]], ...]:
    """Return the curves of each model in a golden file by mode; none where it cannot be read."""
    report = Report()
    node = parse_yaml(text.encode(), name, report)
    if not isinstance(node, MapNode) or report.findings:
        return ()
    modes = (plain(model) for model in node.values.values() if isinstance(model, MapNode))
    return tuple(
        {mode: curve for mode, curve in model.items() if isinstance(curve, dict)} for model in modes
    )


def _injection(record: PointRecord, bundle: Bundle, rules: Rules) -> Iterator[str]:
    asked, golden = record.point.arm.acceptance, _golden(record, bundle)
    k = record.point.arm.axes.k
    if asked.mode != "synthetic" or asked.length is None:
        yield "no acceptance length was injected"
        return
    if asked.k != k:
        yield f"the length is of K={asked.k}, the server drafts {k}"
    if golden is None:
        yield f"golden/{asked.golden}.yaml holds no length for {_asked(record)}"
    elif golden != asked.length:
        yield f"injected {asked.length}, golden is {golden}"
    told = injected(record)
    if not told or not all(one.is_of(asked.length, k) for one in told):
        yield f"the server's command does not carry {asked.length}: it says {_told(told)}"
    yield from _off(record, rules)


def _off(record: PointRecord, rules: Rules) -> Iterator[str]:
    """Yield that the server realised another length, by more than its law scatters."""
    asked, seen = record.point.arm.acceptance, _realised(record)
    limits = Limits(acceptance_share=rules.evidence.acceptance_share)
    limit = tolerance(asked, independent_draws(record), limits)
    if seen is not None and limit and asked.length and not abs(seen - asked.length) <= limit.slack:
        yield f"the server realised {seen:.4g}, not {asked.length} ({limit})"


def append_only(bundle: Bundle, rules: Rules) -> Said:
    """Under append-only every point that was there is still there, the same, on the same image."""
    additions = [one for one in bundle.changelog if one.append_only]
    if not additions:
        return Said("N/A", "no changelog entry says append-only: true")
    mixed = [one for one in additions if one.evals_only or one.all_evals]
    faults = [f"line {one.line}: append-only goes with no evaluation setting" for one in mixed]
    if len(additions) != len(bundle.changelog):
        faults.append("append-only entries stand beside normal ones")
    keys = [
        key
        for one in additions
        for key in (p.entry for p in bundle.points.base)
        if selected(one, key)
    ]
    faults += [*_lost(bundle, set(keys)), *_strange(bundle, set(keys))]
    evidence = tuple(
        Evidence("changelog.json", f"line {one.line}: append-only") for one in additions
    )
    if faults:
        return Said("FAIL", "; ".join(faults), evidence)
    stood = {point.point_id for point in bundle.points.base}
    new = {p.point_id for p in bundle.points.head if p.entry in keys} - stood
    return Said("PASS", f"every point that was there is the same; new: {len(new)}", evidence)


def _lost(bundle: Bundle, keys: set[str]) -> Iterator[str]:
    after = {point.point_id: point for point in bundle.points.head}
    named = {(point.entry, point.name): point for point in bundle.points.head}
    for point in bundle.points.base:
        if point.entry not in keys or point.point_id in after:
            continue
        other = named.get((point.entry, point.name))
        moved = (
            f" from {point.image} to {other.image}" if other and other.image != point.image else ""
        )
        yield f"{point.name} " + (f"changed{moved}" if other else "is gone")


def _strange(bundle: Bundle, keys: set[str]) -> Iterator[str]:
    """Yield new points that are on no curve that was there with the same image."""
    curves = {(one.entry, one.scenario, one.image) for one in bundle.points.base}
    for point in bundle.points.head:
        if point.entry in keys and (point.entry, point.scenario, point.image) not in curves:
            yield f"{point.name} is on no curve of {point.image} that was there"


def draft_as_shipped(bundle: Bundle, rules: Rules) -> Said:
    """Each draft runs in the type that it ships in, and the bundle shows which that is."""
    drafting = speculative((*throughput(bundle), *evaluations(bundle)))
    if not drafting:
        return Said("N/A", "no measured point drafts")
    shown = {draft.model: draft for draft in bundle.drafts}
    used = sorted({r.point.arm.draft or r.point.arm.model.name for r in drafting})
    faults = [*_forbidden(bundle, rules)]
    faults += [f"no stored and effective types of {name} are shown" for name in used
               if name not in shown or not shown[name].layers]  # fmt: skip
    told = [shown[name] for name in used if name in shown]
    faults += [why for draft in told for why in (*_lowered(draft), *_otherwise_stored(draft))]
    evidence = tuple(map(_shown, told))
    if faults:
        return Said("FAIL", "; ".join(faults), evidence)
    return Said("PASS", "; ".join(one.text for one in evidence), evidence)


def _shown(draft: Draft) -> Evidence:
    return Evidence(draft.where or "drafts.json", f"{draft.model}: {types_told(draft)}")


def types_told(draft: Draft) -> str:
    """Return ``stored bf16, no quantization config; 7 layers run bf16``."""
    ran = Counter(
        one.effective if one.effective == one.stored else f"{one.effective} (stored {one.stored})"
        for one in draft.layers
    )
    layers = ", ".join(f"{plural(number, 'layer')} run {kind}" for kind, number in ran.items())
    quantized = draft.quantization or "no quantization config"
    return f"stored {draft.stored}, {quantized}; {layers or 'what runs is not shown'}"


def _lowered(draft: Draft) -> Iterator[str]:
    """Yield what runs in fewer bits than it is stored in, and types that nobody knows."""
    faults: dict[str, list[str]] = {}
    for layer in draft.layers:
        stored, run = _bits(layer.stored), _bits(layer.effective)
        if not stored or not run:
            unknown = layer.effective if stored else layer.stored
            faults.setdefault(f"{unknown} is no type that is known", []).append(layer.name)
        elif run < stored:
            told = f"ships {layer.stored} and runs {layer.effective}"
            faults.setdefault(told, []).append(layer.name)
    for told, layers in faults.items():
        more = f" and {len(layers) - 1} more layers" if len(layers) > 1 else ""
        yield f"{draft.model} {layers[0]}{more}: {told}"


def _otherwise_stored(draft: Draft) -> Iterator[str]:
    """Yield the types that layers are said to be stored in and the checkpoint does not hold; what
    is quantized may be packed in another."""
    held = set(draft.stored.split(", "))
    if draft.quantization or held == {UNKNOWN}:
        return
    for kind in dict.fromkeys(part for one in draft.layers for part in one.stored.split("/")):
        if kind not in held:
            yield f"layers of {draft.model} are told as stored {kind}, it holds {draft.stored}"


def _bits(kind: str) -> int:
    """Return the bits of a type (of ``bf16/fp32`` the most), 0 of one that is not known."""
    found = [_BITS.get(part, 0) for part in kind.lower().split("/")]
    return max(found) if all(found) else 0


def _forbidden(bundle: Bundle, rules: Rules) -> Iterator[str]:
    for line in added_lines(bundle.diff, rules.source.prose):
        if matches(rules.source.draft, line.text):
            yield f"{line.file}:{line.number} lowers the draft: {line.text.strip()}"
    for said in grouped(in_servers(bundle.records, rules.source.draft)):
        yield f"a server lowers the draft: {said}"
