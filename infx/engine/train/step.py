"""One step of the target's training; on CUDA recorded once a phase as a graph and replayed."""

# torch leaves unflatten, split and Function.apply without types.
# mypy: allow-untyped-calls

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from infx.engine.train.formulas import form, losses
from infx.engine.train.layer import Mode
from infx.engine.train.optimiser import Optimiser
from infx.engine.train.schedule import Phase
from infx.engine.train.target import Passed, Target

__all__ = ["Lesson", "Step", "Told"]

INDEX_WEIGHT = 0.3
"""Of the indexers' loss. It reaches the indexers alone, and both optimisers scale their own steps:
any number would do."""

BALANCE_RATE = 2e-3
HELD_EVERY = 2
EAGER_STEPS = 3
"""Steps of a phase before the recording: the first compiles."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """Tokens [b, t + 1], loss weights [b, t], rows [r] at which the indexers are taught."""

    tokens: Tensor
    weights: Tensor
    rows: Tensor

    def on(self, device: torch.device) -> Lesson:
        """Return a copy on ``device``."""
        return Lesson(*(t.to(device, copy=True) for t in (self.tokens, self.weights, self.rows)))

    def take(self, other: Lesson) -> None:
        """Copy ``other`` into the tensors of this lesson."""
        self.tokens.copy_(other.tokens)
        self.weights.copy_(other.weights)
        self.rows.copy_(other.rows)


@dataclass(frozen=True, slots=True)
class Told:
    """Mean loss of answers' tokens, loss of the indexers, coverage a layer, and how much more than
    the mean the busiest expert has."""

    answers: Tensor
    index: Tensor
    covered: Tensor
    busiest: Tensor


class Step:
    """Moves ``target`` by one lesson a call."""

    def __init__(self, target: Target, optimiser: Optimiser, device: torch.device) -> None:
        self._target, self._optimiser, self._device = target, optimiser, device
        self._fast = device.type == "cuda"
        self._rate = torch.zeros((), device=device)
        self._phase: Phase | None = None
        self._lesson: Lesson | None = None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._told: Told | None = None
        self._seen = 0

    def __call__(self, lesson: Lesson, phase: Phase, rate: float) -> Told:
        """Take one step of ``phase`` at the share ``rate`` of the highest learning rates."""
        self._optimiser.rate.fill_(rate)
        self._rate.fill_(BALANCE_RATE * min(1.0, 2 * rate))
        if phase != self._phase or self._lesson is None:
            self._phase, self._lesson, self._seen = phase, lesson.on(self._device), 0
            self._graph = self._told = None
        else:
            self._lesson.take(lesson)
        self._seen += 1
        if not self._fast:
            return self._once(self._lesson, phase)
        if self._seen <= EAGER_STEPS:
            return self._aside(self._lesson, phase)
        if self._graph is None or self._told is None:
            self._graph, self._told = self._recorded(self._lesson, phase)
        self._graph.replay()
        return self._told

    def _aside(self, lesson: Lesson, phase: Phase) -> Told:
        """Take a step on a side stream, as a recording's allocations want it."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            told = self._once(lesson, phase)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        return told

    def _recorded(self, lesson: Lesson, phase: Phase) -> tuple[torch.cuda.CUDAGraph, Told]:
        graph = torch.cuda.CUDAGraph()
        # The loader's thread may call CUDA meanwhile: "global", the default, would refuse that.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            told = self._once(lesson, phase)
        return graph, told

    def _once(self, lesson: Lesson, phase: Phase) -> Told:
        tokens, flat = lesson.tokens.long(), lesson.weights.flatten()
        held = HELD_EVERY if phase.rounded else 0
        mode = Mode(sparse=phase.sparse, rounded=phase.rounded, held=held, fast=self._fast)
        # Without its cache of casts: a recorded cast would not be repeated.
        with torch.autocast(
            self._device.type, torch.bfloat16, enabled=self._fast, cache_enabled=False
        ):
            passed = self._target(tokens[:, :-1].contiguous(), mode, lesson.rows)
            lost = self._losses(passed, tokens[:, 1:].contiguous())
        ((lost * flat).sum() / flat.sum() + INDEX_WEIGHT * passed.index_loss).backward()
        self._optimiser.step()
        for n, layer in self._target.numbered:
            if n in passed.loads:
                layer.balance(passed.loads[n], self._rate)
        return _told(passed, lost.detach(), flat == 1)

    def _losses(self, passed: Passed, goal: Tensor) -> Tensor:
        t = self._target
        return form(losses, self._fast)(passed.stream, t.norm, t.head, t.shape.rms_norm_eps, goal)


@torch.no_grad()
def _told(passed: Passed, lost: Tensor, answer: Tensor) -> Told:
    loads = torch.stack(list(passed.loads.values())).float()
    return Told(
        answers=(lost * answer).sum() / answer.sum().clamp(min=1),
        index=passed.index_loss.detach(),
        covered=passed.covered.detach(),
        busiest=(loads.amax(-1) / loads.mean(-1)).amax(),
    )
