"""The sum over ranks, by gloo on the loopback interface: a star around rank 0, in rank order."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import TCPStore  # type: ignore[attr-defined]

__all__ = ["add_at_root", "add_from_leaf", "join", "leave", "rendezvous"]

HOST = "127.0.0.1"


def rendezvous() -> TCPStore:
    """Return a store for `join` at a free port of the loopback interface (its ``port``)."""
    listener = socket.create_server((HOST, 0))
    port = listener.getsockname()[1]
    return TCPStore(
        HOST, port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach()
    )


def join(rank: int, ranks: int, limit_s: float, store: TCPStore | int) -> None:
    """Connect this process to the other ranks, through the store or the port of rank 0's.

    From then on an exchange that takes ``limit_s`` fails. Raises RuntimeError.
    """
    # gloo would take the interface of the machine's own name, if that has any.
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    limit = timedelta(seconds=limit_s)
    if isinstance(store, int):
        store = TCPStore(HOST, store, is_master=False, timeout=limit)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=limit)


def leave() -> None:
    """Close the connections of `join`, if there are any."""
    if dist.is_initialized():
        dist.destroy_process_group()


def add_at_root(ranks: int, lost: Callable[[int, RuntimeError], NoReturn]) -> Callable[..., Tensor]:
    """Return rank 0's sum: part -> ((part + that of rank 1) + that of rank 2) …

    ``lost(rank, error)`` is called when a rank takes no part in it.
    """

    @contextmanager
    def meeting(rank: int) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            lost(rank, error)

    def add(part: Tensor) -> Tensor:
        """Return the sum of all ranks' parts, like ``part``, after every rank has it."""
        total, sums = part.contiguous(), dict[int, Any]()
        for rank in range(1, ranks):
            other = torch.empty_like(total)
            with meeting(rank):
                dist.recv(other, rank)
            total = total + other
        for rank in range(1, ranks):
            with meeting(rank):
                sums[rank] = dist.isend(total, rank)
        for rank, sent in sums.items():
            with meeting(rank):
                sent.wait()
        return total

    return add


def add_from_leaf(part: Tensor) -> Tensor:
    """Return the same sum at another rank. Raises RuntimeError when rank 0 is gone."""
    dist.send(part.contiguous(), 0)
    total = torch.empty_like(part)
    dist.recv(total, 0)
    return total
