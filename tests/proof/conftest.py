"""Fixtures of this folder's tests."""

from tests.launch.lab_fixture import lab

__all__ = ["lab"]
