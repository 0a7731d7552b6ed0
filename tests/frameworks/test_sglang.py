"""SGLang's command lines, what it refuses, and what a running one tells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from infx import frameworks
from infx.domain.acceptance import Acceptance
from infx.domain.point import Arm
from infx.frameworks.base import PROCESS
from infx.frameworks.options import flags_file
from infx.frameworks.prometheus import note
from infx.frameworks.sglang_server import INFO
from tests.frameworks.arms import arm, value
from tests.frameworks.every_axis import check_every_axis
from tests.frameworks.golden_argv import FOLDER, cases, check

SGLANG = frameworks.get("sglang")
LAW = "batch-min-variance"


def sglang(**fields: Any) -> Arm:
    return arm("sglang", fields.pop("weights", "hf:nvidia/MiniMax-M3-NVFP4"), **fields)


def drafting(method: str, *, k: int = 3, axes: Any = None, **fields: Any) -> Arm:
    told = {"acceptance": Acceptance("synthetic", 2.78, LAW, k=k)} | fields
    return sglang(axes={"k": k} | (axes or {}), method=method, **told)


ARMS: dict[str, Arm] = {
    "bare": sglang(),
    "eagle3-c8": drafting(
        "eagle3",
        draft="Inferact/MiniMax-M3-EAGLE3-GQA",
        axes={"tp": 4, "max_num_seqs": 16, "capture_sizes": tuple(range(4, 68, 4))},
        options={"mem-fraction-static": 0.85, "attention-backend": "flashinfer"},
    ),
    "eagle3-evaluation": drafting("eagle3", draft="x/y", acceptance=Acceptance(k=3)),
    "mtp": drafting("mtp", k=1, acceptance=Acceptance("synthetic", 1.79, LAW, k=1)),
    "dspark": drafting("dspark", k=7, acceptance=Acceptance("synthetic", 4.0, LAW, k=7)),
    "draft-model": drafting("draft-model", draft="x/small"),
    "dp-attention": sglang(axes={"tp": 8, "ep": 8, "dp_attention": True}),
    "pipeline-and-cache": sglang(
        axes={
            "pp": 2,
            "max_model_len": 65536,
            "block_size": 128,
            "kv_cache_dtype": "fp8",
            "max_num_batched_tokens": 8192,
        }
    ),
    "whole-prompts": sglang(
        axes={"prefix_caching": False, "chunked_prefill": False, "max_num_batched_tokens": 8192}
    ),
    "hicache": sglang(axes={"tp": 4, "kv_offload": "dram", "kv_offload_gb": 800}),
    "lmcache": sglang(
        axes={
            "tp": 4,
            "kv_offload": "dram",
            "kv_offload_gb": 800,
            "kv_offload_backend": "lmcache",
        }
    ),
}


@pytest.mark.parametrize("case", ARMS)
def test_golden_argv(case: str) -> None:
    assert not SGLANG.refusals(ARMS[case])
    check(case, ARMS[case])


def test_every_golden_file_has_its_arm() -> None:
    assert cases("sglang") == set(ARMS)


@pytest.mark.parametrize("case", ARMS)
def test_every_flag_is_one_of_the_engine(case: str) -> None:
    argv = SGLANG.launch(ARMS[case], "h", 1, FOLDER).argv
    flags = {word for word in argv if word.startswith("--")}
    assert flags <= flags_file("sglang").spellings


def test_every_axis_is_served_or_refused() -> None:
    refused = {"mono", "index_cache_dtype"}
    served = {"tp", "pp", "ep", "dp_attention", "kv_cache_dtype", "k", "block_size"}
    served |= {"max_num_seqs", "max_num_batched_tokens", "max_model_len", "capture_sizes"}
    served |= {"prefix_caching", "chunked_prefill", "kv_offload", "kv_offload_gb"}

    def make(**fields: Any) -> Arm:
        lmcache = fields["axes"].get("kv_offload_backend") == "native"
        changed = {"kv_offload_backend": "lmcache"} if lmcache else {}  # native is its default
        return sglang(**(fields | {"axes": fields["axes"] | changed}))

    check_every_axis(make, served | {"kv_offload_backend"}, refused)


def test_synthetic_acceptance_is_three_variables_and_real_acceptance_none() -> None:
    env = SGLANG.launch(ARMS["eagle3-c8"], "h", 1, FOLDER).env
    assert {name: env[name] for name in env if "SIMULATE" in name} == {
        "SGLANG_SIMULATE_ACC_LEN": "2.78",
        "SGLANG_SIMULATE_ACC_METHOD": "match-expected",
        "SGLANG_SIMULATE_ACC_TOKEN_MODE": "real-draft-token",
    }
    real = SGLANG.launch(ARMS["eagle3-evaluation"], "h", 1, FOLDER).env
    assert not [name for name in real if "SIMULATE" in name]


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (sglang(axes={"kv_cache_dtype": "fp32"}), "unsupported-dtype"),
        (sglang(axes={"mono": "on"}), "unsupported-axis"),
        (drafting("eagle3"), "draft-missing"),
        (drafting("mtp", draft="x/y"), "option-conflict"),
        (drafting("mtp", axes={"capture_sizes": (4, 6)}), "unsupported-axis"),
        (drafting("ngram"), "unsupported-method"),
        (drafting("mtp", acceptance=Acceptance("synthetic", 4.5, LAW, k=3)), "acceptance-range"),
        (
            drafting("mtp", acceptance=Acceptance("synthetic", 2.5, "min-variance", k=3)),
            "unsupported-law",
        ),
        (sglang(options={"speculative-num-steps": 3}), "option-conflict"),
        (sglang(options={"revision": "0123abc"}), "option-conflict"),
        (sglang(options={"config": "/settings.yaml"}), "option-conflict"),
        (sglang(axes={"tp": 8, "kv_offload": "dram", "kv_offload_gb": 4}), "unsupported-axis"),
        (sglang(env={"SGLANG_SIMULATE_ACC_LEN": "3"}), "option-conflict"),
        (
            sglang(
                axes={
                    "kv_offload": "dram",
                    "kv_offload_gb": 8,
                    "kv_offload_backend": "mooncake",
                }
            ),
            "unsupported-axis",
        ),
    ],
)
def test_refusals(changed: Arm, code: str) -> None:
    assert [refusal.code for refusal in SGLANG.refusals(changed)] == [code]


def test_the_revision_of_the_hub_is_asked() -> None:
    model = replace(sglang().model, revision="0123abc")
    argv = SGLANG.launch(replace(sglang(), model=model), "h", 1, FOLDER).argv
    assert value(argv, "--revision") == "0123abc"
    local = replace(model, weights="/models/m3")
    assert "--revision" not in SGLANG.launch(replace(sglang(), model=local), "h", 1, FOLDER).argv


def test_how_weights_are_read_may_change_answers() -> None:
    assert not SGLANG.options["load-format"].capacity


def info(env: dict[str, str] | None, **told: Any) -> dict[str, Any]:
    state = {} if env is None else {"env_vars": env}
    return {INFO: {"speculative_num_draft_tokens": 4, "internal_states": [state], **told}}


FORCED = {"SGLANG_SIMULATE_ACC_LEN": "2.78", "SGLANG_SIMULATE_ACC_METHOD": "match-expected"}


def test_the_server_tells_its_acceptance() -> None:
    assert SGLANG.acceptance(info(FORCED)) == Acceptance("synthetic", 2.78, LAW, k=3)
    assert SGLANG.acceptance(info({})) == Acceptance(k=3)
    off = {"SGLANG_SIMULATE_ACC_LEN": "-1"}
    assert SGLANG.acceptance(info(off)) == Acceptance(k=3)


def test_a_method_that_misses_its_length_has_none() -> None:
    told = SGLANG.acceptance(info(FORCED | {"SGLANG_SIMULATE_ACC_METHOD": "multinomial"}))
    assert told is not None
    assert (told.mode, told.length) == ("synthetic", None)


def test_a_server_that_keeps_its_variables_is_asked_of_the_system() -> None:
    process = {PROCESS: {"argv": [], "env": FORCED}}
    assert SGLANG.acceptance(info(None) | process) == Acceptance("synthetic", 2.78, LAW, k=3)
    assert SGLANG.acceptance(info(None)) is None


def test_the_running_configuration() -> None:
    answer = {
        **{"tp_size": 4, "pp_size": 1, "ep_size": 1, "enable_dp_attention": False},
        **{"max_running_requests": 16, "context_length": None, "page_size": 128},
        **{"kv_cache_dtype": "fp8_e4m3", "disable_radix_cache": False},
        **{"chunked_prefill_size": 8192, "version": "0.5.23"},
    }
    told = SGLANG.resolved(info({}, **answer))
    assert (told["tp"], told["max_num_seqs"], told["block_size"]) == (4, 16, 128)
    assert (told["kv_cache_dtype"], told["prefix_caching"], told["k"]) == ("fp8", True, 3)
    assert SGLANG.resolved({}) == {}


def scrape(tokens: dict[str, int], means: list[float | None], calls: int = 0) -> str:
    lines = "".join(
        f'sglang:realtime_tokens_total{{dp_rank="{rank}",mode="decode"}} {count}\n'
        f'sglang:realtime_tokens_total{{dp_rank="{rank}",mode="prefill_compute"}} 9999\n'
        for rank, count in tokens.items()
    )
    cached = f'sglang:cached_tokens_total{{cache_source="device"}} {calls}\n'
    states = [{} if mean is None else {"avg_spec_accept_length": mean} for mean in means]
    page = f"{lines}{cached}sglang:prompt_tokens_total {4 * calls}\n"
    return page + note(INFO, {"internal_states": states})


def test_the_realised_length_is_that_of_the_window() -> None:
    """100 steps of 2 tokens came before; the 1,000 steps since made 2,780."""
    told = SGLANG.counters(scrape({"0": 200}, [2.0]), scrape({"0": 2980}, [2980 / 1100], 8))
    assert told.acceptance_length == pytest.approx(2.78)
    assert told.verify_steps == 1000
    assert told.prefix_cache_hit_share == 0.25


def test_the_ranks_of_data_parallel_attention_are_added() -> None:
    told = SGLANG.counters(
        scrape({"0": 0, "1": 0}, [None, None]), scrape({"0": 300, "1": 250}, [3.0, 2.5])
    )
    assert (told.acceptance_length, told.verify_steps) == (pytest.approx(2.75), 200)


def test_a_server_that_tells_no_mean() -> None:
    assert SGLANG.counters("", scrape({"0": 40}, [None])).acceptance_length is None
    assert SGLANG.counters("", "").acceptance_length is None
