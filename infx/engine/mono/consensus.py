"""One answer for all ranks: when one refuses, all do, in the same words.

A rank that went on alone would wait in its layer's sum for ranks that run other layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from infx.engine.mono.refusal import Refusal

__all__ = ["Agree", "Gather", "agree_over", "alone"]

Agree = Callable[[Refusal | None], Refusal | None]
"""Takes this rank's answer, returns that of all ranks; every rank has to call it."""

Gather = Callable[[str], Sequence[str]]
"""Takes this rank's words, returns those of all ranks, in rank order; long ones may be cut."""


def alone(own: Refusal | None) -> Refusal | None:
    """Return the answer of the only rank."""
    return own


def agree_over(gather: Gather) -> Agree:
    """Return the consensus over a channel: the lowest refusing rank's refusal, or None.

    Its sentence begins with that rank's number, so that it is the same text on every rank.
    """

    def agree(own: Refusal | None) -> Refusal | None:
        """Return the answer of all ranks. Collective."""
        answers = gather("" if own is None else f"{own.code} {own.sentence}")
        for rank, words in enumerate(answers):
            if words:
                code, _, sentence = words.partition(" ")
                return Refusal(code, f"rank {rank}: {sentence}")
        return None

    return agree
