"""Asking GitHub: pages, patience where it is busy, and what is said where it refuses."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from infx.domain.errors import InfraError, UsageError
from infx.forge.github import GitHub, RefusedError, github
from tests.workflows.github_server import BOT, TOKEN, Answer, Repository, served

LIST = "/issues/17/comments"


@pytest.fixture
def there() -> Iterator[Repository]:
    with served(Repository(pulls={17: {"number": 17}})) as repository:
        yield repository


def client(there: Repository, pauses: list[float] | None = None, token: str = TOKEN) -> GitHub:
    return GitHub(there.url, "example/lab", token, (pauses if pauses is not None else []).append)


@pytest.mark.parametrize("number", [0, 1, 100, 101, 250])
def test_all_pages_are_read_once_and_in_order(there: Repository, number: int) -> None:
    for n in range(number):
        there.said(str(n), BOT)
    found = client(there).pages(LIST)
    assert [one["body"] for one in found] == [str(n) for n in range(number)]
    assert len(there.asked) == max(1, -(-number // 100))


@pytest.mark.parametrize("status", [0, 500, 502, 503, 504])
def test_a_busy_github_is_asked_again_after_growing_pauses(there: Repository, status: int) -> None:
    pauses: list[float] = []
    there.answers = [Answer(status)] * 3
    assert client(there, pauses).get("/pulls/17") == {"number": 17}
    assert pauses == [1.0, 3.0, 9.0]


def test_a_github_that_stays_busy_is_an_infrastructure_error(there: Repository) -> None:
    there.answers = [Answer(502, "Server Error")] * 9
    with pytest.raises(InfraError, match="answers 502 Server Error") as caught:
        client(there).get("/pulls/17")
    assert (caught.value.code, caught.value.exit_code) == ("github-unreachable", 3)
    assert len(there.asked) == 4


def test_what_makes_something_new_is_asked_once(there: Repository) -> None:
    there.answers = [Answer(502, done=True)]
    with pytest.raises(InfraError):
        client(there).create(LIST, {"body": "x"})
    assert len(there.comments) == 1


@pytest.mark.parametrize(
    ("answer", "pause"),
    [
        (Answer(403, "slow down", {"Retry-After": "7"}), 7.0),
        (Answer(429, "slow down", {"Retry-After": "7"}), 7.0),
        (Answer(429, "slow down", {"Retry-After": "0"}), 0.0),
        (Answer(429, "slow down"), 60.0),
        (Answer(403, "You have exceeded a secondary rate limit."), 60.0),
    ],
)
def test_a_limit_is_waited_for_even_by_what_is_asked_once(
    there: Repository, answer: Answer, pause: float
) -> None:
    pauses: list[float] = []
    there.answers = [answer]
    client(there, pauses).create(LIST, {"body": "x"})
    assert (pauses, len(there.comments)) == ([pause], 1)


def test_the_hourly_limit_is_waited_for_where_it_ends_soon(there: Repository) -> None:
    pauses: list[float] = []
    reset = str(int(time.time()) + 20)
    there.answers = [Answer(403, "", {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset})]
    assert client(there, pauses).get("/pulls/17")
    assert 15 < pauses[0] <= 20


@pytest.mark.parametrize("after", ["9000", "7"])
def test_a_limit_that_is_far_or_comes_again_is_an_infrastructure_error(
    there: Repository, after: str
) -> None:
    pauses: list[float] = []
    there.answers = [Answer(429, "slow down", {"Retry-After": after})] * 9
    with pytest.raises(InfraError, match="answers 429 slow down"):
        client(there, pauses).get("/pulls/17")
    assert len(pauses) == (0 if after == "9000" else 2)


@pytest.mark.parametrize(
    ("status", "hint"),
    [(401, "expired"), (403, "permissions"), (404, "nothing is there"), (422, "what GitHub says")],
)
def test_a_refusal_says_what_to_do(there: Repository, status: int, hint: str) -> None:
    there.answers = [Answer(status, "No.")]
    with pytest.raises(RefusedError, match=f"GET /repos/.*answers {status} No") as caught:
        client(there).get("/pulls/17")
    assert (caught.value.status, caught.value.exit_code) == (status, 2)
    assert hint in caught.value.hint
    assert len(there.asked) == 1


def test_a_wrong_token_is_refused_and_never_told(there: Repository) -> None:
    with pytest.raises(RefusedError, match="401 Bad credentials") as caught:
        client(there, token="secret-word").get("/pulls/17")
    assert "secret-word" not in f"{caught.value}{caught.value.hint}{client(there)!r}"
    assert TOKEN not in repr(client(there))


def test_a_redirect_is_not_followed(there: Repository) -> None:
    with served(Repository()) as elsewhere:
        there.answers = [Answer(301, "Moved", {"Location": f"{elsewhere.url}/repos/x/y"})]
        with pytest.raises(RefusedError, match="301"):
            client(there).get("/pulls/17")
        assert not elsewhere.asked


def test_an_answer_that_breaks_off_is_asked_for_again(there: Repository) -> None:
    """Whatever its status: one that says no has a body too."""
    there.answers = [Answer(status, "…", {"Content-Length": "99"}) for status in (200, 404)]
    assert client(there).get("/pulls/17") == {"number": 17}


def test_a_page_of_a_proxy_is_no_answer(there: Repository) -> None:
    there.answers = [Answer(200, text="<html>Sign in</html>")] * 9
    with pytest.raises(InfraError, match="not JSON"):
        client(there).get("/pulls/17")


def test_nobody_there_is_an_infrastructure_error(there: Repository) -> None:
    nowhere = GitHub("http://127.0.0.1:9", "example/lab", TOKEN, lambda _: None)
    with pytest.raises(InfraError, match=r"http://127\.0\.0\.1:9 cannot be reached"):
        nowhere.get("/pulls/17")


def test_who_asks_is_told_but_for_workflows(there: Repository) -> None:
    assert client(there).login() == ""
    there.login = "somebody"
    assert client(there).login() == "somebody"


def test_the_environment_names_token_and_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    monkeypatch.delenv("GITHUB_API_URL", raising=False)
    with pytest.raises(UsageError, match="GITHUB_TOKEN is not set"):
        github("example/lab")
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    assert github("example/lab").url == "https://api.github.com"
    monkeypatch.setenv("GITHUB_API_URL", "https://github.example/api/v3/")
    assert github("example/lab").url == "https://github.example/api/v3"
    monkeypatch.setenv("GITHUB_API_URL", "file:///etc/passwd")
    with pytest.raises(UsageError, match="is no address"):
        github("example/lab")
