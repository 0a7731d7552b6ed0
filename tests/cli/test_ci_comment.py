"""infx ci event, comments, comment, status and dispatch against a GitHub on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infx.ci.events import read_comments, read_event
from infx.forge.github import GitHub
from tests.ci.cases import EVENTS
from tests.cli.commands import as_json, here
from tests.cli.pull_requests import lab_in
from tests.workflows.github_server import BOT, TOKEN, Answer, Repository, served

EVENT = EVENTS / "labeled.json"
HEAD = "4b94f0960000000000000000000000000000beef"
STRANGER = {"login": "stranger", "type": "User"}
MARK = "<!-- infx ci comment: sweep -->"


def pull(**more: Any) -> dict[str, Any]:
    return json.loads(EVENT.read_bytes())["pull_request"] | more


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Repository]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(GitHub.__init__, "__defaults__", (lambda _: None,))  # no pauses
    for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"):
        monkeypatch.delenv(f"GITHUB_{name}", raising=False)
    with served(Repository(pulls={17: pull()})) as repository:
        monkeypatch.setenv("GITHUB_API_URL", repository.url)
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        yield repository


def printed(name: str, data: dict[str, Any] | None, *found: dict[str, Any]) -> str:
    schema = f"infx.{name}/1" if data else "infx.error/1"
    whole = {"schema": schema, "ok": True, "data": data, "diagnostics": found}
    Path(f"{name}.json").write_text(json.dumps(whole))
    return f"{name}.json"


def planned(**more: Any) -> str:
    data = {"decision": "sweep", "reason": "3 points", "pull_request": 17, "settings": {"x": 1}}
    return printed("ci-plan", data | more)


def reviewed(**more: Any) -> str:
    check = {"number": 1, "name": "sweep", "verdict": "PASS", "sentence": "yes", "evidence": []}
    data = {"repository": "example/lab", "pull_request": 17, "head": HEAD, "verdict": "PASS"}
    return printed("review", data | {"checks": [check], "note": ""} | more)


COMMENT = ("ci", "comment", "--event", EVENT)


def test_the_event_is_that_of_the_pull_request_now(lab: Repository, tmp_path: Path) -> None:
    lab.pulls[17] = pull(title="Renamed since", labels=[])
    done = here("ci", "event", "--event", EVENT, "-o", "now.json", "--outputs", "out")
    assert (done.returncode, done.stderr) == (0, "")
    now = read_event(Path("now.json").read_bytes())
    assert (now.pull_request.title, now.labels, now.action) == ("Renamed since", (), "synchronize")
    base = "1f00000000000000000000000000000000000001"
    assert Path("out").read_text() == (
        f"number=17\nhead={HEAD}\nbase={base}\nstate=open\nfork=false\n"
    )


def test_the_event_of_a_comment_leads_to_its_pull_request(lab: Repository) -> None:
    done = here("ci", "event", "--event", EVENTS / "commented.json", "-o", "now.json", "--json")
    assert as_json(done)["data"]["head"] == HEAD


def test_a_merged_pull_request_is_told_as_closed(lab: Repository) -> None:
    lab.pulls[17] = pull(state="closed", merged=True)
    here("ci", "event", "--pull-request", 17, "--repository", "example/lab", "-o", "now.json")
    assert read_event(Path("now.json").read_bytes()).merges


def test_a_pull_request_that_is_not_named_or_not_there_exits_with_2(lab: Repository) -> None:
    assert here("ci", "event", "-o", "x").returncode == 2
    done = here("ci", "event", "--pull-request", 9, "--repository", "example/lab", "-o", "x")
    assert (done.returncode, "answers 404" in done.stderr) == (2, True)
    lab.pulls[17] = {"number": 17}
    assert here("ci", "event", "--event", EVENT, "-o", "x").returncode == 2
    assert not Path("x").exists()


@pytest.mark.parametrize("number", [0, 5, 205])
def test_comments_are_all_written(lab: Repository, number: int) -> None:
    for n in range(number):
        lab.said(f"comment {n}", STRANGER)
    done = here("ci", "comments", "--event", EVENT, "-o", "comments.json")
    assert (done.returncode, done.stdout.split()[0]) == (0, str(number))
    assert len(read_comments(Path("comments.json").read_bytes())) == number


def test_a_comment_is_made_once_and_then_written_again(lab: Repository) -> None:
    done = here(*COMMENT, "--plan", planned())
    assert done.stdout.startswith("created https://github.com/example/lab/pull/17#")
    done = here(*COMMENT, "--plan", planned(reason="7 points"), "--json")
    assert as_json(done)["data"]["done"] == "updated"
    [comment] = lab.comments
    assert comment["body"].startswith(MARK)
    assert "7 points" in comment["body"]


def test_each_mark_has_its_own_comment(lab: Repository) -> None:
    here(*COMMENT, "--plan", planned())
    here(*COMMENT, "--note", "Published.", "--mark", "publish")
    here(*COMMENT, "--note", "Published again.", "--mark", "publish")
    assert ["Published again" in one["body"] for one in lab.comments] == [False, True]


def test_a_comment_of_somebody_else_is_never_taken_for_ours(lab: Repository) -> None:
    lab.said(f"{MARK}\n\nPASS", STRANGER)
    assert here(*COMMENT, "--review", reviewed()).returncode == 0
    assert [one["user"]["login"] for one in lab.comments] == ["stranger", BOT["login"]]
    assert lab.comments[0]["body"] == f"{MARK}\n\nPASS"


def test_a_person_with_a_token_writes_their_own_comment_again(lab: Repository) -> None:
    lab.said(f"{MARK}\n\nby a bot", BOT)
    lab.login = "engineer"
    here(*COMMENT, "--plan", planned())
    here(*COMMENT, "--plan", planned(reason="again"))
    assert ["by a bot" in one["body"] for one in lab.comments] == [True, False]
    assert "again" in lab.comments[1]["body"]


def test_an_answer_that_was_lost_makes_no_second_comment(lab: Repository) -> None:
    lab.comments = []
    words = (*COMMENT, "--plan", planned())
    assert here(*words).returncode == 0
    lab.comments.clear()
    lab.asked.clear()
    real, seen = lab.answer, []

    def lossy(method: str, path: str, body: Any) -> Any:
        seen.append(method)
        found = real(method, path, body)
        return (502, {}, {}) if method == "POST" and seen.count("POST") == 1 else found

    lab.answer = lossy  # type: ignore[method-assign]
    assert here(*words).returncode == 0
    assert (len(lab.comments), seen.count("POST")) == (1, 1)


def test_nobody_who_did_not_ask_is_told_anything(lab: Repository) -> None:
    idle = {"decision": "nothing", "reason": "no label asks for a sweep", "settings": None}
    assert here(*COMMENT, "--plan", planned(**idle)).stdout == "nobody asks for anything\n"
    assert not lab.comments
    here(*COMMENT, "--plan", planned())
    here(*COMMENT, "--plan", planned(**idle))
    assert "no label asks for a sweep" in lab.comments[0]["body"]


def test_a_dry_run_needs_no_token_and_sends_nothing(
    lab: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    done = here(*COMMENT, "--plan", planned(), "--dry-run")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, MARK)
    assert not lab.asked
    assert here(*COMMENT, "--plan", planned()).returncode == 2


@pytest.mark.parametrize(
    "more",
    [{"pull_request": 18}, {"repository": "example/other"}, {"head": "0" * 40}],
)
def test_a_review_of_something_else_is_refused(lab: Repository, more: dict[str, Any]) -> None:
    done = here(*COMMENT, "--review", reviewed(**more))
    assert done.returncode == 2
    assert "the event of example/lab#17" in done.stderr
    assert not lab.comments


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--plan", "nowhere.json"),
        ("--note", "x", "--mark", "A B"),
        ("--note", "x", "--image", "javascript:alert(1)"),
        ("--note", "x", "--image", "https://e.example/x> ![y](https://e.example/y"),
        ("--run", "last"),
    ],
)
def test_what_cannot_be_told_exits_with_2(lab: Repository, words: tuple[str, ...]) -> None:
    assert here(*COMMENT, *words).returncode == 2
    assert not lab.asked


def test_a_run_is_told_and_one_that_was_shortened_is_said_to_be(
    lab: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = lab_in(tmp_path / "lab")
    monkeypatch.chdir(work.folder)
    plan = work.plan()
    assert plan.origin
    runs = [
        work.swept(replace(plan, origin=replace(plan.origin, submission_valid=valid)))
        for valid in (True, False)
    ]
    whole, short = (
        here("ci", "comment", "--event", "event.json", "--run", run, "--dry-run").stdout
        for run in runs
    )
    assert "| Gate |" in whole
    assert f"**What run {runs[1]} measured is not valid for submission.**" in short
    assert "not valid for submission" not in whole


def test_an_empty_review_is_not_told_as_passed(lab: Repository) -> None:
    Path("review.json").write_text("")
    done = here(*COMMENT, "--review", "review.json")
    assert (done.returncode, "not-printed" in done.stderr) == (2, True)


@pytest.mark.parametrize(("status", "code"), [(401, 2), (403, 2), (404, 2), (503, 3)])
def test_a_github_that_says_no_is_explained(lab: Repository, status: int, code: int) -> None:
    lab.answers = [Answer(status, "Said so.")] * 9
    done = here(*COMMENT, "--plan", planned(), "--json")
    assert done.returncode == code
    [found] = as_json(done)["diagnostics"]
    assert f"answers {status} Said so." in found["sentence"]
    assert found["hint"]


def test_a_status_marks_the_commit_and_links_the_workflow(
    lab: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    here("ci", "status", "pending", "--event", EVENT, "--sentence", "s" * 500)
    for name, value in (("SERVER_URL", "https://g"), ("REPOSITORY", "o/n"), ("RUN_ID", "7")):
        monkeypatch.setenv(f"GITHUB_{name}", value)
    other = "5" * 40
    here(
        *("ci", "status", "success", "--event", EVENT, "--sentence", "x", "--commit", other),
        *("--context", "infx review"),
    )
    (first, pending), (second, success) = lab.statuses
    assert (first, second) == (HEAD, other)
    assert (pending["state"], pending["context"], len(pending["description"])) == (
        *("pending", "infx sweep"),
        140,
    )
    assert success["target_url"] == "https://g/o/n/actions/runs/7"
    assert here("ci", "status", "fine", "--event", EVENT, "--sentence", "x").returncode == 2


def test_a_workflow_is_started_with_its_inputs(lab: Repository) -> None:
    words = ("ci", "dispatch", "measure.yml", "--ref", "main", "--repository", "example/lab")
    done = here(*words, "--input", "run=20261008-ab", "--input", "sentence=a=b\nc")
    assert done.returncode == 0
    inputs = {"run": "20261008-ab", "sentence": "a=b\nc"}
    assert lab.dispatched == [("measure.yml", {"ref": "main", "inputs": inputs})]
    assert here(*words, "--input", "nothing").returncode == 2
