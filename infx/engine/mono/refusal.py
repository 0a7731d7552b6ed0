"""Why mono does not serve something: a code and a sentence, at one of three levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["LEVELS", "Level", "Refusal"]

# config: the deployment as a whole; bind: what was handed in; step: one step of many.
Level = Literal["config", "bind", "step"]

_CODES: dict[Level, tuple[str, ...]] = {
    "config": (
        "mono-device",
        "mono-tp",
        "mono-pp",
        "mono-ep",
        "mono-dp-attention",
        "mono-projections",
        "mono-experts",
        "mono-router",
        "mono-kv-cache",
        "mono-index-cache",
        "mono-block-size",
        "mono-context",
        "mono-verify",
        "mono-rows-per-request",
        "mono-full-experts",
        "mono-shared-expert",
        "mono-torch-compile",
        "mono-weight-swap",
        "mono-lora",
        "mono-sleep",
    ),
    "bind": (
        "mono-no-compiler",
        "mono-layer-count",
        "mono-sparse-dense",
        "mono-layer-kind",
        "mono-no-layer",
        "mono-widths",
        "mono-shape",
        "mono-weights",
        "mono-cache",
        "mono-strides",
        "mono-alignment",
        "mono-residency",
        "mono-bind-failed",
    ),
    "step": (
        "mono-closed",
        "mono-traced",
        "mono-prefill",
        "mono-no-rows",
        "mono-too-many-rows",
        "mono-batch-ids-missing",
        "mono-batch-ids-dtype",
        "mono-batch-ids-few",
        "mono-batch-ids-range",
        "mono-step-dtype",
        "mono-step-rank",
        "mono-step-few",
        "mono-step-strides",
        "mono-row-beyond-context",
        "mono-page-table-short",
        "mono-slot-outside",
        "mono-step-numbers",
        "mono-no-width",
        "mono-width-not-built",
        "mono-build-failed",
    ),
}

LEVELS: dict[str, Level] = {code: level for level, codes in _CODES.items() for code in codes}
"""The level of every code; what a code means stands in the family ``mono`` of infx's codes."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """``sentence`` names the thing, its value and what is expected.

    ``code`` is a key of `LEVELS`; codes are stable, sentences may improve.
    """

    code: str
    sentence: str

    @property
    def level(self) -> Level:
        """The level at which such a refusal is made. Raises KeyError for an unknown code."""
        return LEVELS[self.code]

    def __str__(self) -> str:
        return f"{self.code}: {self.sentence}"
