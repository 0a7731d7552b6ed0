"""vLLM's command lines, what its options refuse, and what a running one tells."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infx import frameworks
from infx.domain.acceptance import Acceptance
from infx.domain.axes import AXES, is_load
from infx.domain.errors import EngineError
from infx.domain.point import Arm, Model
from infx.frameworks import own_folders
from infx.frameworks.options import flags_file
from infx.frameworks.vllm_server import INFO
from tests.frameworks.arms import arm, value
from tests.frameworks.every_axis import check_every_axis
from tests.frameworks.golden_argv import HOST, NONCE, PORT, cases, check

VLLM = frameworks.get("vllm")
SYNTHETIC = Acceptance("synthetic", 2.78, k=3)


def vllm(**fields: Any) -> Arm:
    return arm("vllm", fields.pop("weights", "/models/m3"), **fields)


def speculative(method: str, k: int = 3, **fields: Any) -> Arm:
    return vllm(axes={"k": k}, method=method, **fields)


HUB = Model(name="m3", prefix="m3", precision="fp8", weights="hf:MiniMaxAI/M3", revision="0123abc")

ARMS: dict[str, Arm] = {
    "bare": vllm(),
    "hub": replace(vllm(), model=HUB),
    "capacity": vllm(
        axes={
            "tp": 4,
            "max_num_seqs": 8,
            "max_num_batched_tokens": 16384,
            "max_model_len": 131072,
            "block_size": 128,
            "capture_sizes": (4, 8, 16, 32),
        }
    ),
    "types": vllm(axes={"tp": 4, "kv_cache_dtype": "fp8", "index_cache_dtype": "mxfp4"}),
    "types-bf16": vllm(axes={"kv_cache_dtype": "bf16", "index_cache_dtype": "bf16"}),
    "pipeline": vllm(axes={"tp": 4, "pp": 2}),
    "experts": vllm(axes={"tp": 8, "ep": 8}),
    "data-parallel-attention": vllm(axes={"tp": 8, "ep": 8, "dp_attention": True}),
    "no-cache": vllm(axes={"prefix_caching": False, "chunked_prefill": False}),
    "cache": vllm(axes={"prefix_caching": True, "chunked_prefill": True}),
    "offload": vllm(axes={"tp": 4, "kv_offload": "dram", "kv_offload_gb": 600}),
    "offload-lmcache": vllm(
        axes={
            "tp": 4,
            "kv_offload": "dram",
            "kv_offload_gb": 600,
            "kv_offload_backend": "lmcache",
        }
    ),
    "eagle3-synthetic": speculative("eagle3", draft="hf/eagle", acceptance=SYNTHETIC),
    "eagle3-real": speculative("eagle3", draft="hf/eagle", acceptance=Acceptance(k=3)),
    "mtp-rates": speculative(
        "mtp", acceptance=Acceptance("synthetic", 2.5, "from-curve", k=3, curve=(0.8, 0.5, 0.2))
    ),
    "dspark": speculative("dspark", k=7, draft="hf/dspark", acceptance=Acceptance(k=7)),
    "draft-model": speculative("draft-model", draft="hf/small", acceptance=Acceptance(k=3)),
    "ngram-options": speculative(
        "ngram",
        acceptance=Acceptance(k=3),
        options={"speculative-config": '{"prompt_lookup_max":4}'},
    ),
    "options": vllm(
        options={
            "enforce-eager": True,
            "async-scheduling": False,
            "gpu-memory-utilization": 0.9,
            "allowed-media-domains": ("a.example", "b.example"),
            "attention-config": '{"backend":"TRITON_ATTN"}',
            "cpu-kvcache-space": 2,
            "seed": None,
        },
        axes={"index_cache_dtype": "fp8"},
        env={"VLLM_ROCM_USE_AITER": "1"},
    ),
}


@pytest.mark.parametrize("case", ARMS)
def test_golden(case: str) -> None:
    check(case, ARMS[case])


def test_golden_files_are_of_arms() -> None:
    assert cases("vllm") == set(ARMS)


@pytest.mark.parametrize("case", ARMS)
def test_no_arm_of_the_golden_files_is_refused(case: str) -> None:
    assert VLLM.refusals(ARMS[case]) == []


@pytest.mark.parametrize("case", ARMS)
def test_every_rendered_flag_is_one_of_the_data_file(case: str) -> None:
    argv = VLLM.launch(ARMS[case], HOST, PORT, Path("/FOLDER"), NONCE).argv
    known = flags_file("vllm").spellings
    assert {word for word in argv if word.startswith("--")} <= known


@pytest.mark.parametrize(
    ("fields", "code", "text"),
    [
        ({"axes": {"mono": "on"}}, "unsupported-axis", "no mono"),
        ({"axes": {"kv_cache_dtype": "mxfp4"}}, "unsupported-dtype", "kv-cache-dtype mxfp4"),
        ({"axes": {"kv_cache_dtype": "fp32"}}, "unsupported-dtype", "kv-cache-dtype fp32"),
        ({"axes": {"index_cache_dtype": "fp32"}}, "unsupported-dtype", "index-cache-dtype fp32"),
        (
            {"axes": {"kv_offload": "dram", "kv_offload_backend": "mooncake"}},
            "unsupported-axis",
            "no mooncake offload",
        ),
        ({"axes": {"tp": 8, "ep": 4}}, "unsupported-axis", "ep 4 with tp 8"),
        ({"weights": "random:0"}, "unsupported-weights", "random:0"),
        ({"axes": {"k": 3}, "method": "eagle3"}, "draft-missing", "needs a draft"),
        ({"axes": {"k": 3}, "method": "medusa"}, "unsupported-method", "'medusa'"),
        (
            {"axes": {"k": 3}, "method": "ngram", "draft": "hf/small"},
            "option-conflict",
            "not with hf/small",
        ),
        (
            {
                "axes": {"k": 3},
                "method": "mtp",
                "acceptance": Acceptance("synthetic", 5.0, k=3),
            },
            "acceptance-range",
            "5.0 is outside [1, 4]",
        ),
        (
            {
                "axes": {"k": 3},
                "method": "mtp",
                "acceptance": Acceptance("synthetic", 2.0, "geometric", k=3),
            },
            "unsupported-law",
            "cannot draw by geometric",
        ),
        ({"env": {"VLLM_SERVER_DEV_MODE": "0"}}, "option-conflict", "VLLM_SERVER_DEV_MODE"),
        ({"options": {"max-num-seqs": 4}}, "option-conflict", "the axis max-num-seqs"),
        ({"options": {"port": 4}}, "option-conflict", "by the job"),
        ({"options": {"revision": "0123abc"}}, "option-conflict", "by the job"),
        ({"options": {"kv-transfer-config": "{}"}}, "option-conflict", "the axis kv-offload"),
        ({"options": {"prefill-context-parallel-size": 2}}, "option-conflict", "the axis tp"),
        ({"options": {"speculative-config": "[1]"}}, "option-conflict", "not a JSON object"),
        ({"options": {"speculative-config": "{"}}, "option-conflict", "not a JSON object"),
        (
            {"options": {"speculative-config": '{"synthetic_acceptance_length":2}'}},
            "option-conflict",
            "says synthetic_acceptance_length",
        ),
        (
            {"options": {"attention-config": '{"indexer_kv_dtype":"fp8"}'}},
            "option-conflict",
            "says indexer_kv_dtype",
        ),
    ],
)
def test_refusals(fields: dict[str, Any], code: str, text: str) -> None:
    (refusal,) = VLLM.refusals(vllm(**fields))
    assert refusal.code == code
    assert text in refusal.sentence


def test_every_axis() -> None:
    served = {name for name in AXES if not is_load(name)} - {"mono"}
    check_every_axis(vllm, served=served, refused={"mono"})


def test_a_draft_of_the_hub_is_named_by_its_id() -> None:
    asked = speculative("eagle3", draft="hf:owner/eagle", acceptance=SYNTHETIC)
    argv = VLLM.launch(asked, HOST, PORT, Path("/FOLDER")).argv
    assert json.loads(value(argv, "--speculative-config"))["model"] == "owner/eagle"


def test_how_weights_are_read_may_change_answers() -> None:
    """``load-format: dummy`` makes them up."""
    assert not VLLM.options["load-format"].capacity
    assert VLLM.options["gpu-memory-utilization"].capacity


def test_an_evaluation_has_nothing_synthetic() -> None:
    throughput = speculative("eagle3", draft="d", acceptance=SYNTHETIC)
    evaluation = replace(throughput, acceptance=Acceptance(k=3))
    argv = [
        VLLM.launch(each, HOST, PORT, Path("/FOLDER")).argv for each in (throughput, evaluation)
    ]
    said = [json.loads(value(words, "--speculative-config")) for words in argv]
    assert said[0].pop("rejection_sample_method") == "synthetic"
    assert said[0].pop("synthetic_acceptance_length") == 2.78
    assert said[0] == said[1]


def test_weights_among_the_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(own_folders.VARIABLE, str(tmp_path))
    asked = vllm(weights="engines:tiny")
    with pytest.raises(EngineError, match="no model in") as missing:
        VLLM.launch(asked, HOST, PORT, tmp_path)
    assert missing.value.code == "weights-missing"
    folder = tmp_path / "models" / "tiny"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    assert VLLM.launch(asked, HOST, PORT, tmp_path).argv[2] == str(folder)
    assert VLLM.tokenizer(asked, tmp_path) == str(folder)


def test_tokenizer_of_the_hub_and_of_the_recipe(tmp_path: Path) -> None:
    assert VLLM.tokenizer(ARMS["hub"], tmp_path) == "MiniMaxAI/M3"
    named = replace(HUB, tokenizer="some/tokenizer")
    assert VLLM.tokenizer(replace(vllm(), model=named), tmp_path) == "some/tokenizer"


def told(**sections: Any) -> dict[str, Any]:
    """What /server_info answers, as far as it is read; field names as in vLLM 0.32.0."""
    drafting = sections.pop("speculative_config", None)
    config: dict[str, Any] = {
        "model_config": {"max_model_len": 2048, "enforce_eager": True, "model": "/models/m3"},
        "cache_config": {"block_size": 128, "cache_dtype": "bfloat16"},
        "parallel_config": {"tensor_parallel_size": 1, "data_parallel_size": 1},
        "scheduler_config": {"max_num_seqs": 4, "enable_chunked_prefill": True},
        "compilation_config": {"cudagraph_capture_sizes": [1, 2, 4]},
        "attention_config": {"indexer_kv_dtype": "auto"},
        "speculative_config": drafting,
    }
    return {INFO: {"vllm_config": config | sections, "vllm_env": {"VLLM_USAGE_SOURCE": NONCE}}}


def drafting(**fields: Any) -> dict[str, Any]:
    return told(speculative_config={"num_speculative_tokens": 3, "method": "eagle3", **fields})


def test_configuration_of_a_running_server() -> None:
    resolved = VLLM.resolved(told())
    expected = {
        "tp": 1,
        "ep": 1,
        "dp_attention": False,
        "k": 0,
        "max_num_seqs": 4,
        "max_model_len": 2048,
        "capture_sizes": [1, 2, 4],
        "chunked_prefill": True,
        "kv_cache_dtype": "bf16",
        "index_cache_dtype": "auto",
        "enforce-eager": True,
    }
    assert {name: resolved[name] for name in expected} == expected


def test_replicas_of_the_attention_are_ranks() -> None:
    ranks = {"tensor_parallel_size": 1, "data_parallel_size": 8, "enable_expert_parallel": True}
    resolved = VLLM.resolved(told(parallel_config=ranks))
    assert (resolved["tp"], resolved["ep"], resolved["dp_attention"]) == (8, 8, True)


@pytest.mark.parametrize(
    ("answers", "acceptance"),
    [
        ({}, None),
        ({INFO: {"vllm_config": {}}}, None),
        (told(speculative_config="SpeculativeConfig(method='eagle3')"), None),
        (told(), Acceptance()),
        (drafting(rejection_sample_method="standard"), Acceptance(k=3)),
        (
            drafting(
                rejection_sample_method="synthetic", synthetic_acceptance_rates=[1.0, 0.78, 0.0]
            ),
            Acceptance("synthetic", 2.78, k=3),
        ),
        (
            drafting(
                rejection_sample_method="synthetic", synthetic_acceptance_rates=[0.8, 0.5, 0.2]
            ),
            Acceptance("synthetic", 2.5, "from-curve", k=3, curve=(0.8, 0.5, 0.2)),
        ),
        (
            drafting(rejection_sample_method="synthetic", synthetic_acceptance_rates=[1.0] * 3),
            Acceptance("synthetic", 4.0, k=3),
        ),
    ],
)
def test_acceptance_of_a_running_server(
    answers: dict[str, Any], acceptance: Acceptance | None
) -> None:
    running = VLLM.acceptance(answers)
    if acceptance is None:
        assert running is None
        return
    assert running is not None
    assert running.length == pytest.approx(acceptance.length)
    assert replace(running, length=acceptance.length) == acceptance


def test_nonce() -> None:
    assert VLLM.nonce(told()) == NONCE
    assert VLLM.nonce({}) is None
    env = VLLM.launch(vllm(), HOST, PORT, Path("/FOLDER"), NONCE).env
    assert NONCE in env.values()


def page(**values: float) -> str:
    return "".join(f'vllm:{name}{{engine="0"}} {number}\n' for name, number in values.items())


def test_counters() -> None:
    before = page(
        spec_decode_num_drafts_total=10,
        spec_decode_num_accepted_tokens_total=10,
        num_preemptions_total=1,
        prefix_cache_queries_total=100,
        prefix_cache_hits_total=10,
        external_prefix_cache_hits_total=0,
    )
    after = page(
        spec_decode_num_drafts_total=110,
        spec_decode_num_accepted_tokens_total=188,
        num_preemptions_total=4,
        prefix_cache_queries_total=300,
        prefix_cache_hits_total=60,
        external_prefix_cache_hits_total=50,
    )
    counters = VLLM.counters(before, after)
    assert counters.acceptance_length == pytest.approx(2.78)
    assert counters.verify_steps == 100
    assert counters.preemptions == 3
    assert counters.prefix_cache_hit_share == pytest.approx(0.5)


def test_counters_of_a_server_without_drafts() -> None:
    counters = VLLM.counters("", page(num_preemptions_total=0))
    assert counters.acceptance_length is None
    assert counters.verify_steps is None
    assert counters.preemptions == 0
    assert counters.prefix_cache_hit_share is None
