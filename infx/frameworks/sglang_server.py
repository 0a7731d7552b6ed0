"""What a running SGLang tells: /server_info in our names, and the realised acceptance length.

Facts of SGLang 0.5.23: managers/scheduler_components/{internal_state,metrics_reporter}.py,
observability/metrics_collector.py, environ.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infx.domain.acceptance import Acceptance
from infx.domain.record import EngineCounters
from infx.frameworks.base import PROCESS
from infx.frameworks.counting import grown, share, whole
from infx.frameworks.prometheus import Page, notes, parse

__all__ = [
    "ACC_LEN",
    "ACC_METHOD",
    "ACC_TOKENS",
    "INFO",
    "PAGES",
    "realised",
    "running_acceptance",
    "running_configuration",
]

INFO = "/server_info"
PAGES = (INFO, PROCESS)

ACC_LEN = "SGLANG_SIMULATE_ACC_LEN"
ACC_METHOD = "SGLANG_SIMULATE_ACC_METHOD"
ACC_TOKENS = "SGLANG_SIMULATE_ACC_TOKEN_MODE"

# Ours -> its name, where the words are the same.
SAME = {
    "tp": "tp_size",
    "pp": "pp_size",
    "ep": "ep_size",
    "dp_attention": "enable_dp_attention",
    "max_num_seqs": "max_running_requests",
    "max_model_len": "context_length",
    "block_size": "page_size",
    "version": "version",
}
CACHE_TYPES = {"bf16": "bf16", "bfloat16": "bf16", "fp8_e4m3": "fp8", "fp4_mx_block16": "mxfp4"}


def running_configuration(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the axes that the server tells; None for what it says nothing of."""
    told = answers.get(INFO)
    if not isinstance(told, Mapping):
        return {}
    radix, chunk = told.get("disable_radix_cache"), told.get("chunked_prefill_size")
    return {
        **{ours: told.get(its) for ours, its in SAME.items()},
        "kv_cache_dtype": CACHE_TYPES.get(str(told.get("kv_cache_dtype"))),
        "prefix_caching": None if radix is None else not radix,
        "chunked_prefill": None if chunk is None else chunk > 0,
        "k": max(0, (told.get("speculative_num_draft_tokens") or 1) - 1),
        "method": told.get("speculative_algorithm"),
    }


def running_acceptance(answers: Mapping[str, Any]) -> Acceptance | None:
    """Return the acceptance that the server's variables say: those of /server_info, or of the
    running process where it does not expose them. None when neither can be read.

    ``multinomial`` does not keep its length: it is told as a law that no plan asks for.
    """
    env = _variables(answers)
    if env is None:
        return None
    k = running_configuration(answers).get("k") or 0
    length = float(env.get(ACC_LEN) or -1)
    if length <= 0:
        return Acceptance(k=k)
    if env.get(ACC_METHOD, "match-expected") != "match-expected":
        return Acceptance("synthetic", None, "batch-min-variance", k=k)
    return Acceptance("synthetic", length, "batch-min-variance", k=k)


def realised(before: str, after: str) -> EngineCounters:
    """Return what happened between two scrapes that hold /server_info as a note.

    Verify steps are no counter of SGLang's, but the lifetime mean of /server_info is tokens over
    verify steps, and the tokens are a counter: both before an answer is cut to its length.
    """
    start, end = parse(before), parse(after)
    tokens, steps = _decoded(start, end), _verify_steps(before, after)
    return EngineCounters(
        acceptance_length=share(tokens, steps),
        verify_steps=whole(steps),
        preemptions=whole(grown(start, end, "sglang:num_retracted_requests_total")),
        prefix_cache_hit_share=share(
            grown(start, end, "sglang:cached_tokens_total"),
            grown(start, end, "sglang:prompt_tokens_total"),
        ),
    )


def _variables(answers: Mapping[str, Any]) -> Mapping[str, str] | None:
    for state in _states(answers.get(INFO)):
        if isinstance(told := state.get("env_vars"), Mapping):
            return told
    started = answers.get(PROCESS)
    return None if started is None else started["env"]


def _states(info: Any) -> list[Mapping[str, Any]]:
    """Return the state of each data-parallel rank, in their order."""
    states = info.get("internal_states") if isinstance(info, Mapping) else None
    return [state for state in states or [] if isinstance(state, Mapping)]


def _decoded(start: Page, end: Page) -> float | None:
    now, then = sum(_tokens(end).values()), sum(_tokens(start).values())
    return now - then if _tokens(end) else None


def _verify_steps(before: str, after: str) -> float | None:
    """Return the verify steps of the requests of all ranks; None where no mean is told yet."""
    means = [_means(after), _means(before)]
    now, then = _tokens(parse(after)), _tokens(parse(before))
    if not means[0] or len(means[0]) != len(now):
        return None
    return sum(
        now[rank] / mean - then.get(rank, 0.0) / (means[1].get(at) or mean)
        for at, (rank, mean) in enumerate(zip(sorted(now), means[0].values(), strict=True))
    )


def _means(text: str) -> dict[int, float]:
    states = _states(notes(text).get(INFO))
    told = {at: state.get("avg_spec_accept_length") for at, state in enumerate(states)}
    return {at: float(mean) for at, mean in told.items() if mean}


def _tokens(page: Page) -> dict[int, float]:
    """Return the decoded tokens of each data-parallel rank."""
    found: dict[int, float] = {}
    for sample in page.samples:
        if sample.name == "sglang:realtime_tokens_total" and sample.labels.get("mode") == "decode":
            rank = int(sample.labels.get("dp_rank") or 0)
            found[rank] = found.get(rank, 0.0) + sample.value
    return found
