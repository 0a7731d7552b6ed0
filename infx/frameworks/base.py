"""What infx must know of an engine: one Framework an engine, one file each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from infx.domain.acceptance import Acceptance
from infx.domain.point import Arm
from infx.domain.record import EngineCounters

__all__ = ["Framework", "Launch", "Option", "Refusal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A server to start: its command, extra environment, and the paths it answers on.

    ``health`` answers 200 when the process is up; ``models`` is the OpenAI list of models.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    health: str = "/health"
    models: str = "/v1/models"
    metrics: str = "/metrics"


@dataclass(frozen=True, slots=True)
class Option:
    """An engine option that a recipe may set; ``kind`` is its type, ``flag`` its spelling.

    ``capacity`` options (threads, slots, cache size) cannot change an answer, only how many fit.
    """

    name: str
    kind: type
    flag: str
    about: str
    capacity: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the engine cannot serve an arm; known without starting it."""

    code: str
    sentence: str


class Framework(Protocol):
    """One engine. Pure but for `tokenizer`, which may write files into the folder it is given."""

    name: str
    options: Mapping[str, Option]
    methods: tuple[str, ...]

    def refusals(self, arm: Arm) -> Sequence[Refusal]:
        """Return why this engine cannot serve ``arm`` (empty: it can)."""

    def launch(self, arm: Arm, host: str, port: int, folder: Path) -> Launch:
        """Return the server's command for ``arm``."""

    def tokenizer(self, arm: Arm, folder: Path) -> str:
        """Return the path (or hub id) that aiperf's --tokenizer takes, made in ``folder``."""

    def resolved(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the configuration that the running server reports, from its endpoints' answers
        (path -> parsed body), in our names."""

    def acceptance(self, answers: Mapping[str, Any]) -> Acceptance | None:
        """Return the acceptance that the running server says it uses; None: it does not tell."""

    def counters(self, before: str, after: str) -> EngineCounters:
        """Return what happened between two scrapes of its metrics page."""
