from __future__ import annotations

import pytest

from infx.domain.point import PUBLISHED_S, Agentic
from infx.domain.serial import decode, encode
from infx.domain.vocabulary import TRACES
from tests.job.jobs import arm, point

PUBLIC = "semianalysis_cc_traces_weka_062126"
CAPPED = f"{PUBLIC}_256k"
LOCAL = "/data/traces"


def test_the_defaults_are_those_of_the_public_runs() -> None:
    load = Agentic(trace=PUBLIC)
    assert (load.duration_s, load.warmup_requests_per_lane, load.seed) == (3600, 10, 42)
    assert (load.trajectory_start_min_ratio, load.trajectory_start_max_ratio) == (0.25, 0.75)
    assert load.error_share == 0.10
    assert load.submission_valid


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (Agentic(trace=PUBLIC, duration_s=PUBLISHED_S), ()),
        (Agentic(trace=PUBLIC, duration_s=PUBLISHED_S - 1), ("duration-s 899 is under 900",)),
        (
            Agentic(trace=LOCAL, content="ab" * 32),
            ("the trace traces is none of the published ones",),
        ),
        (
            Agentic(trace=PUBLIC, idle_gap_cap_s=300),
            ("idle-gap-cap-s changes the recorded pauses",),
        ),
    ],
)
def test_what_no_submission_may_hold(load: Agentic, words: tuple[str, ...]) -> None:
    assert load.submission_faults == words
    assert load.submission_valid == (not words)


@pytest.mark.parametrize(
    ("load", "tokens"),
    [
        (Agentic(trace=PUBLIC), 0),
        (Agentic(trace=CAPPED), 256_000),
        (Agentic(trace=CAPPED, max_context=100_000), 100_000),
        (Agentic(trace=PUBLIC, max_context=100_000), 100_000),
        (Agentic(trace=LOCAL, longest=500), 500),
        (Agentic(trace=LOCAL, longest=500, max_context=600), 500),
        (Agentic(trace=LOCAL, longest=500, max_context=400), 400),
    ],
)
def test_the_longest_request_that_is_sent(load: Agentic, tokens: int) -> None:
    assert load.context == tokens


def test_words_tell_folders_of_one_name_apart() -> None:
    assert Agentic(trace=PUBLIC).words == f"agentic {PUBLIC}, 3600 s"
    local = Agentic(trace=f"{LOCAL}/", content="0123456789abcdef", duration_s=60)
    assert local.words == "agentic traces (01234567), 60 s"


def test_a_point_of_sessions_is_read_back() -> None:
    made = point(arm(), workload=Agentic(trace=PUBLIC, max_context=9, use_chat_template=True))
    assert decode(encode(made), type(made)) == made


def test_names_are_those_that_aiperf_accepts() -> None:
    from aiperf.common.scenario.registry import get_scenario

    accepted = set(get_scenario("inferencex-agentx-mvp").require_loader)
    assert accepted - {"weka_trace", "weka_hf"} == set(TRACES)
    assert get_scenario("inferencex-agentx-mvp").min_benchmark_duration_seconds == PUBLISHED_S
