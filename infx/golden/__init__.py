"""Acceptance-length curves as data."""

from infx.golden.lookup import acceptance

__all__ = ["acceptance"]
