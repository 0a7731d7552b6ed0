"""infx accuracy on files of samples, folders and bare scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infx.job.accuracy import evaluate
from infx.workloads.gsm_mini import questions
from tests.analysis.made_samples import FILTERS, rows_of, write
from tests.cli.commands import as_json, here
from tests.job.answering import answering
from tests.job.jobs import arm, point

PUBLISHED = ("0.909/1319", "0.8802/1319")


def test_the_published_pair() -> None:
    done = here("accuracy", *PUBLISHED)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Unpaired, since both sides are a score" in done.stdout
    assert "0.9090 ± 0.0079" in done.stdout
    assert "A → B: perhaps worse: chance alone gives as much in 1.6 % of cases." in done.stdout
    assert "no difference" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_the_published_pair_as_json() -> None:
    data = as_json(here("accuracy", *PUBLISHED, "--json"))["data"]
    (change,) = data["changes"]
    verdict = change["verdict"]
    assert (round(verdict["p"], 3), round(verdict["z"], 1)) == (0.016, 2.4)
    assert (data["sure"], data["seen"], data["power"]) == (0.01, 0.05, 0.8)
    assert (data["basis"], verdict["change"]) == ("unpaired", "perhaps-worse")


def test_two_files_are_paired(tmp_path: Path) -> None:
    write(tmp_path / "a/samples.jsonl", rows_of([True] * 40))
    write(tmp_path / "b/m/samples_gsm8k_2026.jsonl", rows_of([False] * 7 + [True] * 33, text="5"))
    told = here("accuracy", tmp_path / "a", tmp_path / "b").stdout
    assert "Paired: the same 40 questions" in told
    rows = [line.split() for line in told.splitlines() if line.startswith(FILTERS)]
    assert rows[0][:8] == [
        "strict-match",
        "1.0000",
        "±",
        "0.0000",
        "0.8250",
        "±",
        "0.0608",
        "-17.5",
    ]
    assert "perhaps worse: chance alone gives as much in 1.6 % of cases" in told
    assert "Agreement: 0 % of answers are the same text." in told
    assert "17.5 %" in told


def test_what_would_have_been_seen_is_told_of_no_difference(tmp_path: Path) -> None:
    path = write(tmp_path / "samples.jsonl", rows_of([True] * 90 + [False] * 10))
    told = here("accuracy", path, path).stdout
    assert "strict-match: no difference seen: 7.7 pp would have been, in 80 % of cases." in told
    assert "Agreement: 100 % of answers are the same text." in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["0.9/1319"], ["bad-option"]),
        (["12/3", "1/3"], ["bad-option", "12/3 is no score", "0.909/1319"]),
        (["nowhere.jsonl", "1/3"], ["not-samples", "there is no nowhere.jsonl"]),
        (["x" * 300, "1/3"], ["not-samples", "File name too long", "0.909/1319"]),
        (["9" * 400 + "/1319", "1/3"], ["not-samples", "File name too long"]),
    ],
)
def test_wrong_words_exit_2(arguments: list[str], words: list[str]) -> None:
    done = here("accuracy", *arguments)
    assert done.returncode == 2
    assert all(word in done.stderr for word in words), done.stderr


def test_a_broken_line_is_shown_at_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "samples.jsonl", rows_of([True]))
    path.write_text(path.read_text() + '{"doc_id": 1,\n')
    done = here("accuracy", path, "1/2")
    assert done.returncode == 2
    assert f"{path}:3:1: bad-samples" in done.stderr
    assert '3 | {"doc_id": 1,' in done.stderr


def test_other_questions_name_the_way_that_is_left(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", rows_of([True, True, False]))
    b = write(tmp_path / "b.jsonl", rows_of([True, False]))
    done = here("accuracy", a, b)
    assert done.returncode == 2
    assert "questions-differ" in done.stderr
    assert "infx accuracy 2/3 1/2" in done.stderr


ASKED = questions("test", 20, 9)


def evaluated(folder: Path, wrong: int) -> Path:
    """A real evaluation by lm-eval of a server that answers the first ``wrong`` questions wrongly;
    the folder that it left."""
    places = {made.question: place for place, made in enumerate(ASKED)}

    def answer(_number: int, question: str) -> str:
        made = ASKED[places[question]]
        return f"#### {made.target + 1}" if places[question] < wrong else made.answer

    asked = point(arm(), mode="evaluation", conc=4, limit=len(ASKED), seed=9, bars={})
    with answering(answer) as chat:
        evaluate(asked, chat.url, folder)
    return folder


def saved_by_lm_eval(folder: Path, place: Path) -> Path:
    """Write the samples of ``folder`` anew as lm-eval's own command line does."""
    from lm_eval.loggers import EvaluationTracker

    rows = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    tracker = EvaluationTracker(output_path=str(place))
    tracker.general_config_tracker.model_name_sanitized = "owner__model"
    tracker.date_id = "2026-11-30T01-02-03.456789"
    tracker.save_results_samples("gsm_mini", rows)
    return place


@pytest.mark.slow
def test_real_evaluations_in_both_forms(tmp_path: Path) -> None:
    ours = evaluated(tmp_path / "a", 0)
    theirs = saved_by_lm_eval(evaluated(tmp_path / "b", 9), tmp_path / "out")
    data = as_json(here("accuracy", ours, theirs, "--json"))["data"]
    assert data["basis"] == "paired"
    assert "owner__model/samples_gsm_mini_2026-11-30T01-02-03.456789.jsonl" in data["b"]
    filters = {change["filter"]: change for change in data["changes"]}
    assert list(filters) == ["strict-match", "flexible-extract", "robust"]
    for change in filters.values():
        verdict = change["verdict"]
        assert (verdict["questions"], verdict["lost"], verdict["won"]) == (20, 9, 0)
        assert (verdict["change"], change["identical"]) == ("worse", 0.55)
