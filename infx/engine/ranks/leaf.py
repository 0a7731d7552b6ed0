"""What ranks 1 to n-1 do: take a batch from rank 0, run their slice of the layers, and again."""

from __future__ import annotations

import pickle
import socket

import torch

from infx.engine.ranks.exchange import add_from_leaf, join
from infx.engine.ranks.processes import Setup
from infx.engine.ranks.slice import load_slice
from infx.engine.ranks.wire import receive, send, unpack

__all__ = ["serve"]


@torch.inference_mode()
def serve(link: socket.socket) -> None:
    """Serve batches until rank 0 closes ``link``. Raises RuntimeError: an exchange failed."""
    first = receive(link)
    if first is None:
        return
    setup: Setup = pickle.loads(first)
    config = setup.config
    model, cache = load_slice(config, setup.rank, add_from_leaf)
    send(link, b"loaded")
    if receive(link) is None:  # until all have loaded: joining has a limit, loading none
        return
    join(setup.rank, config.tp, config.rank_limit_s, setup.port)
    while (data := receive(link)) is not None:
        model.forward(unpack(data), cache)
