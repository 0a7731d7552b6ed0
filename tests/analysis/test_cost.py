from __future__ import annotations

import pytest

from infx.analysis.cost import Price, provisioned_told, told, usd_per_m_tokens
from infx.domain.hardware import Provisioned


def test_dollars_a_million_tokens_by_hand() -> None:
    assert usd_per_m_tokens(1e6 / 3600, 1.48) == pytest.approx(1.48)  # a million an hour
    assert usd_per_m_tokens(2000, 1.48) == pytest.approx(0.20556, abs=1e-5)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_nothing_is_made_of_no_throughput(rate: float) -> None:
    with pytest.raises(ValueError, match="tokens/s"):
        usd_per_m_tokens(rate, 1.0)


def test_a_constant_is_told_with_its_source_and_date() -> None:
    price = Price(usd_gpu_hour=1.9, source="a page", as_of="2026-04", tier="neocloud")
    assert told(price) == "1.90 $/GPU/h (neocloud: a page, as of 2026-04)"
    exact = Price(usd_gpu_hour=2.652, source="a page", as_of="2026-04")
    assert told(exact) == "2.652 $/GPU/h (a page, as of 2026-04)"
    power = Provisioned(watts_gpu=2650.0, source="a page", as_of="2026-04")
    words = provisioned_told(power)
    assert words == "2650 W/GPU provisioned, not measured (a page, as of 2026-04)"
