"""What infx says of the places where stores meet, and of runs that travel between them.

name -> (meaning, action), merged into `infx.domain.codes`: of usage, and of the machine.
"""

from __future__ import annotations

__all__ = ["PARCEL_CODES", "PLACE_CODES"]

PLACE_CODES: dict[str, tuple[str, str]] = {
    "not-a-place": (
        "what is named holds no parcels of runs, or cannot hold them",
        "name a folder, a .tar.gz file or a branch that is infx's alone",
    ),
    "bad-parcel": ("a file is not a run as infx store push writes it", "push the run again"),
    "run-diverged": (
        "a run went on at two places, and each knows what the other does not",
        "keep both: push to another place, or pull into another results folder",
    ),
    "not-publishable": (
        "a run that the live curves may not show",
        "publish one that was measured whole",
    ),
}

PARCEL_CODES: dict[str, tuple[str, str]] = {
    "parcel-broken": (
        "a run's parcel is cut or damaged",
        "copy it again, or push the run again",
    ),
    "parcel-too-large": (
        "a run's parcel is larger than a host of git takes",
        "push it with --light, or to a folder",
    ),
}
