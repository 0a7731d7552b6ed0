"""How many drafts a verify step accepts: by comparison (real) or by a law (synthetic)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from infx.domain.acceptance import Acceptance, distribution, draw

__all__ = ["Verdict", "verdict_of"]

Verdict = Callable[[Sequence[int], Sequence[int], int, int], list[int]]
"""(drafts, targets, request number, tokens emitted) -> the tokens that the step emits."""


def verdict_of(acceptance: Acceptance, seed: int) -> Verdict:
    """Return the rule that turns K drafts and K+1 target tokens into emitted tokens.

    Real: the longest prefix of drafts that equals the target's own tokens, then the target's next
    token. Targets are sampled with counter-based draws, so the text is the same as without drafts,
    greedy or not. Synthetic: the law says how many drafts count as equal; nothing else changes.
    """
    if acceptance.mode == "real":
        return _compare
    law = distribution(acceptance.law, acceptance.length or 1.0, acceptance.k, acceptance.curve)

    def by_law(
        drafts: Sequence[int], targets: Sequence[int], number: int, emitted: int
    ) -> list[int]:
        accepted = draw(law, seed, number, emitted) - 1
        return [*drafts[:accepted], targets[accepted]]

    return by_law


def _compare(drafts: Sequence[int], targets: Sequence[int], number: int, emitted: int) -> list[int]:
    del number, emitted
    accepted = 0
    while accepted < len(drafts) and drafts[accepted] == targets[accepted]:
        accepted += 1
    return [*drafts[:accepted], targets[accepted]]
