"""A point: an arm at one concurrency of one workload. The unit of identity, status and plotting."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from infx.domain.acceptance import Acceptance
from infx.domain.axes import AXES, Axes, is_computation, is_load
from infx.domain.identity import content_id
from infx.domain.vocabulary import TRACES

__all__ = [
    "PUBLISHED_S",
    "SERVER_AXES",
    "Accuracy",
    "Agentic",
    "Arm",
    "Delegated",
    "FixedLengths",
    "Harness",
    "Model",
    "Point",
    "Workload",
    "short",
]

Scalar = str | int | float | bool | None

SERVER_AXES = tuple(name for name in AXES if not is_load(name))
"""The axes of a server: all but what its client asks."""

_COMPUTATION_AXES = tuple(name for name in AXES if is_computation(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The weights under test.

    ``name`` is the served model id; ``prefix`` the family that bars are keyed by; ``weights`` says
    where they come from (``package:<module>/<file>``, ``random:<seed>``, ``hf:<repo>``,
    ``engines:<folder>``, ``shipped`` with the engine, or a path), ``revision`` what they are;
    ``tokenizer`` likewise (``gguf``, ``engine``, a folder or a hub id). ``heads`` and ``kv_heads``
    are 0 when unknown.
    """

    name: str
    prefix: str
    precision: str
    weights: str
    revision: str = ""
    tokenizer: str = "engine"
    heads: int = 0
    kv_heads: int = 0


class Load:
    """The kinds of workload, told apart in JSON by ``kind``: `infx.domain.serial` reads them."""

    __slots__ = ()

    @staticmethod
    def kinds() -> Mapping[str, type]:
        """Return the class of each ``kind``."""
        sessions: Mapping[str, type] = {"agentic": Agentic, "agentic-fast": Agentic}
        return {"fixed-lengths": FixedLengths, **sessions, "accuracy": Accuracy}


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedLengths(Load):
    """A throughput workload: ``requests`` of ``isl`` random input and ``osl`` output tokens.

    ``requests`` counts profiled requests; ``warmup_requests`` come before and never count.
    ``error_share`` is the largest share of failed requests that still gives a valid point.
    """

    kind: Literal["fixed-lengths"] = "fixed-lengths"
    isl: int
    osl: int
    requests: int
    warmup_requests: int = 0
    seed: int = 7
    duration_s: int | None = None
    error_share: float = 0.05

    @property
    def words(self) -> str:
        """``64 in, 32 out`` (tokens): what a reader tells lines of one entry by."""
        return f"{self.isl} in, {self.osl} out"


PUBLISHED_S = 900
"""aiperf's scenario takes no shorter run for a submission (steady state, offloading reached)."""

CAPPED = 256_000
"""No request of a data set named ``_256k`` is longer, in and out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agentic(Load):
    """Recorded agentic-coding sessions, replayed in ``conc`` lanes for ``duration_s`` with their
    pauses, by aiperf's scenario ``inferencex-agentx-mvp``. Defaults are the public runs'.

    ``trace`` is a public data set that aiperf knows, or the path of a folder (a file) of Weka
    traces; ``content`` is the sha256 of such a folder, and ``longest`` the tokens of its longest
    request, in and out (0: unknown). Each session starts at a random part of its turns between
    ``trajectory_start_min_ratio`` and ``trajectory_start_max_ratio``; what lies before is sent
    first, and never counts: ``warmup_requests_per_lane`` requests at least. aiperf 0.13.0 sends
    one a lane; with ``cache_warmup_s`` it goes on for so long, without pauses and for one token an
    answer. ``idle_gap_cap_s`` shortens longer pauses, ``max_context`` leaves sessions out that
    grow over so many tokens; ``use_chat_template``: aiperf counts input as the template makes it.
    ``kind`` ``agentic-fast``: shortened to see a change sooner, never valid for submission.
    """

    kind: Literal["agentic", "agentic-fast"] = "agentic"
    trace: str
    content: str = ""
    longest: int = 0
    duration_s: int = 3600
    warmup_requests_per_lane: int = 10
    cache_warmup_s: int = 0
    seed: int = 42
    trajectory_start_min_ratio: float = 0.25
    trajectory_start_max_ratio: float = 0.75
    idle_gap_cap_s: int | None = None
    max_context: int | None = None
    use_chat_template: bool = False
    error_share: float = 0.10

    @property
    def name(self) -> str:
        """The data set's name, or that of the folder."""
        return self.trace.rstrip("/").rsplit("/", 1)[-1]

    @property
    def words(self) -> str:
        """``agentic semianalysis_cc_traces_weka_062126, 3600 s``; a folder's name is told with
        eight digits of its content."""
        which = f"{self.name} ({self.content[:8]})" if self.content else self.name
        return f"agentic {which}, {self.duration_s} s"

    @property
    def context(self) -> int:
        """Tokens of the longest request that is sent, in and out, as the trace counts them without
        a chat template; 0: unknown."""
        longest = self.longest or (CAPPED if self.trace.endswith("_256k") else 0)
        return min(longest or self.max_context or 0, self.max_context or longest)

    @property
    def submission_faults(self) -> tuple[str, ...]:
        """Why aiperf would not stamp the run valid for submission; empty when it would."""
        faults = {
            f"the trace {self.name} is none of the published ones": self.trace not in TRACES,
            f"duration-s {self.duration_s} is under {PUBLISHED_S}": self.duration_s < PUBLISHED_S,
            "idle-gap-cap-s changes the recorded pauses": self.idle_gap_cap_s is not None,
            "it was shortened to see a change sooner": self.kind == "agentic-fast",
        }
        return tuple(text for text, holds in faults.items() if holds)

    @property
    def submission_valid(self) -> bool:
        """True when the run may stand beside published ones; else it is a run of one's own."""
        return not self.submission_faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy(Load):
    """An evaluation workload: one lm-eval task.

    ``limit`` is the number of questions (None: all); ``bars`` maps a filter to the least score;
    ``source`` is where the questions come from (``generated``, a path, or ``hub``); ``content`` is
    what they are: the sha256 of the files, or the version of the generator.
    """

    kind: Literal["accuracy"] = "accuracy"
    task: str
    limit: int | None = None
    shots: int = 5
    seed: int = 0
    max_tokens: int = 256
    source: str = "generated"
    content: str = ""
    bars: Mapping[str, float] = field(default_factory=dict)


if TYPE_CHECKING:
    Workload = FixedLengths | Agentic | Accuracy
else:
    Workload = Load  # msgspec reads no union of dataclasses


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """Versions of the programs that make the numbers; part of a point's identity."""

    aiperf: str = "0.13.0"
    lm_eval: str = "0.4.13"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegated:
    """A deployment that srt-slurm knows how to make, over several nodes as it may be.

    ``text`` is the whole srt recipe, ``selector`` the variant of it, ``set`` dotted keys of it and
    what they are set to; ``gpus`` are the accelerators of all its workers.
    """

    text: str
    gpus: int
    selector: str = ""
    set: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A server configuration: what one engine start is given.

    ``axes.conc`` is 0 here: a server does not know its load. ``image`` names the engine build
    (``pypi:xllamacpp==…`` or a container image with its digest). ``options`` are the engine options
    that the recipe sets, by their names in the recipe; ``env`` likewise. ``draft`` is the model
    that drafts (a hub id or a path; "": part of the target, or shipped with the engine).
    ``accelerators`` is False on a CPU machine, whose cores all ranks share. Of a ``delegated`` one
    srt-slurm makes the command, of its own recipe.
    """

    framework: str
    image: str
    image_digest: str
    recipe: str
    model: Model
    cluster: str
    hardware: str
    axes: Axes
    acceptance: Acceptance
    method: str = "none"
    draft: str = ""
    options: Mapping[str, Scalar | tuple[Scalar, ...]] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    start_limit_s: int = 300
    accelerators: bool = True
    delegated: Delegated | None = None

    @property
    def gpus(self) -> int:
        """Accelerators it occupies; a CPU machine counts as one, whatever its ranks."""
        if not self.accelerators:
            return 1
        return self.delegated.gpus if self.delegated else self.axes.tp * self.axes.pp

    @property
    def arm_id(self) -> str:
        """Identity of the server configuration (64 hex digits)."""
        return content_id(self.identity())

    def identity(self) -> dict[str, Any]:
        """Return the allow-listed content: no ports, paths, recipe names, job ids or limits."""
        model, acceptance = self.model, self.acceptance
        weights = model.revision or model.weights
        law = [acceptance.mode, acceptance.length, acceptance.law, acceptance.k]
        content = {
            "framework": self.framework,
            "image": self.image_digest or self.image,
            "model": [model.name, model.precision, weights, model.tokenizer],
            "hardware": self.hardware,
            "axes": _said(self.axes, SERVER_AXES),
            "acceptance": [*law, *acceptance.curve],
            "method": [self.method, self.draft],
            "options": self.options,
            "env": self.env,
        }
        return content | ({"srt": self.delegated} if self.delegated else {})

    def computation(self, capacity_options: Collection[str] = ()) -> dict[str, Any]:
        """Return what decides the answers: the identity less capacity and acceptance.

        ``capacity_options`` are the engine options that cannot change an answer.
        """
        content = self.identity() | {"axes": _said(self.axes, _COMPUTATION_AXES)}
        content.pop("acceptance")
        options = {n: v for n, v in self.options.items() if n not in capacity_options}
        return content | {"options": options}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measurement to make: ``mode`` is throughput or evaluation, never both.

    ``expressions`` maps each field that follows the concurrency to its text; ``entry`` and ``name``
    are for people; the three identities are for machines.
    """

    point_id: str
    curve_id: str
    series_id: str
    entry: str
    name: str
    mode: Literal["throughput", "evaluation"]
    conc: int
    queueing: bool
    arm: Arm
    workload: Workload
    harness: Harness = Harness()
    expressions: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Short unique name: the readable part and eight digits of the identity."""
        return f"{self.name}-{short(self.point_id)}"

    @property
    def gpus(self) -> int:
        """Accelerators the arm occupies; a CPU machine counts as one, whatever its ranks."""
        return self.arm.gpus


def _said(axes: Axes, names: Collection[str]) -> dict[str, Any]:
    """Return what is not by default, so that a new axis leaves the identities of old points."""
    said = ((name, getattr(axes, name)) for name in names)
    return {name: value for name, value in said if value != AXES[name].default}


def short(identity: str) -> str:
    """Return the first eight digits of an identity."""
    return identity[:8]
