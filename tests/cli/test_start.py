"""Help is quick: what commands need is imported inside them."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from tests.cli.commands import INFX, environment, infx

HEAVY = {"pandas", "numpy", "matplotlib", "torch", "pydantic", "scipy", "yaml", "rich", "jinja2"}
COMMANDS = (
    *("plan", "sweep", "status", "watch", "logs", "cancel", "resume", "gather", "judge"),
    *("report", "compare", "eval", "config", "doctor", "serve"),
)

QUIET_START_S = 0.014
"""CPU of `python -c pass` on the quiet machine that the limit of 0.2 s is meant for."""


def cpu_s(command: list[str]) -> float:
    """The least CPU time of five runs: what the machine does beside it counts little."""
    return min(_cpu_once(command) for _ in range(5))


def _cpu_once(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.slow
@pytest.mark.alone
def test_help_takes_less_than_a_fifth_of_a_second():
    slowdown = max(1.0, cpu_s([sys.executable, "-c", "pass"]) / QUIET_START_S)
    assert cpu_s([*INFX, "--help"]) < 0.2 * slowdown


@pytest.mark.parametrize("arguments", [["--help"], ["plan", "--help"], ["sweep", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]):
    code = (
        "import sys; from infx.cli.main import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(' '.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    assert "Usage" in done.stdout
    loaded = {name.split(".")[0] for name in done.stderr.split()}
    assert "typer" in loaded
    assert not loaded & HEAVY


def test_help_lists_every_command():
    done = infx("--help")
    assert done.returncode == 0
    listed = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")}
    assert set(COMMANDS) <= listed


def test_no_arguments_show_the_help():
    done = infx()
    assert "Usage: infx" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_version_is_one_line():
    done = infx("--version")
    assert (done.returncode, done.stdout.startswith("infx 0")) == (0, True)
