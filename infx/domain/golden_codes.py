"""Why an acceptance length cannot be measured, or does not hold.

name -> (meaning, action), merged into `infx.domain.codes`.
"""

from __future__ import annotations

__all__ = ["GOLDEN_CODES"]

GOLDEN_CODES: dict[str, tuple[str, str]] = {
    "thinking-unsupported": (
        "the model's chat template has no such thinking mode",
        "measure the modes that it has: --thinking on, or off",
    ),
    "no-speculation": (
        "the server makes no drafts, so there is no acceptance to measure",
        "start it with a speculation method and K >= 1, or name one with --method",
    ),
    "too-many-drafts": ("K is over what the method serves", "ask a smaller range with --k"),
    "k-differs": ("the running server's K or method is not the asked one", "ask for its own"),
    "counters-missing": (
        "the engine does not tell its accepted drafts and verify steps",
        "use an engine whose counters infx reads (infx)",
    ),
    "server-busy": ("requests of others run on the server", "measure on one nobody else uses"),
    "request-failed": ("a request of the measurement failed", "read the server's words"),
    "golden-settings": (
        "the golden file was measured with other settings, or by something else",
        "name another file with -o, or measure it all anew with --fresh",
    ),
    "golden-differs": ("an acceptance length does not hold any more", "collect it anew"),
}
