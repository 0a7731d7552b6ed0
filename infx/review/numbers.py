"""The numbers of a text that no reader has a meaning for: settings, and what cannot be derived."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from infx.review.claim import Claim, claimed
from infx.review.texts import Line
from infx.review.truth import Truth

__all__ = ["left_over", "settings", "workloads"]

_WORD = re.compile(r"[^\s|()\[\]{}“”\"'`<>]+")
_START = re.compile(r"[ \t>]*(?:\d{1,3}[.)][ \t]|#+[ \t])?")
_BARE = re.compile(
    r"[±~≈≤≥+−-]?\$?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?:[–…×/-]\d[\d,]*(?:\.\d+)?)?"
    r"(?P<unit>%|×|x|ms|s|h|min|[kKMGT]i?B?|[kM]?W|J|°C)?"
)
_UNITS = re.compile(
    r"(?:tok(?:en)?s?/\S+|ms|s|seconds?|min(?:utes?)?|h|hours?|[kMGT]i?B|[kM]?W|J\S*|%|×|x|times|"
    r"GPU-hours?|\$/\S+)(?!\w)",
)
_SETTING = re.compile(r"(?<![\w.-])([A-Za-z][\w.-]*)[ ]?=[ ]?(\d+(?:\.\d+)?)(?![\w.])")


def settings(line: Line, truth: Truth) -> Iterator[Claim]:
    """Yield what is said as ``NAME=NUMBER``: a server was started so, or the change says it."""
    for hit in _SETTING.finditer(line.text):
        name = hit[1].lower().replace("_", "-")
        axis = truth.axes.get(name)
        known = (name, hit[2]) in truth.settings or (axis is not None and axis.hold(hit[2]))
        yield replace(claimed("setting", hit.span(), line), derivable=known)


def workloads(line: Line, truth: Truth) -> Iterator[Claim]:
    """Yield the workloads that are named in the words that infx has for them."""
    for words in truth.workloads:
        for hit in re.finditer(re.escape(words), line.text):
            yield claimed("workload", hit.span(), line)


def left_over(line: Line, taken: Sequence[Claim]) -> Iterator[Claim]:
    """Yield the numbers of a line that no claim of ``taken`` holds, none as derivable; those with a
    unit, or a share, are figures. Digits in a name (``TP4``, ``#12``, a date) are its own."""
    spans = sorted(claim.span for claim in taken)
    start = _START.match(line.text)
    for hit in _WORD.finditer(line.text, start.end() if start else 0):
        while spans and spans[0][1] <= hit.start():
            spans.pop(0)
        inside = bool(spans) and spans[0][0] < hit.end()
        number = None if inside else _BARE.fullmatch(hit[0].strip(".,;:!?*_~"))
        if number:
            yield _unread(hit, line, bool(number["unit"]))


def _unread(hit: re.Match[str], line: Line, has_unit: bool) -> Claim:
    unit = _UNITS.match(line.text, hit.end() + 1)
    end = unit.end() if unit and not has_unit else hit.end()
    claim = claimed("number", (hit.start(), end), line)
    text = claim.text.rstrip(".,;:!?*_~")
    return replace(claim, text=text, derivable=False, figure=has_unit or unit is not None)
