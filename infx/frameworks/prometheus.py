"""The Prometheus text format, as far as counters and gauges need it.

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Page", "Sample", "note", "notes", "parse"]

_NOTE = "#json "

_LINE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?$")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of a page."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Page:
    """One scrape."""

    samples: tuple[Sample, ...]

    def total(self, name: str) -> float | None:
        """Return the sum over all label sets of ``name``; None when the page has none."""
        values = [sample.value for sample in self.samples if sample.name == name]
        return sum(values) if values else None

    def largest(self, name: str) -> float | None:
        """Return the largest over all label sets of ``name``; None when the page has none."""
        return max((sample.value for sample in self.samples if sample.name == name), default=None)

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """Return the sum of ``name`` for each value of ``label``."""
        sums: dict[str, float] = {}
        for sample in self.samples:
            if sample.name == name and label in sample.labels:
                key = sample.labels[label]
                sums[key] = sums.get(key, 0.0) + sample.value
        return sums

    def since(self, before: Page, name: str) -> float | None:
        """Return the growth of counter ``name`` since ``before``; None when it is not on the page.

        A counter that went down was reset by a restart: its value is its growth, as in
        Prometheus' own ``increase``.
        """
        now, then = self.total(name), before.total(name)
        if now is None:
            return None
        return now if then is None or now < then else now - then


def parse(text: str) -> Page:
    """Return the samples of a scrape; comments and lines of another form are passed over."""
    found = (_LINE.match(line.strip()) for line in text.splitlines() if not line.startswith("#"))
    return Page(
        tuple(_sample(*match.groups()) for match in found if match and _is_number(match[3]))
    )


def note(path: str, body: Any) -> str:
    """Return the line that keeps the JSON ``body`` of another page with a scrape: a comment, on a
    line of its own wherever the text before it ends."""
    return f"\n{_NOTE}{path} {json.dumps(body, separators=(',', ':'))}\n"


def notes(text: str) -> dict[str, Any]:
    """Return path -> body of the pages that `note` kept with a scrape."""
    kept = (line[len(_NOTE) :].partition(" ") for line in text.splitlines() if line[:6] == _NOTE)
    return {path: json.loads(body) for path, _, body in kept}


def _sample(name: str, labels: str | None, value: str) -> Sample:
    pairs = {key: _unescape(raw) for key, raw in _LABEL.findall(labels or "")}
    return Sample(name, pairs, float(value))


def _unescape(raw: str) -> str:
    return re.sub(r"\\[\\\"n]", lambda found: _ESCAPES[found[0]], raw)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
