"""Curves as a collection would leave them."""

from __future__ import annotations

from infx.golden.curve import Curve, Made, Sampling, Source, Subject, Value
from infx.golden.estimate import Batch

SUBJECT = Subject(framework="infx", model="minimaxm3-mini", method="eagle3", weights="random:0")
MADE = Made(
    command="infx golden collect recipe --k 1-3",
    date="2026-11-30T10:00:00+00:00",
    engine="infx 0.1.0",
    hardware="a processor, 2 cores",
    infx_version="0.1.0",
    git_revision="0123456789abcdef",
)
SAMPLING = Sampling(content="version 2.0", prompts=8, batch=4)


def value(*batches: tuple[float, int]) -> Value:
    return Value(batches=tuple(Batch(*batch) for batch in batches), made=MADE)


def curve(**changes: object) -> Curve:
    fields: dict[str, object] = {
        "subject": SUBJECT,
        "sampling": SAMPLING,
        "source": Source(name="recipe"),
        "values": {"off": {1: value((60, 100), (64, 100)), 3: value((150, 100), (141, 90))}},
    }
    return Curve(**{**fields, **changes})  # type: ignore[arg-type]
