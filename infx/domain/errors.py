"""The error tree, sorted by who must act.

    InfxError                       exit code
    ├── UsageError                  2   the caller: a wrong command, option or argument
    ├── ConfigError                 2   the author of a file: carries findings with file:line:col
    ├── EmptyPlanError                   5   the author: nothing is left to run
    ├── InfraError                  3   the machine or the cluster: retry, here or elsewhere
    ├── EngineError                 4   the engine under test: a point of the sweep failed
    └── MeasurementError            4   the client or the harness: no number can be trusted

A message names the thing, the value, what was expected and the next step. ``code`` is one of
`infx.domain.codes.CODES`; a caught error becomes a status or a finding without being re-worded.
"""

from __future__ import annotations

from collections.abc import Sequence

from infx.domain.findings import Finding

__all__ = [
    "ConfigError",
    "EmptyPlanError",
    "EngineError",
    "InfraError",
    "InfxError",
    "MeasurementError",
    "UsageError",
]


class InfxError(Exception):
    """Root of every error that infx raises on purpose."""

    exit_code = 2

    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(InfxError):
    """The command line asks for something that cannot be."""


class ConfigError(InfxError):
    """One or more faults in files; all of them, found in one pass."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        first = self.findings[0]
        super().__init__(first.code, "\n".join(str(finding) for finding in self.findings))


class EmptyPlanError(InfxError):
    """Every candidate was excluded, deferred or a duplicate."""

    exit_code = 5


class InfraError(InfxError):
    """The machine, the network or the scheduler failed; the same work may succeed elsewhere."""

    exit_code = 3


class EngineError(InfxError):
    """The engine under test failed: it died, hung, or answered wrongly."""

    exit_code = 4


class MeasurementError(InfxError):
    """The client or the harness failed, so that no number can be trusted."""

    exit_code = 4
