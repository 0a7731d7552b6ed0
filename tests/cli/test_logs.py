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
    grows = iter([True, True, False])

    def fetch() -> None:  # as rsync does
        (tmp_path / "new").write_text(next(more))
        (tmp_path / "new").replace(path)

    _print(Log(path=path, fetch=fetch, grows=lambda: next(grows)), follow=True)
    assert capsys.readouterr().out == "loading\nready: 1 \u00b5s\nended\n"
