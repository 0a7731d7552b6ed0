"""Running infx as a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from infx.cli.boundary import run
from infx.cli.main import app

ROOT = Path(__file__).parents[2]
INFX = [sys.executable, "-c", "from infx.cli.main import main; main()"]
STAND_IN = [sys.executable, "-m", "tests.cli.stand_in_infx"]


def environment(**extra: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("INFX_") and k != "NO_COLOR"}
    return kept | {"PYTHONPATH": str(ROOT)} | extra


def infx(
    *arguments: object,
    program: list[str] = INFX,
    cwd: Path = ROOT,
    limit_s: float = 120,
    **extra: str,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*program, *map(str, arguments)],
        cwd=cwd,
        env=environment(**extra),
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )


def here(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`infx` in this process: for commands that only read, since a start costs half a second."""
    out, told = StringIO(), StringIO()
    words = list(map(str, arguments))
    with redirect_stdout(out), redirect_stderr(told):
        code = run(
            lambda: app(words, standalone_mode=False, prog_name="infx"), as_json="--json" in words
        )
    return subprocess.CompletedProcess(words, code, out.getvalue(), told.getvalue())


def as_json(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The one object that --json prints, with its shape checked."""
    found = json.loads(done.stdout)
    assert set(found) == {"schema", "ok", "data", "diagnostics"}
    assert found["schema"].startswith("infx.")
    return found
