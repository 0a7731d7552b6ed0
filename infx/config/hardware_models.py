"""The shape of configs/hardware.yaml as pydantic models, as `infx.config.models` has others'."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SkipValidation

from infx.config.names import AS_OF
from infx.config.sections import Section, Text

__all__ = ["HardwareSection", "PriceSection", "ProvisionedSection"]

AsOf = Annotated[str, Field(pattern=AS_OF)]


class PriceSection(Section):
    """A price of an accelerator, all in."""

    tier: Text = Field(description="who pays it: hyperscaler, neocloud, rental")
    usd_gpu_hour: float = Field(ge=0.001, description="dollars an accelerator and hour")
    source: Text = Field(description="who says so; printed beside every figure")
    as_of: AsOf = Field(description="when, quoted: '2026-04' or '2026-04-30'")


class ProvisionedSection(Section):
    """What a site provides an accelerator with: its share of host, network and cooling too."""

    watts_gpu: float = Field(ge=1, description="watts an accelerator")
    source: Text = Field(description="who says so; printed beside every figure")
    as_of: AsOf = Field(description="when, quoted: '2026-04' or '2026-04-30'")


class HardwareSection(Section):
    """A hardware class, by the name that clusters and recipes give it."""

    prices: list[SkipValidation[PriceSection]] = Field(
        [], description="the first is the one that figures are reckoned with; none: no dollars"
    )
    provisioned: SkipValidation[ProvisionedSection] | None = Field(
        None, description="for joules a token that are provided, not measured"
    )
