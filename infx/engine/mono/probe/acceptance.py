"""Do the arms accept the same drafts? The same verify steps, run whole by each arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from infx.engine.config import EngineConfig
from infx.engine.model.step import step_rows
from infx.engine.mono.probe.arms import Run
from infx.engine.mono.probe.compiled_arms import three
from infx.engine.mono.probe.layer_bytes import LayerBytes
from infx.engine.mono.probe.rows import ARMS, Arm
from infx.engine.mono.probe.serving import Decode
from infx.engine.weights import target_weights

__all__ = ["AcceptanceCheck", "Agreement", "accepted"]


def accepted(drafts: Sequence[int], targets: Sequence[int]) -> int:
    """Return how many drafts from the first on are the target's own tokens."""
    pairs = zip(drafts, targets, strict=False)
    return next((n for n, (draft, own) in enumerate(pairs) if draft != own), len(drafts))


@dataclass(slots=True)
class Agreement:
    """How often two arms agree: on each row's likeliest token, on each verify's accepted drafts."""

    rows: int = 0
    equal_rows: int = 0
    verifies: int = 0
    equal_lengths: int = 0

    @property
    def top1(self) -> float:
        """Share of rows with the same likeliest token."""
        return self.equal_rows / self.rows if self.rows else 0.0

    @property
    def lengths(self) -> float:
        """Share of verify steps that accept as many drafts."""
        return self.equal_lengths / self.verifies if self.verifies else 0.0

    def count(self, drafts: Sequence[Sequence[int]], one: list[int], other: list[int]) -> None:
        """Add a step: the arms' likeliest tokens, one for each row of each request in turn."""
        self.rows += len(one)
        self.equal_rows += sum(a == b for a, b in zip(one, other, strict=True))
        first = 0
        for own in drafts:
            rows = slice(first, first + len(own) + 1)
            self.verifies += 1
            self.equal_lengths += accepted(own, one[rows]) == accepted(own, other[rows])
            first = rows.stop


@dataclass(slots=True)
class AcceptanceCheck:
    """Looks at verify steps (`serving.serve`) until it has seen ``steps``.

    ``against`` holds how mono agrees with each other arm; ``emitted`` the tokens that each arm
    would have emitted, over ``verifies`` verifies.
    """

    config: EngineConfig
    steps: int
    seen: int = 0
    verifies: int = 0
    against: dict[Arm, Agreement] = field(
        default_factory=lambda: {arm: Agreement() for arm in ARMS[1:]}
    )
    emitted: dict[Arm, int] = field(default_factory=lambda: dict.fromkeys(ARMS, 0))
    _model: _Models | None = None

    def __call__(self, decode: Decode) -> bool:
        """Run a step by each arm from the same state; return whether to go on."""
        self._model = self._model or _Models(self.config, decode)
        chosen = self._model.chosen(decode)
        for arm, agreement in self.against.items():
            agreement.count(decode.drafts, chosen["mono"], chosen[arm])
        for arm, tokens in chosen.items():
            self.emitted[arm] += _emitted(decode.drafts, tokens)
        self.verifies += len(decode.drafts)
        self.seen += 1
        return self.seen < self.steps

    def acceptance_length(self, arm: Arm) -> float:
        """Return the tokens that a verify step of ``arm`` would have emitted, on average."""
        return self.emitted[arm] / self.verifies if self.verifies else 0.0


def _emitted(drafts: Sequence[Sequence[int]], tokens: list[int]) -> int:
    total, first = 0, 0
    for own in drafts:
        total += accepted(own, tokens[first : first + len(own) + 1]) + 1
        first += len(own) + 1
    return total


class _Models:
    """The target by each arm, over the cache of the model that is served."""

    def __init__(self, config: EngineConfig, decode: Decode) -> None:
        shape = config.shape
        weights = target_weights(shape, config.weights, config.expert_dtype)
        self._arms = three(shape, weights, decode.cache)
        self._layers = [LayerBytes(decode.cache, layer) for layer in range(shape.num_layers)]

    def chosen(self, decode: Decode) -> dict[Arm, list[int]]:
        """Return each arm's likeliest token of each live row."""
        slots = decode.batch.slots.tolist()
        self._arms.prepare(step_rows(decode.batch, prefill=False))
        before = [layer.take(slots) for layer in self._layers]
        found: dict[Arm, list[int]] = {}
        for arm, run in self._arms.runs.items():
            for layer, was in zip(self._layers, before, strict=True):
                layer.put(slots, was)
            found[arm] = self._likeliest(run, decode)
        return found

    def _likeliest(self, run: Run, decode: Decode) -> list[int]:
        stream = decode.embed[decode.batch.tokens].numpy()
        for layer in range(len(self._layers)):
            out = np.empty_like(stream)
            run(layer, stream, out)
            stream = out
        logits = decode.head(torch.from_numpy(stream))[decode.batch.live]
        likeliest: list[int] = logits[:, : decode.vocabulary].argmax(-1).tolist()
        return likeliest
