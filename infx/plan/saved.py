"""A plan as a file: what `infx plan -o` writes is what `infx sweep` runs, or refuses."""

from __future__ import annotations

import hashlib
from pathlib import Path

from infx.domain.errors import ConfigError, UsageError
from infx.domain.findings import Finding, Where
from infx.domain.plan import Plan
from infx.domain.serial import decode, encode

__all__ = ["check_inputs", "read_plan", "write_plan"]


SCHEMA = "1"


def write_plan(plan: Plan, path: Path) -> None:
    """Write ``plan`` as JSON. Raises UsageError when ``path`` cannot be written."""
    try:
        path.write_bytes(encode(plan))
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        message = f"cannot write the plan to {path}: {error.strerror}"
        raise UsageError(
            "bad-option", message, hint="name a file in a folder that exists"
        ) from error


def read_plan(path: Path) -> Plan:
    """Return the plan in ``path``. Raises ConfigError when there is none."""
    try:
        data = path.read_bytes()
    except OSError as error:
        sentence = f"cannot read the plan: {error.strerror}"
        raise ConfigError(
            [Finding("file-not-found", "error", sentence, Where(str(path)))]
        ) from error
    hint = "hand over what infx plan -o or infx ci plan -o wrote"
    plan = decode(data, Plan, source=str(path), hint=hint)
    if plan.schema_version != SCHEMA:
        sentence = f"a plan of schema {plan.schema_version}; this infx reads schema {SCHEMA}"
        finding = Finding("bad-record", "error", sentence, Where(str(path)), hint="plan again")
        raise ConfigError([finding])
    return plan


def check_inputs(plan: Plan, root: Path) -> None:
    """Raise ConfigError (``inputs-changed``) for each file that is not as it was planned.

    A plan names its inputs as seen from the project's folder, ``root``.
    """
    files = {name: root / name for name in plan.inputs}
    changed = [name for name, path in files.items() if _digest(path) != plan.inputs[name]]
    if changed:
        raise ConfigError([_changed(name, files[name], root) for name in changed])


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _changed(name: str, path: Path, root: Path) -> Finding:
    sentence = f"changed since the plan was saved (looked for in {root})"
    hint = "run infx plan again"
    if not path.is_file():
        sentence = f"is not in {root}, where the plan's files are looked for"
        hint = "run the plan in its project's folder, or run infx plan again"
    return Finding("inputs-changed", "error", sentence, Where(name), hint=hint)
