"""A run's folder: the state that a run continues from, and its progress in lines.

target.pt, eagle3.pt, dspark.pt    newest state, written every minute and at the end
progress.jsonl                     one JSON object a report
mini/                              the checkpoint
"""

from __future__ import annotations

import errno
import io
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from infx.domain.errors import InfraError, UsageError

__all__ = ["SAVE_EVERY_S", "Folder", "no_space_refused", "write_atomically"]

SAVE_EVERY_S = 60.0


@dataclass(slots=True)
class Folder:
    """Where a run leaves its files. ``resume``: continue from a state that is there.

    Raises UsageError when the folder cannot be made.
    """

    path: Path
    resume: bool = False

    def __post_init__(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            sentence = f"--out {self.path}: not a folder that can be made: {error.strerror}"
            raise UsageError("bad-option", sentence) from error

    def save(self, name: str, recipe: Mapping[str, Any], step: int, tensors: Any) -> None:
        """Write the state of ``step`` steps done by ``recipe``, in place of the one before.

        Raises InfraError ``disk-full`` when it does not fit.
        """
        buffer = io.BytesIO()
        torch.save({"recipe": dict(recipe), "step": step, "tensors": tensors}, buffer)
        write_atomically(self.path / f"{name}.pt", buffer.getvalue())

    def load(self, name: str, recipe: Mapping[str, Any]) -> tuple[int, Any]:
        """Return (steps done, tensors) to continue from; (0, None) to begin.

        Raises UsageError when there is a state and ``resume`` was not asked for, or another
        recipe's.
        """
        file = self.path / f"{name}.pt"
        if not file.is_file():
            if self.resume:
                self.tell(f"{name}: nothing is saved in {self.path} yet, so it begins at step 0")
            return 0, None
        if not self.resume:
            sentence = f"{file} holds a run: add --resume to continue it, or choose another --out"
            raise UsageError("bad-option", sentence)
        state = torch.load(file, map_location="cpu", weights_only=True)
        if state["recipe"] != dict(recipe):
            sentence = f"{file} is of a run with {state['recipe']}; asked for {dict(recipe)}"
            raise UsageError("bad-option", f"{sentence}: use the same options, or another --out")
        return state["step"], state["tensors"]

    def tell(self, sentence: str, **fields: Any) -> None:
        """Print a line, and append it with ``fields`` to progress.jsonl."""
        print(sentence, flush=True)
        line = json.dumps({"t": round(time.time(), 1), "sentence": sentence, **fields})
        with (self.path / "progress.jsonl").open("a", encoding="utf-8") as log:
            log.write(line + "\n")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all. Raises InfraError ``disk-full``."""
    partial = path.with_suffix(path.suffix + ".partial")
    with no_space_refused(path):
        try:
            with partial.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError:
            partial.unlink(missing_ok=True)
            raise


@contextmanager
def no_space_refused(path: Path) -> Iterator[None]:
    """Turn an error for want of space under ``path`` into InfraError ``disk-full``."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        hint = "free space, then go on with --resume"
        raise InfraError("disk-full", f"cannot write {path}: no space left", hint=hint) from error
