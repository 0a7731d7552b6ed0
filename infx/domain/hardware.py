"""What an hour of hardware costs and what power it is provided with: constants with a source."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Hardware", "Price", "Provisioned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars an accelerator and hour, all in; ``as_of`` is YYYY-MM or YYYY-MM-DD.

    ``tier`` says who pays so much: an owner of many, one of few, someone who rents.
    """

    usd_gpu_hour: float
    source: str
    as_of: str
    tier: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioned:
    """Watts that a site provides an accelerator with, its share of host, network and cooling
    included. Not what it draws."""

    watts_gpu: float
    source: str
    as_of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """A hardware class by the name that clusters and recipes give it."""

    name: str
    prices: tuple[Price, ...] = ()
    provisioned: Provisioned | None = None

    @property
    def price(self) -> Price | None:
        """The price that figures are reckoned with: the first of the file. None without any."""
        return self.prices[0] if self.prices else None
