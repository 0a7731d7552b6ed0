"""ATOM's command lines, what mono and others refuse, and what a running one tells."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infx import frameworks
from infx.domain.acceptance import Acceptance
from infx.domain.point import Arm
from infx.frameworks.base import PROCESS
from infx.frameworks.options import flags_file
from tests.frameworks.arms import arm, value
from tests.frameworks.every_axis import check_every_axis
from tests.frameworks.golden_argv import FOLDER, cases, check

ATOM = frameworks.get("atom")
QUANTISED = json.dumps({"global_quant_config": "ptpc_fp8", "exclude_layer": ["lm_head"]})
M3_AXES = {
    "tp": 4,
    "k": 3,
    "mono": "on",
    "kv_cache_dtype": "fp8",
    "index_cache_dtype": "fp8",
    "block_size": 128,
}
M3_OPTIONS = {"online-quant-config": QUANTISED, "atom-fuse-mxfp8-shared-into-mxfp4": True}
GQA = "Inferact/MiniMax-M3-EAGLE3-GQA"
GOLDEN_AL = Acceptance("synthetic", 2.78, golden="minimaxm3_eagle3_gqa", thinking="on", k=3)


def atom(**fields: Any) -> Arm:
    return arm("atom", fields.pop("weights", "hf:amd/MiniMax-M3-MXFP4"), **fields)


def m3(*, axes: Any = None, options: Any = None, **fields: Any) -> Arm:
    """An arm of MiniMax-M3 with mono and EAGLE3, as public entries have it."""
    drafts = {"method": "eagle3", "draft": GQA, "acceptance": GOLDEN_AL}
    chosen = {"axes": M3_AXES | (axes or {}), "options": M3_OPTIONS | (options or {})}
    return atom(**(drafts | chosen | fields))


SIZES = tuple(range(4, 76, 4))
ARMS: dict[str, Arm] = {
    "bare": atom(),
    "m3-mono-c8": m3(axes={"max_num_seqs": 16, "capture_sizes": SIZES}),
    "m3-mono-off": m3(axes={"mono": "off", "max_num_seqs": 16}),
    "m3-evaluation": m3(acceptance=Acceptance(k=3)),
    "m3-tp2": m3(axes={"tp": 2, "mono": "off", "max_num_seqs": 8}),
    "m3-offload-c40": m3(
        axes={"kv_offload": "dram", "kv_offload_gb": 1028, "max_num_seqs": 80},
        options={
            "lmcache-cache-policy": "ATOM_SLRU",
            "lmcache-lookup-server-worker-ids": "0,1,2,3",
        },
    ),
    "m31-mxfp4-caches": m3(
        axes={"kv_cache_dtype": "mxfp4", "index_cache_dtype": "mxfp4", "k": 7},
        options={"atom-prefill-decode-interval": 10, "atom-enable-prefill-delayer": True},
        method="dspark",
        draft="",
        acceptance=Acceptance("synthetic", 4.0, k=7),
    ),
    "experts-and-dp-attention": atom(axes={"tp": 8, "ep": 8, "dp_attention": True}),
    "pipeline": atom(axes={"tp": 4, "pp": 2, "max_num_batched_tokens": 16384}),
    "mtp": atom(axes={"k": 1}, method="mtp", acceptance=Acceptance("synthetic", 1.79, k=1)),
    "no-cache": atom(axes={"prefix_caching": False, "chunked_prefill": False}),
    "cache": atom(axes={"prefix_caching": True, "chunked_prefill": True, "max_model_len": 9416}),
}


@pytest.mark.parametrize("case", ARMS)
def test_golden_argv(case: str) -> None:
    assert not ATOM.refusals(ARMS[case])
    check(case, ARMS[case])


def test_every_golden_file_has_its_arm() -> None:
    assert cases("atom") == set(ARMS)


@pytest.mark.parametrize("case", ARMS)
def test_every_flag_is_one_of_the_engine(case: str) -> None:
    argv = ATOM.launch(ARMS[case], "h", 1, FOLDER).argv
    flags = {word for word in argv if word.startswith("--")}
    assert flags <= flags_file("atom").spellings


def test_every_axis_is_served_or_refused() -> None:
    refused = {"kv_offload_backend"}
    served = {"mono", "tp", "pp", "ep", "dp_attention", "kv_cache_dtype", "index_cache_dtype", "k"}
    served |= {"block_size", "max_num_seqs", "max_num_batched_tokens", "max_model_len"}
    served |= {"capture_sizes", "prefix_caching", "chunked_prefill", "kv_offload", "kv_offload_gb"}

    def make(**fields: Any) -> Arm:
        mono = fields["axes"].get("mono") == "on"
        return m3() if mono else atom(**fields)

    check_every_axis(make, served, refused)


def test_the_http_port_is_not_the_engines_own() -> None:
    argv = ATOM.launch(atom(), "127.0.0.1", 8123, FOLDER).argv
    assert value(argv, "--server-port") == "8123"
    assert "--port" not in argv


@pytest.mark.parametrize("mono", ["off", "on"])
def test_mono_is_always_said(mono: str) -> None:
    env = ATOM.launch(m3(axes={"mono": mono}), "h", 1, FOLDER).env
    assert env["ATOM_MONO_ENABLE"] == str(int(mono == "on"))


@pytest.mark.parametrize(
    ("changes", "code", "sentence"),
    [
        ({"axes": {"tp": 2}}, "mono-tp", "mono: on with tp 2: expected tp 4"),
        ({"axes": {"pp": 2}}, "mono-pp", "expected pp 1"),
        ({"axes": {"ep": 4}}, "mono-ep", "expected ep 1"),
        ({"axes": {"dp_attention": True}}, "mono-dp-attention", "split by tp"),
        ({"axes": {"kv_cache_dtype": "bf16"}}, "mono-kv-cache", "expected fp8 or mxfp4"),
        ({"axes": {"index_cache_dtype": "bf16"}}, "mono-index-cache", "expected fp8 or mxfp4"),
        ({"axes": {"block_size": 16}}, "mono-block-size", "expected 128"),
        ({"axes": {"block_size": None}}, "mono-block-size", "expected 128"),
        ({"axes": {"max_model_len": 2_000_000}}, "mono-context", "1048576 at most"),
        ({"options": {"online-quant-config": "{}"}}, "mono-projections", "ptpc_fp8 (PTPC FP8)"),
        ({"options": {"online-quant-config": "no"}}, "mono-projections", "ptpc_fp8 (PTPC FP8)"),
        (
            {"options": {"atom-fuse-mxfp8-shared-into-mxfp4": False}},
            "mono-shared-expert",
            "ATOM_FUSE_MXFP8_SHARED_INTO_MXFP4=1",
        ),
        (
            {"options": {"dspark-config": '{"ragged": true}'}},
            "mono-verify",
            "expected a fixed number of drafts",
        ),
        ({"axes": {"k": 16}}, "mono-rows-per-request", "17 rows: expected 16 at most"),
        ({"options": {"enable-tbo": "all"}}, "option-conflict", "enable-tbo"),
        ({"options": {"cudagraph-mode": "PIECEWISE"}}, "option-conflict", "expected FULL"),
    ],
)
def test_what_mono_needs(changes: dict[str, Any], code: str, sentence: str) -> None:
    [refusal] = ATOM.refusals(m3(**changes))
    assert (refusal.code, refusal.axis) == (code, "mono")
    assert sentence in refusal.sentence
    without = {"axes": changes.get("axes", {}) | {"mono": "off"}}
    assert not ATOM.refusals(m3(**(changes | without)))


def test_a_recipe_may_fuse_the_shared_expert_by_its_env() -> None:
    options = {"atom-fuse-mxfp8-shared-into-mxfp4": None}
    assert not ATOM.refusals(m3(options=options, env={"ATOM_FUSE_MXFP8_SHARED_INTO_MXFP4": "1"}))


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (atom(axes={"kv_cache_dtype": "fp32"}), "unsupported-dtype"),
        (atom(axes={"tp": 8, "ep": 4}), "unsupported-axis"),
        (atom(axes={"k": 3, "capture_sizes": (4, 6)}, method="mtp"), "unsupported-axis"),
        (atom(axes={"k": 3}, method="eagle3"), "draft-missing"),
        (atom(axes={"k": 3}, method="mtp", draft="x/y"), "option-conflict"),
        (atom(axes={"k": 3}, method="ngram"), "unsupported-method"),
        (m3(acceptance=Acceptance("synthetic", 4.5, k=3)), "acceptance-range"),
        (m3(acceptance=Acceptance("synthetic", 0.5, k=3)), "acceptance-range"),
        (m3(acceptance=Acceptance("synthetic", 2.78, "geometric", k=3)), "unsupported-law"),
        (atom(options={"max-num-seqs": 8}), "option-conflict"),
        (atom(options={"server-port": 8}), "option-conflict"),
        (atom(options={"data-parallel-size": 2}), "option-conflict"),
        (atom(options={"prefill-context-parallel-size": 2}), "option-conflict"),
        (atom(env={"ATOM_MONO_ENABLE": "1"}), "option-conflict"),
        (atom(weights="random:0"), "unsupported-weights"),
        (atom(options={"atom-enable-prefill-delayer": True}), "prefill-delayer"),
        (
            atom(axes={"kv_offload": "dram", "kv_offload_gb": 8, "prefix_caching": False}),
            "option-conflict",
        ),
    ],
)
def test_other_refusals(changed: Arm, code: str) -> None:
    assert [refusal.code for refusal in ATOM.refusals(changed)] == [code]


def test_scheduled_drafts_cannot_be_forced() -> None:
    options = {"dspark-config": '{"confidence_schedule": true}'}
    told = m3(axes={"mono": "off"}, options=options, method="dspark")
    assert [refusal.code for refusal in ATOM.refusals(told)] == ["option-conflict"]


def test_the_delayer_with_an_interval_or_data_parallel_attention() -> None:
    on = {"atom-enable-prefill-delayer": True}
    assert not ATOM.refusals(atom(options=on | {"atom-prefill-decode-interval": 10}))
    assert not ATOM.refusals(atom(options=on, axes={"tp": 8, "dp_attention": True}))


def started(argv: list[str]) -> dict[str, Any]:
    return {PROCESS: {"argv": argv, "env": {}}}


@pytest.mark.parametrize(
    ("words", "length"),
    [
        (["--spec-decode-acceptance-length", "2.78"], 2.78),
        (["--spec-decode-acceptance-length=2.78"], 2.78),
        (["--spec_decode_acceptance_length", "2.78"], 2.78),
        (["--spec-decode-acceptance-rate", "0.5"], 2.5),
        ([], None),
    ],
)
def test_acceptance_of_the_running_process(words: list[str], length: float | None) -> None:
    argv = ["python3", "-m", "atom", "--model", "m", "--num-speculative-tokens", "3", *words]
    mode = "real" if length is None else "synthetic"
    assert ATOM.acceptance(started(argv)) == Acceptance(mode, length, k=3)


def test_its_own_command_is_read_back() -> None:
    for case in ("m3-mono-c8", "m3-evaluation", "mtp", "bare"):
        told = ATOM.acceptance(started(list(ATOM.launch(ARMS[case], "h", 1, FOLDER).argv)))
        asked = ARMS[case].acceptance
        assert told is not None
        assert (told.mode, told.length) == (asked.mode, asked.length)


def test_a_process_that_cannot_be_read() -> None:
    assert ATOM.acceptance({"/server_info": {"tp_size": 4}}) is None
    assert ATOM.acceptance(started(["atom: api server"])) is None  # it renamed itself


def test_ranks_are_told_without_data_parallelism() -> None:
    assert ATOM.resolved({"/server_info": {"tp_size": 4, "dp_size": 1}}) == {"tp": 4}
    assert ATOM.resolved({"/server_info": {"tp_size": 1, "dp_size": 8}}) == {}


@pytest.mark.parametrize(("mark", "tail"), [(":", "_total"), ("_", "_total"), (":", "")])
def test_counters(mark: str, tail: str) -> None:
    def page(accepted: int, ones: int, twos: int, cached: int) -> str:
        return (
            f"atom{mark}mtp_accepted_tokens{tail} {accepted}\n"
            f'atom{mark}mtp_decode_steps{tail}{{accepted_tokens="1"}} {ones}\n'
            f'atom{mark}mtp_decode_steps{tail}{{accepted_tokens="2"}} {twos}\n'
            f"atom{mark}preemptions{tail} 3\n"
            f"atom{mark}prefix_cache_cached_tokens{tail} {cached}\n"
            f"atom{mark}prefix_cache_full_tokens{tail} {4 * cached}\n"
        )

    told = ATOM.counters(page(10, 10, 0, 5), page(188, 32, 78, 105))
    assert told.acceptance_length == pytest.approx(2.78)
    assert told.verify_steps == 100
    assert told.preemptions == 0
    assert told.prefix_cache_hit_share == 0.25


def test_counters_of_an_empty_page() -> None:
    assert ATOM.counters("", "").acceptance_length is None


def test_options_of_the_environment() -> None:
    options = {"atom-prefill-decode-interval": 8, "aiter-quick-reduce-quantization": "INT4"}
    env = ATOM.launch(atom(options=options), "h", 1, FOLDER).env
    assert env["ATOM_PREFILL_DECODE_INTERVAL"] == "8"
    assert env["AITER_QUICK_REDUCE_QUANTIZATION"] == "INT4"


def test_the_budget_is_shared_by_the_ranks_in_gib() -> None:
    env = ATOM.launch(ARMS["m3-offload-c40"], "h", 1, FOLDER).env
    assert float(env["LMCACHE_MAX_LOCAL_CPU_SIZE"]) * 2**30 * 4 == pytest.approx(1028e9, rel=1e-4)
    assert env["PYTHONHASHSEED"] == "0"
