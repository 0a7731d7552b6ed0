"""The golden file itself: the public format, with what was done in comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from infx.golden.curve import Curve, Made, Value
from infx.golden.estimate import CONFIDENCE, Estimate

__all__ = ["golden_text", "record_path", "shown"]

_PLAIN_KEY = re.compile(r"[A-Za-z][\w./-]*")


def record_path(golden: Path) -> Path:
    """Return where the record of a golden file lies: NAME.measured.json beside NAME.yaml."""
    return golden.with_name(f"{golden.stem}.measured.json")


def golden_text(curve: Curve, name: str) -> str:
    """Return the YAML of the golden file called ``name``.

    ``model: {thinking_on: {K: length}, thinking_off: …}`` with lengths of two decimals, as the
    public files have it; everything else stands in comments, so any YAML reader takes it.
    """
    comments = [f"# {line}".rstrip() for line in _header(curve, name)]
    return "\n".join([*comments, *_values(curve)]) + "\n"


def shown(found: Estimate) -> str:
    """Return an interval for people: ``± 0.02``."""
    return "± unknown" if found.half_width is None else f"± {found.half_width:.2f}"


def _header(curve: Curve, name: str) -> Iterator[str]:
    sampling, subject = curve.sampling, curve.subject
    made = _latest(curve)
    shots = f", {sampling.shots} shots" if sampling.dataset.startswith("gsm_mini") else ""
    yield "Acceptance lengths measured by infx: AL = 1 + accepted drafts / verify steps, from the"
    yield "engine's own counters, before any cut at the end of an answer; acceptance was real."
    yield f"Source command: {made.command}"
    yield " | ".join(
        (
            f"dataset: {sampling.dataset} ({sampling.content}), {sampling.prompts} prompts{shots}"
            f", seed {sampling.seed}",
            f"temperature: {sampling.temperature}",
            f"top_p: {sampling.top_p}",
            f"top_k: {sampling.top_k}",
            f"output_len: {sampling.output_len}",
        )
    )
    for mode in curve.values:
        kwargs = json.dumps(sampling.thinking.get(mode, {}))
        yield f"thinking_{mode} chat_template_kwargs: {kwargs}"
    yield f"speculative-config: method={subject.method}"
    yield f"Measured on {subject.model} ({made.hardware}, {made.engine} {subject.method.upper()})"
    if subject.computation:
        told = ", ".join(f"{name}={value}" for name, value in subject.computation.items())
        yield f"server: {told}"
    yield f"weights: {' '.join(filter(None, (subject.weights, subject.weights_identity)))}"
    yield f"date: {made.date} | infx {_revision(made)}"
    yield f"interval: {CONFIDENCE:.0%}, over batches of {sampling.batch} prompts (ratio estimator,"
    yield f"Student's t); the counts of every batch: {name}.measured.json"
    yield ""
    yield "key: draft tokens a step; value: acceptance length in tokens a step"


def _latest(curve: Curve) -> Made:
    made = [value.made for mode in curve.values.values() for value in mode.values()]
    return max(made, key=lambda one: one.date, default=Made())


def _revision(made: Made) -> str:
    dirty = " with changes" if made.git_dirty else ""
    at = f" at {made.git_revision[:12]}{dirty}" if made.git_revision else ""
    return f"{made.infx_version}{at}"


def _values(curve: Curve) -> Iterator[str]:
    model = curve.subject.model
    yield f"{model if _PLAIN_KEY.fullmatch(model) else json.dumps(model)}:"
    for mode, values in curve.values.items():
        yield f"  thinking_{mode}:"
        yield from (_line(k, value) for k, value in sorted(values.items()))


def _line(k: int, value: Value) -> str:
    found = value.estimate
    return f"    {k}: {found.length:.2f}  # {shown(found)}, {found.steps} steps"
