"""TensorRT-LLM's command lines and file, what it refuses, and what a running one tells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from infx import frameworks
from infx.domain.acceptance import Acceptance
from infx.domain.point import Arm
from infx.frameworks.base import PROCESS
from infx.frameworks.options import flags_file
from infx.frameworks.trtllm import CONFIG, FORCED
from tests.frameworks.arms import arm, value
from tests.frameworks.every_axis import check_every_axis
from tests.frameworks.golden_argv import FOLDER, cases, check

TRTLLM = frameworks.get("trtllm")


def trtllm(**fields: Any) -> Arm:
    return arm("trtllm", fields.pop("weights", "hf:nvidia/MiniMax-M3-NVFP4"), **fields)


def drafting(method: str, *, k: int = 3, length: float = 2.78, **fields: Any) -> Arm:
    axes = {"k": k} | fields.pop("axes", {})
    told = {"acceptance": Acceptance("synthetic", length, k=k)} | fields
    return trtllm(axes=axes, method=method, **told)


ARMS: dict[str, Arm] = {
    "bare": trtllm(),
    "eagle3-c8": drafting(
        "eagle3",
        draft="Inferact/MiniMax-M3-EAGLE3-GQA",
        axes={
            "tp": 4,
            "max_num_seqs": 8,
            "max_num_batched_tokens": 16384,
            "max_model_len": 1048576,
            "block_size": 128,
            "kv_cache_dtype": "fp8",
            "index_cache_dtype": "fp8",
            "prefix_caching": True,
            "chunked_prefill": True,
            "capture_sizes": tuple(range(4, 36, 4)),
        },
        options={
            "kv-cache-config.free-gpu-memory-fraction": 0.9,
            "sparse-attention-config.algorithm": "minimax_m3",
            "moe-config.backend": "TRTLLM",
            "trust-remote-code": True,
            "reasoning-parser": "minimax_m3",
        },
    ),
    "eagle3-evaluation": drafting("eagle3", draft="x/y", acceptance=Acceptance(k=3)),
    "mtp": drafting("mtp", k=1, length=1.79),
    "dspark": drafting("dspark", k=7, length=4.0, draft="x/dspark"),
    "draft-model": drafting("draft-model", length=3.0, draft="x/small"),
    "ngram": drafting("ngram", length=2.0),
    "experts-and-dp-attention": trtllm(axes={"tp": 8, "ep": 8, "dp_attention": True}),
    "pipeline": trtllm(axes={"tp": 4, "pp": 2}),
    "no-cache": trtllm(axes={"prefix_caching": False, "chunked_prefill": False}),
    "offload": trtllm(axes={"tp": 4, "kv_offload": "dram", "kv_offload_gb": 1072}),
}


@pytest.mark.parametrize("case", ARMS)
def test_golden_argv(case: str) -> None:
    assert not TRTLLM.refusals(ARMS[case])
    check(case, ARMS[case])


def test_every_golden_file_has_its_arm() -> None:
    assert cases("trtllm") == set(ARMS)


def content(arm: Arm) -> Any:
    launch = TRTLLM.launch(arm, "h", 1, FOLDER)
    assert value(launch.argv, "--config") == str(FOLDER / CONFIG)
    return yaml.safe_load(launch.files[CONFIG])


@pytest.mark.parametrize("case", ARMS)
def test_every_flag_is_one_of_the_engine(case: str) -> None:
    argv = TRTLLM.launch(ARMS[case], "h", 1, FOLDER).argv
    flags = {word for word in argv if word.startswith("--")}
    assert flags <= flags_file("trtllm").spellings


@pytest.mark.parametrize("case", ARMS)
def test_every_entry_of_the_file_is_one_of_the_engine(case: str) -> None:
    known = {option.key for option in TRTLLM.options.values() if option.key}
    told = {"enable_attention_dp", "enable_chunked_prefill"}  # flags, and entries of the file
    told.add("speculative_config.num_nextn_predict_layers")
    assert set(paths(content(ARMS[case]))) <= known | told


def paths(section: dict[str, Any], before: str = "") -> list[str]:
    found = []
    for name, below in section.items():
        deeper = isinstance(below, dict)
        found += paths(below, f"{before}{name}.") if deeper else [f"{before}{name}"]
    return found


def test_the_file_holds_what_the_axes_say() -> None:
    told = content(ARMS["eagle3-c8"])
    assert told["cuda_graph_config"]["batch_sizes"] == list(range(1, 9))
    assert told["speculative_config"] == {
        "decoding_type": "Eagle3",
        "max_draft_len": 3,
        "speculative_model": "Inferact/MiniMax-M3-EAGLE3-GQA",
    }
    assert told["kv_cache_config"]["tokens_per_block"] == 128
    assert told["return_perf_metrics"]
    assert content(ARMS["offload"])["kv_cache_config"]["host_cache_size"] == 268 * 10**9


def test_every_axis_is_served_or_refused() -> None:
    refused = {"mono"}
    served = {"tp", "pp", "ep", "dp_attention", "kv_cache_dtype", "index_cache_dtype", "k"}
    served |= {"block_size", "max_num_seqs", "max_num_batched_tokens", "max_model_len"}
    served |= {"capture_sizes", "prefix_caching", "chunked_prefill", "kv_offload", "kv_offload_gb"}

    def make(**fields: Any) -> Arm:
        backend = fields["axes"].get("kv_offload_backend")
        changed = {"kv_offload_backend": "lmcache"} if backend else {}  # native is its only one
        return trtllm(**(fields | {"axes": fields["axes"] | changed}))

    check_every_axis(make, served, refused | {"kv_offload_backend"})


@pytest.mark.parametrize(("length", "forced"), [(2.78, "1.78"), (4.0, "3"), (1.79, "0.79")])
def test_the_forced_count_is_the_length_less_one(length: float, forced: str) -> None:
    launch = TRTLLM.launch(drafting("eagle3", draft="x/y", length=length), "h", 1, FOLDER)
    assert launch.env[FORCED] == forced
    told = TRTLLM.acceptance({PROCESS: {"argv": [], "env": launch.env}})
    assert told is not None
    assert told.length == pytest.approx(length, abs=1e-9)


def test_the_revision_of_the_hub_is_asked() -> None:
    model = replace(trtllm().model, revision="0123abc")
    argv = TRTLLM.launch(replace(trtllm(), model=model), "h", 1, FOLDER).argv
    assert value(argv, "--revision") == "0123abc"


def test_real_acceptance_says_nothing() -> None:
    env = TRTLLM.launch(ARMS["eagle3-evaluation"], "h", 1, FOLDER).env
    assert FORCED not in env
    assert TRTLLM.acceptance({PROCESS: {"argv": [], "env": env}}) == Acceptance()
    assert TRTLLM.acceptance({"/version": {"version": "1.3"}}) is None


@pytest.mark.parametrize("forced", ["0", "0.0", "many", ""])
def test_what_the_engine_reads_as_nothing_is_real(forced: str) -> None:
    assert TRTLLM.acceptance({PROCESS: {"argv": [], "env": {FORCED: forced}}}) == Acceptance()


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (trtllm(axes={"kv_cache_dtype": "bf16"}), "unsupported-dtype"),
        (trtllm(axes={"index_cache_dtype": "mxfp4"}), "unsupported-dtype"),
        (drafting("eagle3"), "draft-missing"),
        (drafting("mtp", length=1.0), "unsupported-law"),
        (drafting("draft-model", draft="x/y", length=2.78), "unsupported-law"),
        (drafting("mtp", length=4.5), "acceptance-range"),
        (trtllm(options={"kv-cache-config.tokens-per-block": 64}), "option-conflict"),
        (trtllm(env={FORCED: "2"}), "option-conflict"),
        (trtllm(options={"revision": "0123abc"}), "option-conflict"),
    ],
)
def test_refusals(changed: Arm, code: str) -> None:
    assert [refusal.code for refusal in TRTLLM.refusals(changed)] == [code]


def test_counters() -> None:
    def page(steps: int, first: int, second: int, prompts: int) -> str:
        labels = 'engine_type="undefined",model_name="undefined",token_position='
        return (
            f'trtllm_spec_decode_drafted_tokens_total{{{labels}"0"}} {steps}\n'
            f'trtllm_spec_decode_drafted_tokens_total{{{labels}"1"}} {steps}\n'
            f'trtllm_spec_decode_accepted_tokens_total{{{labels}"0"}} {first}\n'
            f'trtllm_spec_decode_accepted_tokens_total{{{labels}"1"}} {second}\n'
            f"trtllm_prompt_tokens_total {prompts}\n"
            f"trtllm_prompt_cached_tokens_total {prompts // 4}\n"
        )

    told = TRTLLM.counters(page(10, 10, 0, 0), page(110, 110, 78, 400))
    assert told.acceptance_length == pytest.approx(2.78)
    assert (told.verify_steps, told.prefix_cache_hit_share) == (100, 0.25)
    assert TRTLLM.counters("", page(100, 100, 78, 0)).acceptance_length == pytest.approx(2.78)
    assert TRTLLM.counters("", "").acceptance_length is None
