"""The most padded step, against all steps counted one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from infx.plan.lint_captures import worst_padding


@given(
    sizes=st.sets(st.integers(1, 80), min_size=1).map(lambda s: tuple(sorted(s))),
    requests=st.integers(1, 20),
    width=st.integers(1, 8),
)
def test_the_worst_step_is_the_worst_of_all(
    sizes: tuple[int, ...], requests: int, width: int
) -> None:
    pads = {}
    for n in range(1, requests + 1):
        size = next((size for size in sizes if size >= n * width), None)
        if size is not None and size != n * width:
            pads[n] = (size - n * width) / size
    found = worst_padding(sizes, requests, width)
    if not pads:
        assert found is None
        return
    assert found
    assert found.share == max(pads.values()) == pads[found.requests]
    assert found.missed == len(pads)
    assert found.size - found.padded == found.requests * width
    assert 0 < found.share < 1


def test_every_size_pads_nothing_and_powers_of_two_pad_almost_half() -> None:
    assert worst_padding(tuple(range(4, 257, 4)), 64, 4) is None
    worst = worst_padding((4, 8, 16, 32, 64, 128), 24, 4)
    assert worst
    assert (worst.requests, worst.size, worst.padded) == (17, 128, 60)
    assert 0.44 < worst.share < 0.47, "what the public recipe says of the stock sizes"
