"""A plan as a file: what `infx plan -o` writes is what `infx sweep` runs, or refuses."""

from __future__ import annotations

import hashlib
from pathlib import Path

from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where
from infx.domain.plan import Plan
from infx.domain.serial import decode, encode

__all__ = ["check_inputs", "read_plan", "write_plan"]


def write_plan(plan: Plan, path: Path) -> None:
    """Write ``plan`` as JSON."""
    path.write_bytes(encode(plan))


def read_plan(path: Path) -> Plan:
    """Return the plan in ``path``. Raises ConfigError when there is none."""
    try:
        data = path.read_bytes()
    except OSError as error:
        sentence = f"cannot read the plan: {error.strerror}"
        raise ConfigError(
            [Finding("file-not-found", "error", sentence, Where(str(path)))]
        ) from error
    return decode(data, Plan, source=str(path))


def check_inputs(plan: Plan) -> None:
    """Raise ConfigError (``inputs-changed``) for each file that is not as it was planned."""
    changed = [name for name, digest in plan.inputs.items() if _digest(Path(name)) != digest]
    if changed:
        raise ConfigError([_changed(name) for name in changed])


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _changed(name: str) -> Finding:
    state = "changed" if Path(name).is_file() else "is gone"
    sentence = f"{state} since the plan was saved"
    return Finding("inputs-changed", "error", sentence, Where(name), hint="run infx plan again")
