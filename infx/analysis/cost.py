"""Dollars a million tokens, from stated constants, and how these are told."""

from __future__ import annotations

from infx.domain.hardware import Price, Provisioned

__all__ = ["provisioned_told", "told", "usd_per_m_tokens"]

_HOUR_S = 3600
_MILLION = 1e6


def usd_per_m_tokens(tput_tok_s_gpu: float, usd_gpu_hour: float) -> float:
    """Return dollars a million tokens at ``tput_tok_s_gpu`` tokens a second and accelerator.

    Whatever tokens the throughput counts: total, output or input. Raises ValueError unless it is
    above 0.
    """
    if not tput_tok_s_gpu > 0:
        raise ValueError(f"a throughput of {tput_tok_s_gpu} tokens/s; expected more than 0")
    return usd_gpu_hour / (tput_tok_s_gpu * _HOUR_S / _MILLION)


def told(price: Price) -> str:
    """Return the constant as it stands beside figures: ``1.48 $/GPU/h (…, as of 2026-04)``."""
    usd = f"{price.usd_gpu_hour:.2f}"
    usd = usd if float(usd) == price.usd_gpu_hour else f"{price.usd_gpu_hour:g}"
    tier = f"{price.tier}: " if price.tier else ""
    return f"{usd} $/GPU/h ({tier}{price.source}, as of {price.as_of})"


def provisioned_told(power: Provisioned) -> str:
    """Return the constant as it stands beside figures."""
    return (
        f"{power.watts_gpu:g} W/GPU provisioned, not measured ({power.source}, as of {power.as_of})"
    )
