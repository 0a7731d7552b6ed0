"""Two labs never get the same ports, nor two commands the same lab."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from infx.domain.errors import InfraError
from infx.launch.lab import claims
from infx.launch.lab.claims import folder_claim, port_claim, usual_port

PORT = usual_port(Path("/nowhere") / str(os.getpid()))


def test_labs_begin_at_different_ports():
    usual = {usual_port(Path("/tmp") / str(number)) for number in range(2000)}
    assert len(usual) == claims.BLOCKS
    assert min(usual) == claims.FIRST_PORT
    assert max(usual) + claims.BLOCK <= 32_768, "clients get those above"


def test_two_claims_do_not_meet():
    with port_claim(6, PORT) as first, port_claim(6, PORT) as second:
        assert abs(first - second) >= claims.BLOCK


def test_a_claim_ends():
    with port_claim(6, PORT) as first:
        pass
    with port_claim(6, first) as again:
        assert again == first


def test_a_busy_port_is_avoided():
    with port_claim(6, PORT) as first:
        pass
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", first + 5))
        busy.listen()
        with port_claim(6, first) as other:
            assert other != first


def test_a_port_that_is_being_given_back_is_waited_for():
    with port_claim(6, PORT) as first:
        pass
    busy = socket.socket()
    busy.bind(("127.0.0.1", first + 5))
    busy.listen()
    ending = threading.Timer(0.3, busy.close)
    ending.start()
    with port_claim(6, first, patience_s=10.0) as again:
        assert again == first
    ending.join()


def test_without_a_free_block_it_says_what_to_do(monkeypatch):
    monkeypatch.setattr(claims, "BLOCKS", 0)
    monkeypatch.setattr(claims, "_is_free", lambda port: False)
    with pytest.raises(InfraError, match="cluster down"), port_claim(6, PORT):
        pass


def test_a_folder_is_held_by_one(monkeypatch, tmp_path):
    monkeypatch.setattr(claims, "PATIENCE_S", 0.1)
    with (
        folder_claim(tmp_path),
        pytest.raises(InfraError, match="another infx"),
        folder_claim(tmp_path),
    ):
        pass


def test_who_comes_second_waits(tmp_path):
    order = []

    def second() -> None:
        with folder_claim(tmp_path):
            order.append("second")

    with folder_claim(tmp_path):
        other = threading.Thread(target=second)
        other.start()
        other.join(0.1)
        order.append("first")
    other.join(10)
    assert order == ["first", "second"]
