"""What the engine cannot serve, said before anything is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from infx.domain.errors import UsageError

__all__ = ["RefusalError", "refuse_faults"]

MOST_FAULTS = 10


class RefusalError(UsageError):
    """The engine cannot serve what it was asked to; its code is of the engine family."""


def refuse_faults(code: str, where: str, faults: Sequence[str], hint: str = "") -> None:
    """Raise RefusalError with all ``faults`` of ``where`` (ten in words), if there are any."""
    if not faults:
        return
    more = [f"and {len(faults) - MOST_FAULTS} more"] if len(faults) > MOST_FAULTS else []
    sentence = "; ".join([*faults[:MOST_FAULTS], *more])
    raise RefusalError(code, f"{where}: {sentence}", hint=hint)
