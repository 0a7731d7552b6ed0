"""What is told of clocks that blocks left: for each mark, edges in µs since the first."""

from __future__ import annotations

import pytest
import torch

from infx.engine.mono.cuda.tracing import SM_MHZ, _edges


def test_edges_are_of_the_blocks_that_passed_a_mark() -> None:
    clocks = torch.zeros(2, 3, 5, dtype=torch.int64)  # layers, blocks, marks
    clocks[..., 0] = 1_000_000 * torch.arange(1, 4)  # each SM has a clock of its own
    clocks[..., 2] = clocks[..., 0] + 4 * SM_MHZ
    clocks[:, 1, 4] = clocks[:, 1, 0] + 7 * SM_MHZ  # one block alone
    found = dict(_edges(clocks))
    assert set(found) == {2, 4}
    assert found[2] == pytest.approx([4, 4, 4])
    assert found[4] == pytest.approx([7, 7, 7])
