"""The record of a wait that gave up (kernels/sync.cuh), and how a host hears of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infx.domain.errors import InfraError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["WAITS", "GiveUpRecord"]

# Waits by their name in kernels/sync.cuh, numbered from 1: what each is for.
WAITS = {
    **{
        f"AFTER_{stage.upper()}": f"the others behind stage {stage}"
        for stage in ("qkv", "scores", "attention", "o", "router", "up")
    },
    "FOR_SCORE": "a score that another block makes",
    "FOR_LOGITS": "a logit of the router that another block makes",
    "FOR_MIDS": "an expert's numbers that another block makes",
}


class GiveUpRecord:
    """Four words on the device: 1 once a wait gave up, which one, its block, the word it saw.

    ``watch`` asks for them without waiting, so `check` says what was true some steps ago; `settle`
    waits. After a wait gave up every later one does at once: nothing that follows is right.
    """

    def __init__(self, device: str) -> None:
        import torch

        self.words = torch.zeros(4, dtype=torch.int32, device=device)
        self._seen = torch.zeros(4, dtype=torch.int32, pin_memory=device != "cpu")

    def watch(self) -> None:
        """Copy the record to the host, on the current stream; it may be captured."""
        self._seen.copy_(self.words, non_blocking=True)

    def check(self) -> None:
        """Raise InfraError (``kernel-gave-up``) if the last record that arrived says so."""
        _raise_for(self._seen)

    def settle(self) -> None:
        """Do as `check` for all that was launched until now."""
        _raise_for(self.words.cpu())


def _raise_for(record: Tensor) -> None:
    gave_up, wait, block, word = record.tolist()
    if not gave_up:
        return
    raise InfraError(
        "kernel-gave-up",
        f"block {block} waited too long for {_awaited(wait)} of a mono layer (it saw the word"
        f" {word & 0xFFFFFFFF:#010x}): a block never came so far, so results since then are wrong;"
        " end other work on the GPU and start again, or set mono: off",
    )


def _awaited(wait: int) -> str:
    return dict(enumerate(WAITS.values(), 1)).get(wait, f"number {wait}")
