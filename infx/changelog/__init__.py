"""The changelog: its entries read, checked, merged, drafted."""

__all__ = ["FILE"]

FILE = "perf-changelog.yaml"
"""Its name, in a project's folder."""
