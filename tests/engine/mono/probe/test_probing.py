"""The probe passes a layer that keeps its promises, and names what one breaks."""

from __future__ import annotations

import pytest

from infx.engine.mono.probe.probing import probe
from tests.engine.mono.probe import toy_layers
from tests.engine.mono.probe.toy_layers import Toy

SEEDS, WIDTHS = range(6), [1, 2, 3, 9, 16]

BREAKS = {
    toy_layers.OrderOfTheBatch: {"alone", "verify"},
    toy_layers.OrderOfTheWidth: {"alone", "padded", "verify"},
    toy_layers.OrderOfArrival: {"alone", "again", "poison", "verify", "padded", "pads"},
    toy_layers.PadsInTheUnion: {"pads"},
    toy_layers.PadsRouted: {"pads"},
    toy_layers.WholePages: {"poison"},
    toy_layers.DirtyScratch: {"poison"},
    toy_layers.BlindVerifyRows: {"verify"},
    toy_layers.PadsWrite: {"slots"},
}


def test_a_layer_that_keeps_its_promises_passes() -> None:
    tally = probe(Toy(), SEEDS, WIDTHS)
    assert tally.ok
    assert all(found.rows for found in tally.findings.values())
    assert not any(found.untold for found in tally.findings.values())
    # Three probes in each step that has room for them.
    assert tally.findings["alone"].rows == len(SEEDS) * (1 + 2 + 3 + 3 + 3)
    assert tally.findings["verify"].rows == len(SEEDS) * (4 + 8)


@pytest.mark.parametrize("broken", BREAKS, ids=lambda made: made.__name__)
def test_a_broken_promise_is_named(broken: type[Toy]) -> None:
    tally = probe(broken(), SEEDS, WIDTHS)
    named = {name for name, found in tally.findings.items() if found.differing}
    assert named == BREAKS[broken]
    for name in named:
        first = tally.findings[name].first
        assert first is not None
        assert first.layer == 0
        assert 0 <= first.row < first.width <= 16
        assert first.what


def test_progress_is_told_after_each_seed() -> None:
    told: list[tuple[int, int]] = []
    probe(Toy(), [4, 5], [3], lambda done, t: told.append((done, t.findings["alone"].rows)))
    assert told == [(1, 3), (2, 6)]


def test_what_an_arm_does_not_tell_is_no_proof() -> None:
    class Deaf(toy_layers.PadsInTheUnion):
        """Never hears of a read."""

        def reads(self, rows: object) -> set[int]:
            return set()

    found = probe(Deaf(), SEEDS, [9]).findings["pads"]
    assert found.untold
    assert not found.differing
