"""What sbatch answered: an id, or why not, and whether the job may exist all the same.

The texts are Slurm's errno table (22.05 to 25.11); those that a real 22.05 was made to say are in
the tests. A refusal for its configuration leaves a FAILED job of that name in the queue and in
accounting (BadConstraints): a look-up by name finds it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from infx.launch.slurm.reasons import pending

__all__ = ["Refusal", "parse_submit", "submit_refusal"]

Kind = Literal["limit", "config", "down", "ambiguous", "other"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why sbatch gave no id.

    ``limit``: not accepted, other jobs must end first; ``config``: not accepted, and never will
    be as it is; ``down``: not accepted, try later; ``ambiguous``: it may have been accepted, look
    for its name before another try; ``other``: a text that infx does not know, look too.
    """

    kind: Kind
    code: str
    sentence: str


def parse_submit(text: str) -> str | None:
    """Return the job id that ``sbatch --parsable`` printed (``123`` or ``123;cluster``)."""
    for line in reversed(text.splitlines()):
        if match := re.fullmatch(r"([0-9]+)(?:;\S+)?", line.strip()):
            return match[1]
    return None


def submit_refusal(stderr: str, rc: int) -> Refusal:
    """Return what the error output and exit code of an sbatch without an id mean.

    No output at all is ``ambiguous``: nobody knows how far it came.
    """
    said = _said(stderr)
    if not said:
        return _refusal("ambiguous", f"sbatch ended with exit code {rc} and said nothing")
    if _POLICY in stderr:
        return _policy(stderr, said)
    for kind, texts in _TEXTS:
        if any(text in stderr for text in texts):
            return _refusal(kind, said)
    return _refusal("other", said)


_CODES: dict[Kind, str] = {
    "limit": "submit-limit",
    "config": "submit-refused",
    "down": "scheduler-down",
    "ambiguous": "submit-unclear",
    "other": "launch-failed",
}
_POLICY = "Job violates accounting/QOS policy"
_HINTS = {
    "Pathname of a file, directory or other parameter too long": (
        "Slurm says this of a script over its max_script_size too"
    ),
    "Invalid job array specification": "or more tasks than MaxArraySize allows",
}
# First match. What may have reached the controller stands first: it decides over all else.
_TEXTS: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    (
        "ambiguous",
        (
            "Socket timed out on send/recv operation",
            "Zero Bytes were transmitted or received",
            "Unexpected message received",
            "Message receive failure",
            "Message send failure",
            "Header lengths are longer than data received",
            "Insane message length",
            "Unable to contact slurm controller (send failure)",
            "Unable to contact slurm controller (receive failure)",
            "Unable to contact slurm controller (shutdown failure)",
            "Communication shutdown failure",
            "Connection timed out reading",
            "Connection timed out writing",
            "Connection reset by peer",
            "Transport endpoint is not connected",
        ),
    ),
    (
        "down",
        (
            "Unable to contact slurm controller (connect failure)",
            "Communication connection failure",
            "Connection timed out establishing",
            "Connection refused",
            "Slurm backup controller in standby mode",
            "Controller is in standby mode",
            "System submissions disabled",
            "Munge encode failed",
            "Required partition not available (inactive or drain)",
            "Partition in DOWN state",
        ),
    ),
    (
        "limit",
        (
            "MaxJobCount limit reached",
            "Unable to create job record, try again",
            "Rate limit exceeded",
            "Resource temporarily unavailable",
        ),
    ),
    (
        "config",
        (
            "nvalid partition",
            "No partition specified or system default partition",
            "User's group not permitted to use this partition",
            "Access/permission denied",
            "Invalid account",
            "Invalid qos specification",
            "Invalid QOS specification",
            "Requested account has breached requested QOS usage threshold",
            "Invalid generic resource (gres) specification",
            "Invalid GRES specification",
            "Invalid Trackable RESource (TRES) specification",
            "Requested node configuration is not available",
            "Requested topology configuration is not available",
            "Requested partition configuration not available",
            "Requested time limit is invalid",
            "Invalid --",
            "Invalid job array specification",
            "Invalid feature specification",
            "Invalid node name specified",
            "Invalid license specification",
            "Invalid wckey specification",
            "Requested reservation",
            "Access denied to requested reservation",
            "Requested nodes not in this partition",
            "Node count specification invalid",
            "invalid number of nodes",
            "CPU count specification invalid",
            "More processors requested than permitted",
            "Memory required by task is not available",
            "Pathname of a file, directory or other parameter too long",
            "Batch script",
            "This does not look like a batch script",
            "Unable to open file",
            "unrecognized option",
            "mutually exclusive",
            "can't be reached now, or it is an invalid entry for --cluster",
        ),
    ),
)


def _policy(stderr: str, said: str) -> Refusal:
    """Slurm names the limit on a line of its own. Only a Submit limit passes by waiting.

    Any other is told at submission under DenyOnLimit alone, of a job that is over it by itself.
    """
    words = [
        re.fullmatch(r"sbatch: error: ((?:Assoc|QOS|Max)\w+)", line) for line in _lines(stderr)
    ]
    word = next((match[1] for match in words if match), "")
    if not word or "Submit" in word:
        return _refusal("limit", said)
    sentence = f"{said}: {pending(word).sentence}"
    return Refusal(kind="config", code="submit-refused", sentence=sentence)


def _refusal(kind: Kind, said: str) -> Refusal:
    hints = [hint for text, hint in _HINTS.items() if text in said]
    return Refusal(kind, _CODES[kind], "; ".join([said, *hints]))


def _said(stderr: str) -> str:
    """The lines of an error without sbatch's prefix, warnings left out, in one."""
    kept = [
        re.sub(r"^sbatch: (error: |fatal: )?(Batch job submission failed: )?", "", line)
        for line in _lines(stderr)
        if not line.lower().startswith("sbatch: warning:")
    ]
    return " / ".join(kept)


def _lines(stderr: str) -> list[str]:
    """The lines of an error, also of one whose lines a shell joined with semicolons."""
    parts = re.split(r"[\r\n]+|;\s*(?=sbatch:)", stderr)
    return [line for part in parts if (line := part.strip().rstrip(";"))]
