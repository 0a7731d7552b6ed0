from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infx import frameworks
from infx.domain.acceptance import Acceptance
from infx.domain.axes import AXES, VOCABULARY
from infx.domain.errors import EngineError
from infx.domain.point import Arm
from infx.engine.arguments import parse as parse_engine
from infx.engine.deployment import refuse_mono
from infx.frameworks.infx import MOST_DRAFTS, SERVED_RANKS
from tests.frameworks.arms import arm, value

INFX = frameworks.get("infx")


def infx(**fields: Any) -> Arm:
    return arm("infx", "random:0", **fields)


def test_command_of_a_full_arm(tmp_path: Path) -> None:
    axes = {
        "k": 3,
        "max_num_seqs": 4,
        "max_num_batched_tokens": 256,
        "max_model_len": 1024,
        "block_size": 16,
        "capture_sizes": (4, 8, 16),
        "prefix_caching": False,
    }
    asked = infx(
        axes=axes,
        method="eagle3",
        acceptance=Acceptance("synthetic", 2.78, k=3),
        options={"threads": 2, "num-blocks": 64, "dtype": "float32", "queue-limit": 9},
    )
    argv = INFX.launch(asked, "127.0.0.1", 4321, tmp_path, "abc").argv
    expected = {
        "--weights": "random:0",
        "--served-model-name": "tiny",
        "--host": "127.0.0.1",
        "--port": "4321",
        "--threads": "2",
        "--num-blocks": "64",
        "--dtype": "float32",
        "--queue-limit": "9",
        "--max-num-seqs": "4",
        "--max-num-batched-tokens": "256",
        "--max-model-len": "1024",
        "--block-size": "16",
        "--capture-sizes": "4,8,16",
        "--kv-cache-dtype": "fp32",
        "--index-cache-dtype": "fp32",
        "--mono": "off",
        "--tensor-parallel-size": "1",
        "--speculative-method": "eagle3",
        "--num-speculative-tokens": "3",
        "--synthetic-acceptance-length": "2.78",
        "--acceptance-law": "min-variance",
        "--nonce": "abc",
    }
    assert {flag: value(argv, flag) for flag in expected} == expected
    assert "--no-prefix-caching" in argv


def test_the_engine_reads_its_command(tmp_path: Path) -> None:
    """The flags are those of the engine's own command line; the framework imports none of it."""
    argv = INFX.launch(infx(axes={"k": 3}, method="eagle3"), "127.0.0.1", 0, tmp_path, "abc").argv
    code = (
        "import sys; from infx.engine.arguments import parse; print(parse(sys.argv[1:])[0].nonce)"
    )
    words = [sys.executable, "-c", code, *argv[argv.index("infx.engine") + 1 :]]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "abc\n"), done.stderr


def test_a_curve_is_told_and_read_back(tmp_path: Path) -> None:
    curve = Acceptance("synthetic", 2.39, "from-curve", k=2, curve=(0.79, 0.6))
    arm = infx(axes={"k": 2}, method="dspark", acceptance=curve)
    argv = INFX.launch(arm, "h", 1, tmp_path).argv
    assert value(argv, "--acceptance-curve") == "0.79,0.6"
    assert value(argv, "--acceptance-law") == "from-curve"
    assert "--synthetic-acceptance-length" not in argv
    told = {"mode": "synthetic", "length": 2.39, "law": "from-curve", "k": 2, "curve": [0.79, 0.6]}
    assert INFX.acceptance({"/server_info": {"config": {"acceptance": told}}}) == curve
    assert arm.arm_id != infx(axes={"k": 2}, method="dspark").arm_id


def test_real_acceptance_says_nothing_of_a_length(tmp_path: Path) -> None:
    argv = INFX.launch(infx(axes={"k": 3}, method="eagle3"), "h", 1, tmp_path).argv
    assert "--synthetic-acceptance-length" not in argv
    assert "--nonce" not in argv
    assert "--speculative-method" not in INFX.launch(infx(), "h", 1, tmp_path).argv


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"axes": {"mono": "on", "tp": 2}}, "mono-tp"),
        ({"axes": {"mono": "on"}, "options": {"projection-dtype": "fp8"}}, "mono-projections"),
        ({"axes": {"mono": "on", "k": 16}, "method": "eagle3"}, "mono-rows-per-request"),
        ({"axes": {"mono": "on"}, "options": {"layers": "reference"}}, "option-conflict"),
        ({"axes": {"tp": 3}}, "unsupported-tp"),
        ({"axes": {"pp": 2}}, "unsupported-axis"),
        ({"axes": {"ep": 2}}, "unsupported-axis"),
        ({"axes": {"dp_attention": True}}, "unsupported-axis"),
        ({"axes": {"kv_offload": "dram"}}, "unsupported-axis"),
        ({"axes": {"chunked_prefill": False}}, "unsupported-axis"),
        ({"options": {"dtype": "bfloat16"}}, "unsupported-dtype"),
        ({"method": "medusa"}, "unsupported-method"),
    ],
)
def test_refusals(fields: dict[str, Any], code: str) -> None:
    assert [refusal.code for refusal in INFX.refusals(infx(**fields))] == [code]


@pytest.mark.parametrize(
    "fields",
    [
        {"axes": {"mono": "on", "tp": 2}},
        {"axes": {"mono": "on"}, "options": {"projection-dtype": "fp8"}},
        {"axes": {"mono": "on", "k": 16}, "method": "eagle3"},
        {"axes": {"mono": "on", "k": 15}, "method": "eagle3"},
    ],
)
def test_a_plan_says_of_mono_what_the_engine_says(fields: dict[str, Any], tmp_path: Path) -> None:
    arm = infx(**fields)
    argv = INFX.launch(arm, "127.0.0.1", 0, tmp_path).argv
    config, _ = parse_engine(argv[argv.index("infx.engine") + 1 :])
    engine = refuse_mono(config)
    assert [refusal.code for refusal in INFX.refusals(arm)] == ([engine.code] if engine else [])


def test_what_is_served_is_not_refused() -> None:
    axes = {"k": 3, "kv_cache_dtype": "fp32", "max_num_seqs": 4, "capture_sizes": (4,)}
    assert not INFX.refusals(infx(axes=axes, method="eagle3"))
    for ranks in SERVED_RANKS:
        assert not INFX.refusals(infx(axes={"tp": ranks}))


def test_the_planner_knows_the_ranks_and_drafts_that_the_engine_serves() -> None:
    code = """
from infx.engine.config import MOST_MASKS
from infx.engine.ranks.division import SERVED
from infx.engine.shapes import MOST_DRAFTS
print(SERVED, {"eagle3": MOST_DRAFTS, "dspark": MOST_MASKS})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{SERVED_RANKS} {MOST_DRAFTS}"


@pytest.mark.parametrize("axis", ["kv_cache_dtype", "index_cache_dtype"])
@pytest.mark.parametrize("kind", VOCABULARY["kv_cache_dtype"])
def test_every_kind_of_cache_is_served_and_asked_for(tmp_path: Path, axis: str, kind: str) -> None:
    asked = infx(axes={axis: kind})
    assert not INFX.refusals(asked)
    flag = "--" + axis.replace("_", "-")
    told = value(INFX.launch(asked, "h", 1, tmp_path).argv, flag)
    assert told == ("fp32" if kind == "auto" else kind)


INFO = {
    "/server_info": {
        "nonce": "abc",
        "config": {
            "k": 3,
            "acceptance": {"mode": "synthetic", "length": 2.78, "k": 3, "law": "min-variance"},
        },
    }
}


def test_what_the_server_tells() -> None:
    assert INFX.nonce(INFO) == "abc"
    assert INFX.acceptance(INFO) == Acceptance("synthetic", 2.78, k=3)
    assert INFX.resolved(INFO)["k"] == 3


def test_a_server_that_tells_nothing() -> None:
    assert INFX.nonce({}) is None
    assert INFX.acceptance({}) is None
    assert INFX.resolved({}) == {}


def test_every_reported_axis_goes_by_its_name() -> None:
    """A name that no axis has would never be compared with the plan."""
    code = (
        "import json; from infx.engine.arguments import parse\n"
        "from infx.engine.server.info import Info\n"
        "print(json.dumps(Info(parse([])[0]).server()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = INFX.resolved({"/server_info": json.loads(done.stdout)})
    silent = {"conc", "queueing"}
    assert set(AXES) - silent <= set(told)


def test_counters() -> None:
    before = "infx:spec_verify_steps_total 10\ninfx:spec_accepted_tokens_total 20\n"
    after = (
        "infx:spec_verify_steps_total 110\ninfx:spec_accepted_tokens_total 198\n"
        "infx:num_preemptions_total 2\ninfx:prefix_cache_hits_total 1\n"
        "infx:prefix_cache_queries_total 4\ninfx:mono_steps_total 9\n"
        'infx:mono_eligible_steps_total 10\ninfx:decode_steps_total{width="4"} 12\n'
        'infx:decode_steps_total{width="8"} 6\ninfx:refusals_total{code="queue-full"} 3\n'
    )
    told = INFX.counters(before, after)
    assert told.acceptance_length == pytest.approx(2.78)
    assert told.verify_steps == 100
    assert told.preemptions == 2
    assert told.prefix_cache_hit_share == 0.25
    assert told.mono_coverage == 0.9
    assert told.mono_share == 0.5
    assert told.refusals == {"queue-full": 3}


def test_counters_of_a_page_without_them() -> None:
    told = INFX.counters("", "")
    assert told.acceptance_length is None
    assert told.mono_coverage is None


def test_tokenizer(tmp_path: Path) -> None:
    assert INFX.tokenizer(infx(), tmp_path / "t") == str(tmp_path / "t")
    assert (tmp_path / "t" / "tokenizer.json").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError) as caught:
        INFX.tokenizer(infx(), tmp_path / "file" / "t")
    assert caught.value.code == "tokenizer-unknown"
