"""The library boundary: mono as any engine can host it, over that engine's own memory.

    back_end = ...                                    borrows weights and caches, copies neither
    mono = Mono.bind(deployment, kinds, back_end)     collective; a Refusal: keep the own layers
    for width in mono.widths: mono.build(width)       collective; or at the first step of a width
    each step:
        if mono.prepare_step(rows) is None:           a Refusal: run the step on the own layers
            for layer in range(layers):
                if mono.serves(layer): mono.forward_layer(layer, stream_in, stream_out)
                else: ...                             the own layer, on the same streams
    mono.close()

Facts of a step are the same on all ranks, so a step is judged by each rank alone and costs no
exchange; what can differ (memory, compilers) is agreed on when it is bound and built.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from infx.engine.mono.consensus import Agree, alone
from infx.engine.mono.coverage import Coverage
from infx.engine.mono.dispatch import Deployment, refuse_config, refuse_layer
from infx.engine.mono.refusal import Refusal
from infx.engine.mono.shape import MOST_ROWS
from infx.engine.mono.step import Array, StepRows, refuse_step

__all__ = ["WIDTHS", "Array", "BackEnd", "Mono", "Refusal", "StepRows"]

WIDTHS = (1, MOST_ROWS)
_CLOSED = Refusal("mono-closed", "mono is closed: expected a step before close()")


class BackEnd(Protocol):
    """What compiles and runs layers over borrowed weights and caches."""

    def refuse(self) -> Refusal | None:
        """Return what is wrong with what was handed in: formats, strides, alignment, residency."""

    def build(self, width: int) -> Refusal | None:
        """Compile the layers for ``width`` rows, or take them from disk. Asked once a width."""

    def prepare(self, step: StepRows, width: int) -> None:
        """Take a step that dispatch let pass; its arrays are of exactly its rows (<= width).

        Raises ValueError, having changed nothing, for a number that only it looks at (pages).
        """

    def run(self, layer: int, stream_in: Any, stream_out: Any) -> None:
        """Write what ``layer`` makes of the prepared rows' stream; fill the caches."""

    def close(self) -> None:
        """Let go of what was borrowed; may be called again."""


class Mono:
    """A bound back end and the builds that ranks agreed on; made by `bind`."""

    def __init__(
        self,
        deployment: Deployment,
        kinds: Sequence[str],
        back_end: BackEnd,
        agree: Agree,
        widths: Sequence[int],
    ) -> None:
        self.coverage = Coverage()
        self.widths = tuple(sorted(widths))
        self._bounds = deployment.bounds
        device = deployment.device
        self._served = tuple(refuse_layer(kind, device) is None for kind in kinds)
        self._back_end, self._agree = back_end, agree
        self._built: dict[int, Refusal | None] = {}
        self._capturing, self._closed, self._prepared = False, False, False

    @classmethod
    def bind(
        cls,
        deployment: Deployment,
        kinds: Sequence[str],
        back_end: BackEnd | Refusal,
        agree: Agree = alone,
        widths: Sequence[int] = WIDTHS,
    ) -> Mono | Refusal:
        """Return mono over ``back_end``, or why not: the same answer on every rank.

        Collective: every rank calls it, with a Refusal in place of a back end that it could not
        make. A refused back end is left as it is. ``kinds`` are the layers', ``widths`` the builds:
        a step takes the narrowest that holds its rows.
        """
        own = refuse_config(deployment) or _refuse_bind(deployment, kinds, widths)
        refusal = agree(own or _asked(back_end))
        if refusal:
            return refusal
        assert not isinstance(back_end, Refusal)  # it would have been this rank's answer
        return cls(deployment, kinds, back_end, agree, widths)

    def build(self, width: int) -> Refusal | None:
        """Build ``width``, unless it was built or refused before: that answer is final.

        Collective. Returns the answer of all ranks; while capturing, a refusal that is not final.
        Raises ValueError for a width that mono was not bound for.
        """
        if width not in self.widths:
            raise ValueError(f"width {width}: expected one of {self.widths}, as bound")
        if self._closed:
            return _CLOSED
        if width not in self._built:
            if self._capturing:
                return _unbuilt(width)
            self._built[width] = self._agree(self._try(width))
        return self._built[width]

    def prepare_step(self, step: StepRows) -> Refusal | None:
        """Take the step that `forward_layer` then runs, or return why it is not mono's.

        A refused step changes nothing in the back end and writes nothing; no layer runs until a
        step is taken again. The first step of a width builds it.
        """
        self._prepared = False
        refusal = self._refuse(step) or self._take(step)
        self.coverage.count(step.rows, step.prefill, refusal)
        self._prepared = refusal is None
        return refusal

    def forward_layer(self, layer: int, stream_in: Any, stream_out: Any) -> None:
        """Write what ``layer`` makes of ``stream_in`` [rows, hidden] to ``stream_out``.

        Fills the caches at the step's slots. Raises RuntimeError, having done nothing, when no step
        is prepared or the layer is the host's.
        """
        if not self._prepared or not self._served[layer]:
            raise RuntimeError(
                f"forward_layer({layer}): expected a step that prepare_step took and a layer that"
                " serves() says is mono's"
            )
        self._back_end.run(layer, stream_in, stream_out)

    def serves(self, layer: int) -> bool:
        """Return whether mono runs ``layer`` in a mono step; the others stay the host's."""
        return self._served[layer]

    @contextmanager
    def capturing(self) -> Iterator[None]:
        """Inside, a graph is being captured: nothing is built, and a width not built is refused."""
        before, self._capturing = self._capturing, True
        try:
            yield
        finally:
            self._capturing = before

    def close(self) -> None:
        """Let go of weights and caches; every later step is refused."""
        if not self._closed:
            self._closed, self._prepared = True, False
            self._back_end.close()

    def _refuse(self, step: StepRows) -> Refusal | None:
        return (
            (_CLOSED if self._closed else None)
            or refuse_step(step, self._bounds)
            or self._refuse_width(step.rows)
        )

    def _take(self, step: StepRows) -> Refusal | None:
        try:
            self._back_end.prepare(step.exact(), self._width(step.rows))
        except ValueError as error:
            return Refusal("mono-step-numbers", f"{error}; expected numbers within the cache")
        return None

    def _refuse_width(self, rows: int) -> Refusal | None:
        if width := self._width(rows):
            return self.build(width)
        return Refusal(
            "mono-no-width",
            f"{rows} rows: expected at most {self.widths[-1]}, the widest of {self.widths}",
        )

    def _width(self, rows: int) -> int:
        """Return the narrowest width that holds ``rows``; 0: none does."""
        return next((width for width in self.widths if width >= rows), 0)

    def _try(self, width: int) -> Refusal | None:
        try:
            return self._back_end.build(width)
        except Exception as error:  # noqa: BLE001 the other ranks wait for this one's answer
            return Refusal("mono-build-failed", f"width {width}: {_told(error)}")


def _refuse_bind(
    deployment: Deployment, kinds: Sequence[str], widths: Sequence[int]
) -> Refusal | None:
    if len(kinds) != deployment.layers:
        return Refusal(
            "mono-layer-count",
            f"{len(kinds)} layer kinds: expected {deployment.layers}, the model's",
        )
    refusals = [refuse_layer(kind, deployment.device) for kind in kinds]
    if all(refusals):
        first = refusals[0].sentence if refusals and refusals[0] else "the model has no layers"
        return Refusal("mono-no-layer", f"no layer of {len(kinds)} is mono's: {first}")
    if not widths or not all(1 <= width <= MOST_ROWS for width in widths):
        return Refusal(
            "mono-widths", f"widths {tuple(widths)}: expected some, each 1 to {MOST_ROWS}"
        )
    return None


def _asked(back_end: BackEnd | Refusal) -> Refusal | None:
    if isinstance(back_end, Refusal):
        return back_end
    try:
        return back_end.refuse()
    except Exception as error:  # noqa: BLE001 the other ranks wait for this one's answer
        return Refusal("mono-bind-failed", _told(error))


def _unbuilt(width: int) -> Refusal:
    return Refusal(
        "mono-width-not-built",
        f"width {width} is not built and a graph is being captured: expected a step of it, or"
        " build(), before the capture",
    )


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
