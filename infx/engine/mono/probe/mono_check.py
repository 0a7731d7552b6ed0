"""Each layer of mono against the unfused layer, on the same decode steps: served or random ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from infx.engine.cache import KvCache
from infx.engine.config import EngineConfig
from infx.engine.model.step import step_rows
from infx.engine.mono.probe.arms import Three
from infx.engine.mono.probe.layer_bytes import LayerBytes
from infx.engine.mono.probe.rows import Numbers
from infx.engine.mono.probe.serving import Decode
from infx.engine.weights import target_weights

__all__ = ["LayerFinding", "MonoCheck", "Spot", "mono_check"]


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a difference was seen first: the step, its row, that row's position, and what."""

    step: int
    row: int
    position: int
    what: str

    def __str__(self) -> str:
        return f"step {self.step}, row {self.row}, position {self.position}: {self.what}"


@dataclass(slots=True)
class LayerFinding:
    """What was found of a layer: rows compared, and of each part those that differ.

    ``greatest`` is the largest |mono - unfused| of an output, ``from_reference`` the largest
    |mono - plain torch| of the same inputs.
    """

    rows: int = 0
    differing: Counter[str] = field(default_factory=Counter)
    greatest: float = 0.0
    from_reference: float = 0.0
    first: Spot | None = None


def mono_check(config: EngineConfig, steps: int) -> MonoCheck:
    """Return a check of the layers that ``config`` serves, on this machine's processor."""

    # Here: a check of another device has no use for what compiles these.
    from infx.engine.mono.probe.compiled_arms import three

    def make(cache: KvCache) -> Three:
        weights = target_weights(config.shape, config.weights, config.expert_dtype)
        return three(config.shape, weights, cache)

    return MonoCheck(config.shape.num_layers, make, steps)


class MonoCheck:
    """Looks at decode steps (`serving.serve`, or random ones) until it has seen ``steps``.

    ``make`` makes the arms over the cache of the first one.
    """

    def __init__(self, layers: int, make: Callable[[KvCache], Three], steps: int) -> None:
        self.steps, self.seen = steps, 0
        self.layers = [LayerFinding() for _ in range(layers)]
        self._make = make
        self._arms: _Arms | None = None

    @property
    def ok(self) -> bool:
        """Whether all rows were equal, and there were any."""
        return self.seen > 0 and not any(finding.differing for finding in self.layers)

    def __call__(self, decode: Decode) -> bool:
        """Run all layers of a step by each arm from the same state; return whether to go on."""
        self._arms = self._arms or _Arms(self._make(decode.cache), decode.cache, len(self.layers))
        self._arms.prepare(decode)
        stream = decode.embed[decode.batch.tokens].numpy()
        for layer in range(len(self.layers)):
            stream = self._compare(layer, stream, decode, self._arms)
        self.seen += 1
        return self.seen < self.steps

    def _compare(self, layer: int, stream: Numbers, decode: Decode, arms: _Arms) -> Numbers:
        finding, live = self.layers[layer], decode.batch.live.tolist()
        mono, unfused, reference = arms.run(layer, stream, decode.batch.slots.tolist())
        finding.rows += len(live)
        finding.greatest = max(finding.greatest, _apart(mono.out[live], unfused.out[live]))
        apart = _apart(mono.out[live], reference.out[live])
        finding.from_reference = max(finding.from_reference, apart)
        for place, row in enumerate(live):
            parts = _differing(mono, unfused, row, place)
            finding.differing.update(parts)
            if parts and finding.first is None:
                position = int(decode.batch.positions[row])
                finding.first = Spot(self.seen, row, position, ", ".join(parts))
        return unfused.out


@dataclass(frozen=True, slots=True)
class _Ran:
    """What an arm made of a layer: ``out`` [rows, hidden], and the bytes in live rows' slots."""

    out: Numbers
    kept: list[dict[str, bytes]]


class _Arms:
    """The three arms over the cache of the model that is served."""

    def __init__(self, arms: Three, cache: KvCache, layers: int) -> None:
        self._three = arms
        self._layers = [LayerBytes(cache, number) for number in range(layers)]

    def prepare(self, decode: Decode) -> None:
        """Take the step, for all arms."""
        self._three.prepare(step_rows(decode.batch, prefill=False))

    def run(self, layer: int, stream: Numbers, slots: Sequence[int]) -> list[_Ran]:
        """Return what each arm makes of ``stream``, the cache being the same before each."""
        before, made = self._layers[layer].take(slots), []
        for run in self._three.runs.values():
            self._layers[layer].put(slots, before)
            out: Numbers = np.full_like(stream, np.nan)
            run(layer, stream, out)
            made.append(_Ran(out, [self._layers[layer].named(slot) for slot in slots]))
        return made


def _differing(one: _Ran, other: _Ran, row: int, place: int) -> list[str]:
    parts = [] if one.out[row].tobytes() == other.out[row].tobytes() else ["output"]
    kept = other.kept[place]
    parts += [name for name, data in one.kept[place].items() if kept[name] != data]
    return parts if np.isfinite(one.out[row]).all() else [*parts, "not finite"]


def _apart(one: Any, other: Any) -> float:
    return float(np.abs(one - other).max())
