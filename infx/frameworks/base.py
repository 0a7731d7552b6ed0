"""What infx must know of an engine: one Framework an engine, one file each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from infx.domain.acceptance import Acceptance, Law
from infx.domain.point import Arm
from infx.domain.record import EngineCounters

__all__ = ["MONO_ROWS", "PROCESS", "Framework", "Launch", "Option", "Paths", "Refusal"]

MONO_ROWS = 16
"""Rows a mono step holds, pads and verify rows included (the mono kernels' widest build)."""

PROCESS = "process:"
"""No path: among a framework's ``pages`` it asks what the running server was started with. The
answer is ``{"argv": [...], "env": {...}}``, read from the operating system, of the process that
listens on the server's port; there is none where it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Where an engine's server answers, whoever started it.

    ``health`` answers 200 when the process is up; ``models`` is the OpenAI list of models;
    ``notes`` are pages of JSON that a scrape of the ``metrics`` keeps with them
    (`infx.frameworks.prometheus.notes`).
    """

    health: str = "/health"
    models: str = "/v1/models"
    metrics: str = "/metrics"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A server to start: its command and extra environment.

    A program without a folder (``vllm``) is one of the image, or of the engine's own environment.
    ``files`` (name -> text) are written into the server's folder before it starts; ``log_faults``
    (code -> words) are what its log says when it serves something else than asked.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    log_faults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Option:
    """An engine option that a recipe may set; ``kind`` is its type (bool, int, float, str, tuple).

    It is given as ``flag``, or, where that is "", as the environment variable ``env``, or as the
    entry ``key`` of the engine's configuration file (its parts joined by dots). ``choices``
    are the values that the engine takes (empty: any). ``capacity`` options (threads, slots, cache
    size) cannot change an answer, only how many fit. ``negation`` is the flag that says false of a
    bool ("": false is said by silence), ``listed`` how a tuple is spelled after its flag: as
    further words, one word with commas, or one word of JSON.
    """

    name: str
    kind: type
    flag: str
    about: str
    capacity: bool = False
    env: str = ""
    choices: tuple[str, ...] = ()
    negation: str = ""
    listed: Literal["words", "commas", "json"] = "words"
    key: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the engine cannot serve an arm, known without starting it; ``axis`` is the axis, or the
    option, that asks it ("speculation": that section of the entry)."""

    code: str
    sentence: str
    axis: str = ""


class Framework(Protocol):
    """One engine. Pure but for `tokenizer`, which may write files into the folder it is given.

    ``options`` are keyed by their names in a recipe (with hyphens). ``laws`` are those that its
    synthetic acceptance can draw by, its own first (empty: it has none). ``pages`` are the paths
    whose JSON answers `resolved`, `acceptance` and `nonce` read; ``gauges`` maps ``peak_running``,
    ``peak_waiting`` and ``kv_cache_usage_peak`` to the metric whose peak each is.
    """

    name: str
    options: Mapping[str, Option]
    methods: tuple[str, ...]
    laws: tuple[Law, ...]
    paths: Paths
    pages: tuple[str, ...]
    gauges: Mapping[str, str]

    def refusals(self, arm: Arm) -> Sequence[Refusal]:
        """Return why this engine cannot serve ``arm`` (empty: it can)."""

    def launch(self, arm: Arm, host: str, port: int, folder: Path, nonce: str = "") -> Launch:
        """Return the server's command for ``arm``; ``nonce`` is a text that the server repeats, if
        it can, so that no other process is taken for it."""

    def tokenizer(self, arm: Arm, folder: Path) -> str:
        """Return the path (or hub id) that aiperf's --tokenizer takes, made in ``folder``."""

    def resolved(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the configuration that the running server reports, from its endpoints' answers
        (path -> parsed body), in our names: axes with underscores, options as in a recipe."""

    def acceptance(self, answers: Mapping[str, Any]) -> Acceptance | None:
        """Return the acceptance that the running server says it uses; None: it does not tell."""

    def nonce(self, answers: Mapping[str, Any]) -> str | None:
        """Return the nonce that the running server repeats; None: it does not tell."""

    def counters(self, before: str, after: str) -> EngineCounters:
        """Return what happened between two scrapes of its metrics page."""
