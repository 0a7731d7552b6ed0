"""Following a log that comes from another machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from infx.cli.logs import _print
from infx.launch.logs import Log


def test_a_log_is_followed_where_each_fetch_makes_another_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infx.cli.logs.FOLLOW_S", 0)
    path = tmp_path / "server.log"
    path.write_text("loading\n")
    more = iter(["loading\nready: 1 \u00b5s\n", "loading\nready: 1 \u00b5s\nended\n"])
    grows = iter([True, False])

    def newest() -> Path:  # as rsync does
        (tmp_path / "new").write_text(next(more))
        return (tmp_path / "new").replace(path)

    _print(Log(path=path, newest=newest, grows=lambda: next(grows)), follow=True)
    assert capsys.readouterr().out == "loading\nready: 1 \u00b5s\nended\n"


def test_the_log_that_begins_after_the_followed_one_is_followed_to_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infx.cli.logs.FOLLOW_S", 0)
    first, second = tmp_path / "26.log", tmp_path / "infx.log"
    first.write_text("job 26\n")

    def newest() -> Path:  # the job ends before anybody looks again
        first.write_text("job 26\nsee infx.log\n")
        second.write_text("the server room is on fire\n")
        return second

    _print(Log(path=first, newest=newest, grows=lambda: False), follow=True)
    out, err = capsys.readouterr()
    assert out == "job 26\nsee infx.log\nthe server room is on fire\n"
    assert str(second) in err
