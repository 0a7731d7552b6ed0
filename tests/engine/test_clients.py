"""The field's clients drive the engine unchanged: aiperf, lm-eval, openai."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from infx.engine.model.reference import ReferenceModel
from infx.engine.shapes import mini
from infx.engine.weights import target_weights
from tests.engine.driving_clients import evaluate, profile, records
from tests.engine.driving_engine import TOKENIZER
from tests.engine.running_engine import running

pytestmark = pytest.mark.slow

NAMED = ("--served-model-name", "tiny", "--max-num-seqs", "8")
NULL = ("--model", "null", "--null-rate", "200", *NAMED)
EXACT = ("--extra-inputs", "ignore_eos:true", "--extra-inputs", "temperature:0")
PAGE = 16


@pytest.fixture(scope="module")
def server():
    with running(*NAMED, "--max-model-len", "1024") as one:
        yield one


def reusable_tokens(turns: list[dict]) -> int:
    """Tokens in full pages that a conversation's later turns find: all but the last of the text
    before them."""
    seen = 0
    for turn in turns[:-1]:
        told = {name: one["value"] for name, one in turn["metrics"].items()}
        before = int(told["usage_prompt_tokens"] + told["usage_completion_tokens"])
        seen += (before - 1) // PAGE * PAGE
    return seen


def test_aiperf_turns_of_a_conversation_hit_the_prefix_cache(tmp_path):
    turns = ("--conversation-num", "4", "--conversation-turn-mean", "3")
    with running(*NULL) as server:
        summary = profile(
            server.url, tmp_path, *turns, *EXACT, "--conversation-turn-stddev", "0", "--isl", "60",
            "--osl", "8", "--concurrency", "2", "--prompt-corpus", "random", "--no-server-metrics",
        )  # fmt: skip
    assert summary["request_count"]["avg"] == 12
    assert summary["osl_mismatch_count"]["avg"] == 0
    talks: dict[str, list[dict]] = {}
    for record in sorted(records(tmp_path), key=lambda one: one["metadata"]["turn_index"]):
        talks.setdefault(record["metadata"]["conversation_id"], []).append(record)
    assert [len(turns) for turns in talks.values()] == [3] * 4
    reusable = sum(map(reusable_tokens, talks.values()))
    hits = sum(
        record["metrics"]["usage_prompt_cache_read_tokens"]["value"]
        for turns in talks.values()
        for record in turns[1:]
    )
    assert reusable > 0
    assert 0.95 * reusable <= hits <= reusable


def test_aiperf_replays_a_mooncake_trace_that_shares_prefixes(tmp_path):
    rows = [
        {"timestamp": 100 * at, "input_length": 700, "output_length": 6, "hash_ids": [1, 2 + at]}
        for at in range(6)
    ]
    trace = tmp_path / "trace.jsonl"
    trace.write_text("\n".join(map(json.dumps, rows)))
    with running(*NULL) as server:
        summary = profile(
            server.url, tmp_path, "--input-file", str(trace), "--custom-dataset-type",
            "mooncake_trace", "--fixed-schedule", *EXACT,
            "--no-server-metrics",
        )  # fmt: skip
        hits = server.metric("prefix_cache_hits_total")
    assert summary["request_count"]["avg"] == 6
    assert "error_request_count" not in summary
    assert summary["usage_completion_tokens"]["min"] == 6
    assert hits > 0


def agent(number: int) -> dict:
    """A trace of four turns that grow by two blocks, and a subagent."""
    own = range(100 * number, 100 * number + 8)
    turn = {"type": "s", "model": "tiny", "out": 12, "api_time": 0.1, "think_time": 0.05}
    turns = [
        turn | {"t": 0.2 * at, "in": 128 * (at + 1), "hash_ids": list(own[: 2 * (at + 1)])}
        for at in range(4)
    ]
    sub = turn | {"t": 1.0, "in": 128, "hash_ids": [100 * number + 50, 100 * number + 51]}
    helper = {
        "type": "subagent", "t": 1.0, "agent_id": f"a{number}", "subagent_type": "explore",
        "status": "completed", "models": ["tiny"], "requests": [sub],
    }  # fmt: skip
    return {
        "id": f"t{number}", "models": ["tiny"], "block_size": 64, "hash_id_scope": "local",
        "requests": [*turns, helper],
    }  # fmt: skip


def test_aiperf_runs_the_agentic_scenario_on_local_traces(tmp_path):
    traces = tmp_path / "traces"
    traces.mkdir()
    for number in range(3):
        (traces / f"t{number}.json").write_text(json.dumps(agent(number)))
    with running(*NULL) as server:
        summary = profile(
            server.url, tmp_path, "--scenario", "inferencex-agentx-mvp", "--unsafe-override",
            "--input-file", str(traces), "--custom-dataset-type", "weka_trace",
            "--concurrency", "2", "--benchmark-duration", "3", "--no-server-metrics",
        )  # fmt: skip
    assert summary["metadata"]["scenario"] == "inferencex-agentx-mvp"
    assert summary["request_count"]["avg"] >= 8
    assert summary["request_error_rate"]["avg"] == 0
    assert summary["osl_mismatch_count"]["avg"] == 0
    told = summary["theoretical_prefix_cache_hit"]["avg"]
    assert summary["overall_usage_prompt_cache_read_pct"]["avg"] > 0.8 * told


CHOICES = [
    {"question": "The sky is", "choices": [" blue", " a very long green"], "answer": 0},
    {"question": "2 + 2 =", "choices": [" 4", " 5", "é"], "answer": 0},
    {"question": "x", "choices": ["y", "zz"], "answer": 1},
]
TEXTS = [{"text": "A text is scored from its first token on."}, {"text": "z"}]
COMMON = "dataset_path: json\ntest_split: test\ndataset_kwargs: {{data_files: {{test: {path}}}}}\n"
TASKS = {
    "choose": "output_type: multiple_choice\ndoc_to_text: '{{question}}'\n"
    "doc_to_choice: '{{choices}}'\ndoc_to_target: answer\ntarget_delimiter: ''\n"
    "metric_list: [{metric: acc}]\n",
    "roll": "output_type: loglikelihood_rolling\ndoc_to_text: ''\ndoc_to_target: '{{text}}'\n"
    "metric_list: [{metric: byte_perplexity}]\n",
    "write": "output_type: generate_until\ndoc_to_text: '{{text}}'\ndoc_to_target: '{{answer}}'\n"
    "generation_kwargs: {until: ['\\n\\n'], max_gen_toks: 8, temperature: 0}\n"
    "metric_list: [{metric: exact_match}]\n",
}
TASKS["reply"] = TASKS["write"]


def write_task(folder: Path, name: str, rows: list[dict]) -> None:
    data = folder / f"{name}.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    (folder / f"{name}.yaml").write_text(f"task: {name}\n" + COMMON.format(path=data) + TASKS[name])


@pytest.fixture(scope="module")
def score():
    """The log-likelihood of a continuation after a context, and whether it is the greedy one."""
    torch.set_num_threads(1)
    shape = mini()
    model = ReferenceModel(shape, target_weights(shape, "random:0"))

    def scored(context: str, continuation: str) -> tuple[float, bool]:
        before = TOKENIZER.encode(context) or [TOKENIZER.bos]
        after = TOKENIZER.encode(continuation)
        logits = model.logits([*before, *after])[:, : TOKENIZER.size]
        rows = logits.log_softmax(-1)[len(before) - 1 : -1]
        chosen = rows[torch.arange(len(after)), torch.tensor(after)]
        return float(chosen.sum()), bool((rows.argmax(-1) == torch.tensor(after)).all())

    return scored


def answers(server, path: str, chat: bool) -> list[dict]:
    """Texts, and what the server writes after each, asked without lm-eval."""
    rows = []
    for text in ("one", "two two", "three"):
        asked = {"messages": [{"role": "user", "content": text}]} if chat else {"prompt": text}
        body = asked | {"max_tokens": 8, "temperature": 0, "stop": ["\n\n"]}
        choice = server.post(path, body)[1]["choices"][0]
        written = choice["message"]["content"] if chat else choice["text"]
        rows.append({"text": text, "answer": written})
    return rows


TEXT, CHAT = "/v1/completions", "/v1/chat/completions"


@pytest.fixture(scope="module")
def evaluated(server, tmp_path_factory):
    """What lm-eval finds on our tasks: as completions, and as chats."""
    folder = tmp_path_factory.mktemp("lm-eval")
    write_task(folder, "choose", CHOICES)
    write_task(folder, "roll", TEXTS)
    write_task(folder, "write", answers(server, TEXT, chat=False))
    write_task(folder, "reply", answers(server, CHAT, chat=True))
    return evaluate(
        folder,
        ("local-completions", server.url + TEXT, ("choose", "roll", "write")),
        ("local-chat-completions", server.url + CHAT, ("reply",)),
    )


def test_lm_eval_reads_our_probabilities_as_the_model_gives_them(evaluated, score):
    found = evaluated[0]["responses"]
    for row, responses in zip(CHOICES, found["choose"], strict=True):
        for choice, ((told, greedy),) in zip(row["choices"], responses, strict=True):
            expected, is_greedy = score(row["question"], choice)
            assert told == pytest.approx(expected, abs=2e-3)
            assert greedy == is_greedy
    for row, ((told,),) in zip(TEXTS, found["roll"], strict=True):
        assert told == pytest.approx(score("", row["text"])[0], abs=2e-3)


@pytest.mark.parametrize(("run", "task", "chat"), [(0, "write", False), (1, "reply", True)])
def test_lm_eval_generates_what_the_server_gives_others(server, evaluated, run, task, chat):
    rows = answers(server, CHAT if chat else TEXT, chat)
    assert evaluated[run]["responses"][task] == [[[row["answer"]]] for row in rows]
    assert evaluated[run]["results"][task]["exact_match,none"] == 1.0
