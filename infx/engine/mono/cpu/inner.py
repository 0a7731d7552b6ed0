# mypy: ignore-errors
"""Functions that only compiled code calls, named for the build that they are made for.

Compiled code is linked by name, and numba tells closures of one name apart by a count that each
process begins anew: builds that two processes compiled, loaded into a third, ran each other's
functions.
"""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["inner", "owned_by", "owner"]

_owner = ""


def owned_by(build: str) -> None:
    """Let all functions that are made from now on carry ``build`` in their names."""
    global _owner
    _owner = build


def owner() -> str:
    """Return the build that functions are made for; what is kept of them is kept by it."""
    return _owner


def inner(function: Any) -> Any:
    """Return ``function`` for compiled code to call.

    No wrappers: those for other callers took half of the compile time.
    """
    function.__qualname__ = f"{_owner}.{function.__qualname__}"
    return njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
