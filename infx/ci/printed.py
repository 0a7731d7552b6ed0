"""What `infx ci plan` and `infx review` printed with ``--json``, read by a later step of CI."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec

from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where

__all__ = ["Check", "Plan", "PrintedPlan", "PrintedReview", "Review", "read_printed"]


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON object of which some fields are read, each of exactly the type said here."""


class Job(_Part, frozen=True, kw_only=True):
    """A job to run, with the labels of its points."""

    job_id: str
    name: str
    cluster: str
    points: tuple[str, ...]


class Canary(_Part, frozen=True, kw_only=True):
    """A job that goes first."""

    job_id: str


class Plan(_Part, frozen=True, kw_only=True):
    """What is done for a pull request, and why; ``settings`` is None where no label asks."""

    decision: str
    reason: str
    pull_request: int
    settings: dict[str, Any] | None
    jobs: tuple[Job, ...] = ()
    canaries: tuple[Canary, ...] = ()
    submission_valid: bool = True


class Evidence(_Part, frozen=True, kw_only=True):
    """What a check was seen in."""

    where: str
    text: str


class Check(_Part, frozen=True, kw_only=True):
    """One of the reviewer's checks."""

    number: int
    name: str
    verdict: Literal["PASS", "WARN", "FAIL", "N/A"]
    sentence: str
    evidence: tuple[Evidence, ...] = ()


class Review(_Part, frozen=True, kw_only=True):
    """All of them, of a pull request of ``repository`` (``owner/name``) at the commit ``head``."""

    repository: str
    pull_request: int
    head: str
    verdict: Literal["PASS", "WARN", "FAIL", "N/A"]
    checks: tuple[Check, ...]
    note: str = ""


class _Printed(_Part, frozen=True, kw_only=True):
    schema: str
    diagnostics: tuple[Finding, ...] = ()


class PrintedPlan(_Printed, frozen=True, kw_only=True):
    """The object of ``infx ci plan --json``; without ``data`` the command ended with an error."""

    data: Plan | None


class PrintedReview(_Printed, frozen=True, kw_only=True):
    """The object of ``infx review --json``; without ``data`` the command ended with an error."""

    data: Review | None


T = TypeVar("T", PrintedPlan, PrintedReview)

_COMMANDS = {PrintedPlan: ("ci-plan", "infx ci plan"), PrintedReview: ("review", "infx review")}


def read_printed(data: bytes, kind: type[T], source: str) -> T:
    """Return what a command printed. Raises ConfigError (``not-printed``) for anything else, such
    as a file that a command left empty, or what another command printed."""
    schema, command = _COMMANDS[kind]
    try:
        found = msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_printed(command, str(error), source) from error
    expected = f"infx.{schema}/1" if found.data else "infx.error/1"
    if found.schema != expected:
        raise _not_printed(command, f"its schema is {found.schema}, not {expected}", source)
    return found


def _not_printed(command: str, fault: str, source: str) -> ConfigError:
    sentence = f"not what {command} --json prints: {fault}"
    hint = f"{command} --json … > {source}"
    return ConfigError([Finding("not-printed", "error", sentence, Where(source), hint)])
