"""The probe: every property in every layer, over worlds of many seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from infx.engine.mono.probe.properties import clean, poisoned
from infx.engine.mono.probe.rows import NAN, ZERO, Subject
from infx.engine.mono.probe.tally import Tally
from infx.engine.mono.probe.world import World

__all__ = ["probe"]


def probe(
    subject: Subject,
    seeds: Sequence[int],
    widths: Sequence[int],
    tell: Callable[[int, Tally], None] = lambda done, tally: None,
) -> Tally:
    """Return what ``seeds`` show of ``subject`` at ``widths``; ``tell`` hears after each seed.

    Layers are probed one by one, on random streams: a difference is named where it arises, inputs
    can be chosen (sharers, duplicates), and layers that each keep a row to itself do so one after
    another. Streams as a model makes them are `check`'s.
    """
    tally = Tally()
    for done, seed in enumerate(seeds, 1):
        world, layers = World(subject.shape, seed), range(len(subject.kinds))
        subject.fill(world, ZERO)
        made = [clean(subject, layer, world, widths) for layer in layers]
        subject.fill(world, NAN)
        for pairs, before in made:
            tally.count(pairs, seed, world.sort)
            tally.count(poisoned(subject, world, before), seed, world.sort)
        tell(done, tally)
    return tally
