"""Slurm's own commands, asked about one lab."""

from __future__ import annotations

import re
import subprocess

from infx.domain.errors import InfraError
from infx.launch.lab import packages
from infx.launch.lab.conf import LabSpec
from infx.launch.lab.daemons import environment

__all__ = ["ask"]

LIMIT_S = 60.0
"""A client that finds no controller gives up after 19 s."""


def ask(spec: LabSpec, *words: str, given: str = "", fine: str = "") -> str:
    """Return what a command prints; ``given`` is its standard input.

    Raises InfraError ``lab-failed`` with what it says when it does not end, and when it fails,
    unless all it says matches the expression ``fine``.
    """
    try:
        answer = subprocess.run(
            [packages.find(words[0]) or words[0], *words[1:]],
            input=given,
            env=environment(spec),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _failed(spec, words, f"no answer in {LIMIT_S:.0f} s") from None
    said = f"{answer.stderr}{answer.stdout}".strip()
    if answer.returncode and not (fine and re.fullmatch(fine, said)):
        raise _failed(spec, words, said or f"exit code {answer.returncode}")
    return answer.stdout


def _failed(spec: LabSpec, words: tuple[str, ...], how: str) -> InfraError:
    hint = f"the logs are in {spec.folder}/log"
    return InfraError("lab-failed", f"{' '.join(words)[:80]}: {how}", hint=hint)
