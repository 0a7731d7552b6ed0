"""A measured acceptance-length curve: what was asked, of what, and every value with its batches.

It is kept beside the golden file NAME.yaml as NAME.measured.json, which resuming and checking read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from infx.domain.errors import UsageError
from infx.domain.serial import decode, to_plain
from infx.golden.estimate import Batch, Estimate, estimate

__all__ = ["Curve", "Made", "Sampling", "Source", "Subject", "Value", "differences", "read_curve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """What every request asks. ``content`` identifies the prompts: a version or a sha256.

    ``batch`` prompts are in flight between two readings of the counters; ``thinking`` maps a mode
    to the chat_template_kwargs that ask for it; ``top_k`` 0 asks for none.
    """

    dataset: str = "gsm_mini"
    content: str = ""
    prompts: int = 64
    shots: int = 5
    seed: int = 0
    batch: int = 4
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    output_len: int = 256
    thinking: Mapping[str, Mapping[str, Any]] = field(
        default_factory=lambda: {
            "on": {"thinking_mode": "enabled"},
            "off": {"thinking_mode": "disabled"},
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What was measured, as the running server tells it. ``weights_identity`` is "" when it tells
    none; ``computation`` are the axes that decide its answers."""

    framework: str
    model: str
    method: str
    weights: str = ""
    weights_identity: str = ""
    computation: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Which engine `infx golden check` starts: an entry of ``matrices``, or a recipe without them.

    Both are empty for a server that somebody else started.
    """

    name: str = ""
    matrices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Who measured a value, on what, when (UTC, ISO 8601), by which command."""

    command: str = ""
    date: str = ""
    engine: str = ""
    hardware: str = ""
    infx_version: str = ""
    git_revision: str = ""
    git_dirty: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One acceptance length: its batches, from which length and interval follow."""

    batches: tuple[Batch, ...]
    made: Made
    wall_s: float = 0.0

    @property
    def estimate(self) -> Estimate:
        """The length with its interval."""
        return estimate(self.batches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """All values of one model and method: ``values[thinking][K]``."""

    schema_version: str = "1"
    subject: Subject
    sampling: Sampling
    source: Source = Source()
    values: Mapping[str, Mapping[int, Value]] = field(default_factory=dict)

    def has(self, thinking: str, k: int) -> bool:
        """Return True when the value is measured."""
        return k in self.values.get(thinking, {})

    def plus(self, thinking: str, k: int, value: Value) -> Curve:
        """Return the curve with one more value, or another one in its place."""
        lengths = dict(sorted({**self.values.get(thinking, {}), k: value}.items()))
        order = {"on": 0, "off": 1}
        values = {**self.values, thinking: lengths}
        return replace(self, values=dict(sorted(values.items(), key=lambda item: order[item[0]])))

    def joined(self, subject: Subject, sampling: Sampling, source: Source) -> Curve:
        """Return the curve as one of these, so that values may be added.

        Raises UsageError (``golden-settings``) that names each setting in which it differs. The
        arguments of a mode that it does not hold may differ.
        """
        there, now = (_held(self, one) for one in (self.sampling, sampling))
        found = [*differences(self.subject, subject), *differences(there, now)]
        if found:
            raise UsageError(
                "golden-settings",
                f"the curve there was measured otherwise: {'; '.join(found)}",
                hint="name another file with -o, or measure it all anew with --fresh",
            )
        return replace(self, subject=subject, sampling=sampling, source=source)


def _held(curve: Curve, sampling: Sampling) -> Sampling:
    """Return ``sampling`` with the thinking modes that the curve holds."""
    thinking = {mode: sampling.thinking.get(mode, {}) for mode in curve.values}
    return replace(sampling, thinking=thinking)


def differences(there: Any, here: Any) -> list[str]:
    """Return a text for each field in which two records of one kind differ."""
    pairs = [
        (f.name, to_plain(getattr(there, f.name)), to_plain(getattr(here, f.name)))
        for f in fields(there)
    ]
    return [f"{name}: {a!r} there, {b!r} now" for name, a, b in pairs if a != b]


def read_curve(path: Path) -> Curve | None:
    """Return the curve in ``path``; None when the file does not exist.

    Raises ConfigError (``bad-record``) for a file that holds none.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return decode(data, Curve, source=str(path))
