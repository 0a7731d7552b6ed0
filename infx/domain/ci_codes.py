"""What infx says of pull requests: their labels, what they select, what a publish would take away.

name -> (meaning, action), merged into `infx.domain.codes`.
"""

from __future__ import annotations

__all__ = ["CI_CODES"]

CI_CODES: dict[str, tuple[str, str]] = {
    "bad-event": (
        "an event that is not what GitHub sends, or not of a pull request",
        "hand over the file that GITHUB_EVENT_PATH names",
    ),
    "bad-label-rules": ("rules of labels that cannot be", "correct the file by its JSON Schema"),
    "two-primaries": ("several labels that each ask for a sweep", "keep one of them"),
    "modifier-alone": (
        "a label that changes a sweep, and none that asks for one",
        "add a primary label, or remove it",
    ),
    "label-unknown": (
        "a label that looks like one that asks for a sweep, and is none",
        "rename it, or remove it",
    ),
    "label-idle": ("a label that changes nothing of what is selected", "nothing, or remove it"),
    "field-unused": (
        "a field of an added changelog entry that plans have no use for",
        "nothing, or leave it out",
    ),
    "change-unannounced": (
        "points of an entry changed and no added changelog entry names it: they are not measured",
        "add an entry to perf-changelog.yaml: infx changelog add",
    ),
    "base-unreadable": (
        "the configuration of the base cannot be planned, so every point counts as new",
        "read the error; nothing when this pull request mends it",
    ),
    "reuse-refused": (
        "a run that cannot stand for what is planned",
        "name another run, or measure: remove the comment",
    ),
    "points-dropped": (
        "a publish would take points from the live curve",
        "measure or reuse them, or say in the changelog entry that they go",
    ),
}
