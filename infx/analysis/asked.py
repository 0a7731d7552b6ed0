"""What a run was told to do, as its own export says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

__all__ = ["PAUSE_S", "Asked", "read_asked"]

SESSION_ERRORS = 0.10
"""Sessions run long, so that public runs of them may lose more requests than others."""

ERRORS = 0.05
"""The share of failed requests that a run may have, unless its plan says another."""

PAUSE_S = 10.0
"""aiperf's agentic scenario lets no more time pass without a request in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a run was told to do; None where it was not told (or may vary).

    ``lanes`` is the number of recorded sessions that are replayed at a time: each has the lengths
    of its trace and its pauses, of which those of all lanes at once last ``pause_s`` at most.
    ``unread`` is the reason why nothing of it is known, and empty when it could be read.
    """

    conc: int | None = None
    lanes: int | None = None
    pause_s: float = 0.0
    requests: int | None = None
    osl: int | None = None
    duration_s: float | None = None
    error_share: float = ERRORS
    unread: str = ""


class _Length(msgspec.Struct, frozen=True):
    mean: float | None = None
    stddev: float | None = None

    def fixed(self) -> int | None:
        """Return the length in tokens when it does not vary, else None."""
        return int(self.mean) if self.mean and not self.stddev else None


class _Prompts(msgspec.Struct, frozen=True):
    osl: _Length | None = None


class _Dataset(msgspec.Struct, frozen=True):
    type: str = ""
    format: str = ""
    osl: _Length | None = None
    prompts: _Prompts | None = None

    def independent(self) -> bool:
        """Return True when its requests have no pauses, so that the asked load is kept up."""
        return self.type == "synthetic" or (self.type, self.format) == ("file", "single_turn")

    def length(self) -> _Length | None:
        """Return the output length; a file's own stands beside it."""
        return self.osl or (self.prompts.osl if self.prompts else None)


class _Phase(msgspec.Struct, frozen=True):
    kind: str = ""
    concurrency: float | None = None
    requests: float | None = None
    duration: float | None = None
    timing_mode: str = ""


class _Config(msgspec.Struct, frozen=True):
    """The part of aiperf's ``input_config`` that a verdict needs."""

    phases: list[_Phase]
    datasets: list[_Dataset]


def read_asked(input_config: Any) -> Asked:
    """Return what an export's ``input_config`` asked for; of any other form, why it is unknown.

    Concurrency and length are only known for synthetic prompts and files of single turns: traces
    have pauses and lengths of their own.
    """
    try:
        config = msgspec.convert(input_config, _Config)
    except msgspec.ValidationError as error:
        return Asked(unread=f"input_config is not of a known form: {error}")
    phases = [phase for phase in config.phases if phase.kind == "profiling"]
    if len(phases) != 1 or len(config.datasets) != 1:
        found = f"{len(phases)} profiling phases and {len(config.datasets)} data sets"
        return Asked(unread=f"input_config has {found}, expected one of each")
    return _of(phases[0], config.datasets[0])


def _of(phase: _Phase, dataset: _Dataset) -> Asked:
    independent = dataset.independent()
    sessions = phase.timing_mode == "agentic_replay"
    osl = dataset.length() if independent else None
    return Asked(
        conc=_whole(phase.concurrency) if independent else None,
        lanes=_whole(phase.concurrency) if sessions else None,
        pause_s=PAUSE_S if sessions else 0.0,
        requests=_whole(phase.requests),
        osl=osl.fixed() if osl else None,
        duration_s=phase.duration,
        error_share=SESSION_ERRORS if sessions else ERRORS,
    )


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
