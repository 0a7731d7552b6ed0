"""What rank 0 writes to the other ranks: frames of bytes over a socket, batches as int64."""

from __future__ import annotations

import socket
import struct

import torch
from torch import Tensor

from infx.engine.batch import Batch, Group

__all__ = ["pack", "receive", "send", "unpack"]

_LENGTH = struct.Struct("<q")


def send(link: socket.socket, data: bytes) -> None:
    """Write one frame. Raises OSError: the other end is gone, or takes nothing (TimeoutError)."""
    link.sendall(_LENGTH.pack(len(data)) + data)


def receive(link: socket.socket) -> bytearray | None:
    """Return the next frame; None when the other end is gone. Raises OSError (TimeoutError)."""
    head = _exactly(link, _LENGTH.size)
    return None if head is None else _exactly(link, _LENGTH.unpack(head)[0])


def _exactly(link: socket.socket, size: int) -> bytearray | None:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        try:
            got = link.recv_into(view)
        except ConnectionResetError:
            return None
        if not got:
            return None
        view = view[got:]
    return data


def pack(batch: Batch) -> bytes:
    """Return ``batch`` as bytes for `unpack`; ``previous`` is the draft's and stays behind."""
    groups = [(g.first, g.spans, g.rows, g.table.shape[1]) for g in batch.groups]
    flat = [number for group in groups for number in group]
    head = [batch.rows, len(batch.live), len(groups), len(batch.firsts), *flat, *batch.firsts]
    body = [batch.tokens, batch.positions, batch.batch_ids, batch.live, batch.slots]
    body += [group.table.flatten() for group in batch.groups]
    numbers = torch.cat([torch.tensor(head), *body]).to(torch.int64)
    return numbers.numpy().tobytes()


def unpack(data: bytearray) -> Batch:
    """Return the batch that `pack` wrote, without ``previous``."""
    numbers = _Reader(torch.frombuffer(data, dtype=torch.int64))
    rows, live, groups, firsts = numbers(4).tolist()
    sides = numbers(4 * groups).view(groups, 4).tolist()
    starts = tuple(numbers(firsts).tolist())
    tokens, positions, ids = numbers(rows), numbers(rows), numbers(rows)
    alive, slots = numbers(live), numbers(live)
    return Batch(
        tokens=tokens,
        positions=positions,
        batch_ids=ids.to(torch.int32),
        live=alive,
        slots=slots,
        previous=tokens[:0],
        groups=tuple(
            Group(first, spans, each, numbers(spans * pages).view(spans, pages))
            for first, spans, each, pages in sides
        ),
        firsts=starts,
    )


class _Reader:
    """Takes one piece after the other off a row of numbers."""

    def __init__(self, numbers: Tensor) -> None:
        self._numbers, self._at = numbers, 0

    def __call__(self, count: int) -> Tensor:
        self._at += count
        return self._numbers[self._at - count : self._at]
