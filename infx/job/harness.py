"""The programs that make the numbers, in the versions that the plan says."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from infx.domain.errors import InfraError

__all__ = ["check_version"]


def check_version(package: str, planned: str) -> None:
    """Raise InfraError (``harness-missing``, ``harness-version``) unless ``package`` is installed
    in the planned version: another one makes other numbers."""
    hint = f"pip install {package}=={planned}"
    try:
        found = version(package)
    except PackageNotFoundError as error:
        message = f"{package} is not installed; the plan expects {package} {planned}"
        raise InfraError("harness-missing", message, hint=hint) from error
    if found != planned:
        message = f"{package} {found} is installed; the plan expects {package} {planned}"
        raise InfraError("harness-version", message, hint=hint)
