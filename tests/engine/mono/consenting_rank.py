"""One of two real ranks: binds and builds mono, with a fault here or there; tells what it got."""

from __future__ import annotations

from dataclasses import dataclass
from multiprocessing.connection import Connection

from infx.engine.mono.consensus import Agree, agree_over
from infx.engine.mono.library import Mono
from infx.engine.mono.refusal import Refusal
from infx.engine.ranks.exchange import join, leave
from infx.engine.ranks.words import words_of_all
from tests.engine.mono.recording import KINDS, Recording, deployment, rows

__all__ = ["SCENARIOS", "Told", "serve"]

WEIGHTS = Refusal("mono-weights", "qkv of layer 1 is float16: expected float32")
SCRATCH = Refusal("mono-build-failed", "width 8 needs 96 bytes of scratch: expected 0")
MISSING = Refusal("mono-no-compiler", "numba: not installed; expected it")
LONG = Refusal("mono-weights", "ÄÖ" * 5000)


@dataclass(frozen=True)
class Told:
    """Answers of bind and of steps of 1, 3 and 3 rows, and what the back end was asked."""

    bound: Refusal | None
    steps: tuple[Refusal | None, ...]
    asked: tuple[str, ...]
    served: int


# Name -> what each rank's back end answers; a Refusal in place of one that could not be made.
SCENARIOS: dict[str, tuple[Recording | Refusal, Recording | Refusal]] = {
    "all agree": (Recording(), Recording()),
    "one refuses at bind": (Recording(), Recording(bind=WEIGHTS)),
    "both refuse, differently": (Recording(bind=SCRATCH), Recording(bind=WEIGHTS)),
    "one has no back end": (MISSING, Recording()),
    "one fails at bind": (Recording(), Recording(bind=OSError("no device"))),
    "one refuses a width": (Recording(), Recording(widths={8: SCRATCH})),
    "one fails at a width": (Recording(widths={8: MemoryError("too little")}), Recording()),
    "a long refusal": (Recording(), Recording(bind=LONG)),
}


def serve(rank: int, port: int, answers: Connection) -> None:
    """Run every scenario as ``rank`` of two; send a `Told` each."""
    join(rank, 2, 60, port)
    agree = agree_over(words_of_all(60))
    for sides in SCENARIOS.values():
        answers.send(_told(sides[rank], agree))
    leave()


def _told(side: Recording | Refusal, agree: Agree) -> Told:
    mono = Mono.bind(deployment(), KINDS, side, agree, (1, 8))
    asked = side.calls if isinstance(side, Recording) else []
    if isinstance(mono, Refusal):
        return Told(mono, (), tuple(call[0] for call in asked), 0)
    steps = tuple(mono.prepare_step(rows(count)) for count in (1, 3, 3))
    served = mono.coverage.snapshot().mono
    return Told(None, steps, tuple(call[0] for call in asked), served)
