from __future__ import annotations

from pathlib import Path

import pytest

from infx.job.log_lines import line_with, useful_line

TRACEBACK = """INFO loading
Traceback (most recent call last):
  File "engine.py", line 3, in <module>
    raise_error()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB

During handling of the above exception, another exception occurred:

RuntimeError: engine core initialization failed
"""


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (TRACEBACK, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"),
        ("(core pid=7) ValueError: no such model\n", "(core pid=7) ValueError: no such model"),
        ("I loading\nE gguf: failed to open file\nI cleaning\n", "E gguf: failed to open file"),
        ("python: cannot open file\nlast\n", "python: cannot open file"),
        ("one\n\ntwo\n\n", "two"),
        ("", "no output"),
    ],
)
def test_useful_line(log: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(log)
    assert useful_line(tmp_path / "log") == line


def test_only_what_came_after(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"ValueError: old\nnew\n")
    assert useful_line(tmp_path / "log", 16) == "new"


def test_bytes_that_are_no_text_and_long_lines(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\xff\xfe error " + b"x" * 1000)
    assert len(useful_line(tmp_path / "log")) == 300


def test_a_line_with_words_is_found_however_late(tmp_path: Path) -> None:
    """A log of graph captures may be long before it says what was switched off."""
    (tmp_path / "log").write_text("captured\n" * 600_000 + "  mono off: why\nlast\n")
    assert line_with(tmp_path / "log", "mono off: ") == "mono off: why"
    assert line_with(tmp_path / "log", "no such words") == ""
    assert line_with(tmp_path / "none", "mono off: ") == ""


def test_no_file(tmp_path: Path) -> None:
    assert useful_line(tmp_path / "none") == "no output"
