"""The typed record that travels from the job to the report: point.json.

A field is added here once and travels by itself: the job writes it, the store keeps it, analysis
and report read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from infx.domain.findings import Finding
from infx.domain.point import Point
from infx.domain.status import Status

__all__ = [
    "Attempt",
    "Bounds",
    "Distribution",
    "Energy",
    "EngineCounters",
    "FilterScore",
    "Measurement",
    "PointRecord",
    "Provenance",
    "RequestAccounting",
    "Score",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A per-request metric over ``n`` requests, in the unit that the field's name carries."""

    n: int
    mean: float
    std: float
    p50: float
    p75: float
    p90: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Between what values a percentile lies, whatever the failed requests would have measured, as
    (least, most) in the unit of its metric; ``most`` is None where enough failed to leave it open.
    """

    p50: tuple[float, float | None]
    p75: tuple[float, float | None]
    p90: tuple[float, float | None]
    p95: tuple[float, float | None]
    p99: tuple[float, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAccounting:
    """Where every request went; warm-up never counts.

    ``cancelled`` were cut in flight at the end of a timed run: aiperf tells only its log.
    """

    total: int
    warmup: int
    ok: int
    errors: int
    cancelled: int
    errors_by_category: Mapping[str, int] = field(default_factory=dict)

    @property
    def profiled(self) -> int:
        """The requests of the window that ended, well or not."""
        return self.ok + self.errors


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCounters:
    """Read from the running engine before the client starts and after it ended, so the requests of
    the warm-up are in every count; None where the engine does not tell.

    ``acceptance_length`` is the realised mean (tokens a verify step, before truncation) over
    ``verify_steps``; ``preemptions`` how often a request lost its pages and was computed again;
    ``mono_coverage`` mono steps over eligible ones (None without one) and ``mono_share`` over all
    decode steps, ``mono_refusals`` the steps that mono did not serve, by dispatch code;
    ``prefix_cache_hit_share`` the input tokens found in the cache over all of them (0 … 1);
    ``refusals`` the requests that the server refused, by code.
    """

    acceptance_length: float | None = None
    verify_steps: int | None = None
    preemptions: int | None = None
    peak_running: float | None = None
    peak_waiting: float | None = None
    kv_cache_usage_peak: float | None = None
    prefix_cache_hit_share: float | None = None
    mono_coverage: float | None = None
    mono_share: float | None = None
    mono_refusals: Mapping[str, int] = field(default_factory=dict)
    refusals: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The figures of one throughput point.

    Latencies in ms; interactivity in tokens/s a user: ``interactivity_tok_s.p90`` is
    1000 / p90(ITL), the slow tail, and ``e2e_interactivity_tok_s.p90`` is 1 / p90(E2EL_i / OSL_i)
    (InferenceX's North Star). Throughput in tokens/s divided by accelerators.
    ``tpot_ms`` is ``itl_ms`` by definition (`infx.analysis.measurements`). ``context`` is input and
    output of a request in tokens; ``steady_s`` the seconds of the window in which all lanes were
    open (None: no lanes were asked, or never all open). ``error_bounds`` maps a latency to the
    bounds that its failed requests leave; empty when none failed.
    ``theoretical_prefix_hit_share`` is the share of replayed sessions' input (0 … 1) that a cache
    without limits would find; ``cached_input`` the input tokens of a request that the server says
    it found in its cache, and ``prefix_hit_share`` their share of all input (None: it does not say
    it with every answer).
    """

    window_s: float
    requests: RequestAccounting
    observed_conc: float
    isl: Distribution
    osl: Distribution
    ttft_ms: Distribution
    itl_ms: Distribution
    e2el_ms: Distribution
    interactivity_tok_s: Distribution
    e2e_interactivity_tok_s: Distribution
    qps: float
    tput_tok_s_gpu: float
    output_tput_tok_s_gpu: float
    input_tput_tok_s_gpu: float
    osl_mismatches: int
    theoretical_prefix_hit_share: float | None = None
    tpot_ms: Distribution | None = None
    context: Distribution | None = None
    steady_s: float | None = None
    error_bounds: Mapping[str, Bounds] = field(default_factory=dict)
    cached_input: Distribution | None = None
    prefix_hit_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """What the accelerators of a point drew over its window, from the job's log of their power.

    ``energy_j`` is the sum over ``gpus`` of each one's trapezoid; ``avg_power_w`` that over the
    window. Figures are None and ``reasons`` says why where the log does not cover the window.
    ``source`` is the tool that was read.
    """

    source: str
    gpus: int
    window_s: float
    energy_j: float | None = None
    avg_power_w: float | None = None
    j_per_output_token: float | None = None
    j_per_total_token: float | None = None
    reasons: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """True when the figures may be used."""
        return not self.reasons and self.energy_j is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterScore:
    """One filter of a task: the share of right answers (0 … 1), its standard error, its bar."""

    score: float
    stderr: float
    bar: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What lm-eval found for one task.

    ``questions_hash`` is the sha256 of the requests as sent: equal hashes, same questions.
    ``empty`` counts answers without text (they score 0 without a word from the harness), ``cut``
    those that hit the limit of ``max_tokens`` tokens (0 when it is unknown).
    """

    task: str
    questions: int
    limit: int | None
    shots: int
    filters: Mapping[str, FilterScore]
    questions_hash: str
    empty: int = 0
    wall_s: float = 0.0
    cut: int = 0
    max_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What made the number, read from the machine and from the running server.

    ``server`` is the resolved configuration that the server itself reports; secrets in ``env`` are
    redacted.
    """

    infx_version: str = ""
    git_revision: str = ""
    git_dirty: bool | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    host: Mapping[str, Any] = field(default_factory=dict)
    server_argv: tuple[str, ...] = ()
    client_argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    server: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One execution of a job. Times are seconds since the epoch, UTC.

    ``batch`` is the name under which the scheduler was given it, ``task`` its number in that array
    (None: it was submitted alone), ``node`` the scheduler's name of the machine that ran it.
    ``repeat`` counts the times that a run measures the job's points, from 1.
    """

    run_id: str
    job_id: str
    number: int
    unique_name: str = ""
    scheduler_id: str = ""
    started_s: float = 0.0
    ended_s: float = 0.0
    node: str = ""
    batch: str = ""
    task: int | None = None
    repeat: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRecord:
    """point.json: the point, what became of it, its figures and its evidence.

    ``artifacts`` maps a name (``aiperf``, ``lm-eval``, ``server-log``) to a path relative to the
    run's folder. A throughput point carries ``measurement`` (filled when it is gathered, from the
    raw exports) and ``counters``, an evaluation ``score``.
    """

    schema_version: str = "1"
    point: Point
    status: Status
    attempt: Attempt
    findings: tuple[Finding, ...] = ()
    measurement: Measurement | None = None
    counters: EngineCounters | None = None
    score: Score | None = None
    energy: Energy | None = None
    provenance: Provenance = Provenance()
    artifacts: Mapping[str, str] = field(default_factory=dict)
    phases_s: Mapping[str, float] = field(default_factory=dict)
