"""What a run was told to do, as its own export says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

__all__ = ["Asked", "read_asked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a run was told to do; None where it was not told (or may vary).

    ``unread`` is the reason why nothing of it is known, and empty when it could be read.
    """

    conc: int | None = None
    requests: int | None = None
    osl: int | None = None
    duration_s: float | None = None
    error_share: float = 0.05
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
    osl = dataset.length() if independent else None
    return Asked(
        conc=_whole(phase.concurrency) if independent else None,
        requests=_whole(phase.requests),
        osl=osl.fixed() if osl else None,
        duration_s=phase.duration,
    )


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
