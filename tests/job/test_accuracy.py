"""lm-eval itself against servers whose every answer is known."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from aiohttp import web

from infx.domain.errors import EngineError, InfraError, MeasurementError
from infx.domain.point import Harness, Point
from infx.domain.record import Score
from infx.job import accuracy
from infx.job.accuracy import ATTEMPTS, evaluate, progress, read_score
from infx.job.lm_eval_run import choices_of
from infx.workloads.gsm_mini import Question, few_shot, questions
from tests.job.answering import CUT, answering
from tests.job.jobs import arm, point
from tests.public_data import shared

slow = pytest.mark.slow

COUNT, SEED = 20, 9
ASKED = questions("test", COUNT, SEED)
PLACE = {made.question: place for place, made in enumerate(ASKED)}


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask a failing server once, to save the pauses between attempts."""
    monkeypatch.setattr(accuracy, "ATTEMPTS", 1)


def evaluation(conc: int = 4, **workload: Any) -> Point:
    return point(arm(), mode="evaluation", conc=conc, **({"bars": {}, "seed": SEED} | workload))


def right(_number: int, question: str) -> str:
    """The full answer of a test question, whatever the seed."""
    return next(made.answer for made in ASKED if made.question == question)


# Ten ways to answer; what GSM8K's strict and flexible filters and the robust one make of each.
STYLES: list[tuple[str | None, int, int, int]] = [
    ("{answer}", 1, 1, 1),
    ("The answer is {target}.", 0, 1, 1),
    ("#### {target:,}", 1, 1, 1),
    ("It costs ${target}.00", 0, 0, 1),
    ("", 0, 0, 0),
    ("#### {wrong}", 0, 0, 0),
    ("#### {target}.0", 0, 0, 1),
    ("#### {target}\nThat is every 99 days" + CUT, 1, 0, 0),
    ("#### ${target}", 0, 1, 1),
    (None, 0, 0, 0),
]


def styled(place: int, made: Question) -> str | None:
    text = STYLES[place % len(STYLES)][0]
    if text is None:
        return None
    return text.format(answer=made.answer, target=made.target, wrong=made.target + 1)


BARS = {"strict-match": 0.9, "robust": 0.5}
ALL = evaluation(limit=COUNT, seed=SEED, bars=BARS, max_tokens=77)


@dataclass
class Run:
    """One evaluation of all questions, answered in every style."""

    score: Score
    folder: Path
    bodies: list[dict[str, Any]]
    seen: list[tuple[int, int]]


def run_of(asked: Point, folder: Path) -> Run:
    seen: list[tuple[int, int]] = []
    with answering(lambda _n, text: styled(PLACE[text], ASKED[PLACE[text]])) as chat:
        score = evaluate(asked, chat.url, folder, watch=lambda *counts: seen.append(counts))
    return Run(score, folder, chat.bodies, seen)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_of(ALL, tmp_path_factory.mktemp("run") / "lm-eval")


@slow
def test_scores_are_exactly_what_the_answers_deserve(run: Run) -> None:
    score = run.score
    share = [sum(style[i] for style in STYLES) / len(STYLES) for i in (1, 2, 3)]
    assert any(made.target >= 1000 for made in ASKED[2 :: len(STYLES)])
    assert [f.score for f in score.filters.values()] == pytest.approx(share)
    assert list(score.filters) == ["strict-match", "flexible-extract", "robust"]
    for found in score.filters.values():
        variance = found.score * (1 - found.score) / (COUNT - 1)
        assert found.stderr == pytest.approx(variance**0.5)
    assert [f.bar for f in score.filters.values()] == [0.9, None, 0.5]
    assert (score.questions, score.limit, score.shots, score.empty) == (COUNT, COUNT, 5, 4)
    assert score.wall_s > 0.5


@slow
def test_cut_answers_are_counted(run: Run) -> None:
    assert sum((styled(*pair) or "").endswith(CUT) for pair in enumerate(ASKED)) == 2
    assert (run.score.cut, run.score.max_tokens) == (2, 77)


@slow
def test_progress_is_told_and_evidence_kept(run: Run) -> None:
    assert run.seen[0] == (0, 0)
    assert progress(run.folder) == (COUNT, COUNT)
    _check_bodies(run.bodies)
    _check_evidence(run.folder, run.score, ALL)


@slow
def test_equal_questions_have_equal_hashes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "lm-eval").mkdir()
    again = run_of(dataclasses.replace(ALL, conc=1), tmp_path / "lm-eval").score
    assert again.questions_hash == run.score.questions_hash
    assert len(again.questions_hash) == 64
    assert (tmp_path / "lm-eval.old1").is_dir()
    samples = tmp_path / "lm-eval" / "samples.jsonl"
    samples.write_text(samples.read_text().replace("Question: ", "Problem: "))
    other = read_score(tmp_path / "lm-eval", ALL.workload)  # type: ignore[arg-type]
    assert other.questions_hash != again.questions_hash


def _check_bodies(bodies: list[dict[str, Any]]) -> None:
    """Five worked examples as turns, then the question; greedy, few stops, the asked length."""
    shots = few_shot(SEED, 5)
    for body in bodies:
        assert [turn["role"] for turn in body["messages"]] == ["user", "assistant"] * 5 + ["user"]
        assert [turn["content"] for turn in body["messages"][1::2]] == [s.answer for s in shots]
        assert body["messages"][0]["content"] == f"Question: {shots[0].question}\nAnswer:"
        assert (body["temperature"], body["max_tokens"], body["model"]) == (0.0, 77, "mini")
        assert len(body["stop"]) <= 4


def _check_evidence(folder: Path, score: Score, asked: Point) -> None:
    rows = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    places = {name: place for place, name in enumerate(score.filters, start=1)}
    assert len(rows) == 3 * COUNT
    for row in rows:
        assert row["exact_match"] == STYLES[row["doc_id"] % len(STYLES)][places[row["filter"]]]
    assert json.loads((folder / "results.json").read_text())["lm_eval_version"] == "0.4.13"
    again = read_score(folder, asked.workload, score.wall_s)  # type: ignore[arg-type]
    assert again == score


@slow
def test_a_server_that_refuses_is_asked_again_and_quoted(tmp_path: Path) -> None:
    with answering(lambda _n, _t: web.Response(status=500, text="the cache is on fire")) as chat:
        message = _failure(evaluation(limit=1), chat.url, tmp_path, "evaluation-failed")
    assert "500" in message
    assert "the cache is on fire" in message
    assert len(chat.bodies) == ATTEMPTS == 3


@slow
def test_a_server_that_is_gone_is_named(tmp_path: Path, once: None) -> None:
    message = _failure(evaluation(limit=2), "http://127.0.0.1:9", tmp_path, "evaluation-failed")
    assert "Connect call failed ('127.0.0.1', 9)" in message


@slow
def test_a_choice_without_a_message_is_no_answer(tmp_path: Path, once: None) -> None:
    def broken(number: int, text: str) -> str | web.Response:
        choice = {"index": 0, "text": "no message"}
        return right(number, text) if number == 1 else web.json_response({"choices": [choice]})

    with answering(broken) as chat:
        message = _failure(evaluation(limit=3), chat.url, tmp_path, "evaluation-failed")
    assert "a choice without message" in message
    assert "no message" in message


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"error": "no room"}, "has no choices: {'error': 'no room'}"),
        ({"choices": []}, "has no choices"),
        (None, "has no choices: None"),
        ({"choices": [{"text": "x"}]}, "a choice without message"),
        ({"choices": [{"message": "x"}]}, "a choice without message"),
        ([{"choices": [None]}], "a choice without message"),
    ],
)
def test_what_is_no_answer(body: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        choices_of(body)


@slow
def test_answers_that_are_all_empty_are_no_score(run: Run, tmp_path: Path) -> None:
    shutil.copy(run.folder / "results.json", tmp_path)
    rows = [json.loads(line) for line in (run.folder / "samples.jsonl").read_text().splitlines()]
    emptied = [json.dumps(row | {"resps": [[" \n"]]}) + "\n" for row in rows]
    (tmp_path / "samples.jsonl").write_text("".join(emptied))
    with pytest.raises(MeasurementError, match=f"all {COUNT} answers are empty") as caught:
        read_score(tmp_path, ALL.workload)  # type: ignore[arg-type]
    assert caught.value.code == "evaluation-failed"


@slow
def test_a_hang_ends_at_the_limit_with_every_process(tmp_path: Path) -> None:
    before = children()
    with answering(lambda _n, _text: "hang") as chat:
        message = _failure(evaluation(limit=4), chat.url, tmp_path, "evaluation-hung", limit_s=4.0)
    assert re.search(r"4 s: 0 of [04] answered", message)
    assert children() == before


@slow
def test_what_the_watcher_raises_ends_the_evaluation(tmp_path: Path) -> None:
    before = children()

    def died(answered: int, _asked: int) -> None:
        if answered:
            raise EngineError("server-died", "the server ended")

    with (
        answering(lambda number, _t: "hang" if number > 1 else "#### 1") as chat,
        pytest.raises(EngineError, match="the server ended"),
    ):
        evaluate(evaluation(limit=4), chat.url, tmp_path / "lm-eval", watch=died)
    assert children() == before


def children() -> set[psutil.Process]:
    """All processes below this one: tests before may have left one that tracks resources."""
    return set(psutil.Process().children(recursive=True))


OWN_TASK = """\
task: capitals
custom_dataset: !function own.load
output_type: generate_until
test_split: test
doc_to_text: "The capital of {{country}}?"
doc_to_target: "{{capital}}"
process_results: !function own.judge
generation_kwargs: {until: ["\\n"]}
metric_list:
  - {metric: right, aggregation: mean, higher_is_better: true}
  - {metric: short, aggregation: mean, higher_is_better: true}
"""
OWN_CODE = """\
from datasets import Dataset

def load(**_):
    rows = [{"country": "Peru", "capital": "Lima"}, {"country": "Cuba", "capital": "Havana"}]
    return {"test": Dataset.from_list(rows)}

def judge(doc, results):
    return {"right": results[0] == doc["capital"], "short": len(results[0]) < 10}
"""


@slow
def test_a_task_of_the_user_brings_its_own_metrics(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "own.py").write_text(OWN_CODE)
    task = tmp_path / "own" / "capitals.yaml"
    task.write_text(OWN_TASK)
    asked = evaluation(conc=1, task=str(task), limit=None, shots=0, bars={"right,none": 0.9})
    with answering(lambda _n, _text: "Lima") as chat:
        score = evaluate(asked, chat.url, tmp_path / "lm-eval")
    assert (score.task, score.questions, score.shots, score.limit) == ("capitals", 2, 0, None)
    assert {name: f.score for name, f in score.filters.items()} == {
        "right,none": 0.5,
        "short,none": 1.0,
    }
    assert score.filters["right,none"].bar == 0.9
    assert [body["messages"][0]["content"] for body in chat.bodies] == [
        "The capital of Peru?",
        "The capital of Cuba?",
    ]


@slow
def test_the_real_gsm8k(tmp_path: Path) -> None:
    folder = shared() / "data" / "gsm8k"
    rows = [json.loads(line) for line in (folder / "test.jsonl").read_text().splitlines()]
    answers = {row["question"]: row["answer"] for row in rows}
    asked = evaluation(task="gsm8k", source=str(folder), limit=4)
    with answering(lambda _n, text: answers[text]) as chat:
        score = evaluate(asked, chat.url, tmp_path / "lm-eval")
    assert [f.score for f in score.filters.values()] == [1.0, 1.0, 1.0]
    assert (score.questions, score.shots, len(chat.bodies)) == (4, 5, 4)
    # lm-eval draws the examples anew for each question
    assert len({body["messages"][0]["content"] for body in chat.bodies}) > 1


def test_another_lm_eval_than_planned_is_refused(tmp_path: Path) -> None:
    asked = dataclasses.replace(evaluation(), harness=Harness(lm_eval="0.4.99"))
    with pytest.raises(InfraError, match=r"lm-eval 0\.4\.13 is installed.*0\.4\.99") as caught:
        evaluate(asked, "http://127.0.0.1:9", tmp_path / "lm-eval")
    assert caught.value.code == "harness-version"


def test_one_question_tells_next_to_nothing(tmp_path: Path) -> None:
    """Its standard error is the widest there is."""
    metrics = {"exact_match,none": 1.0, "exact_match_stderr,none": "N/A"}
    results = {"results": {"own": metrics}, "n-shot": {"own": 0}}
    (tmp_path / "results.json").write_text(json.dumps(results))
    row = {"filter": "none", "resps": [["x"]], "arguments": []}
    (tmp_path / "samples.jsonl").write_text(json.dumps(row) + "\n")
    score = read_score(tmp_path, evaluation(task="own.yaml").workload)  # type: ignore[arg-type]
    assert score.filters["none"].stderr == 0.5


def test_a_bar_for_a_filter_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    results = {"results": {"own": {"exact_match,none": 1.0}}, "n-shot": {"own": 0}}
    (tmp_path / "results.json").write_text(json.dumps(results))
    row = {"filter": "none", "resps": [["x"]], "arguments": []}
    (tmp_path / "samples.jsonl").write_text(json.dumps(row) + "\n")
    asked = evaluation(task="own.yaml", bars={"strict": 0.9}).workload
    with pytest.raises(MeasurementError, match="'strict', but the task reports none"):
        read_score(tmp_path, asked)  # type: ignore[arg-type]


def test_a_file_of_several_tasks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps({"results": {"a": {}, "b": {}}}))
    with pytest.raises(MeasurementError, match="2 tasks"):
        read_score(tmp_path, evaluation().workload)  # type: ignore[arg-type]


def test_progress_survives_a_line_that_is_being_written(tmp_path: Path) -> None:
    assert progress(tmp_path) == (0, 0)
    (tmp_path / "progress.jsonl").write_text('{"total": 6}\n{"answered": 1}\n{"answ')
    assert progress(tmp_path) == (1, 6)


def _failure(asked: Point, url: str, folder: Path, code: str, **limits: float) -> str:
    with pytest.raises(MeasurementError) as caught:
        evaluate(asked, url, folder / "lm-eval", **limits)  # type: ignore[arg-type]
    assert caught.value.code == code
    assert (folder / "lm-eval" / "lm-eval.log").exists()
    return str(caught.value)
