from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.domain.errors import EngineError
from infx.job.ports import FIRST, LAST, free_port, ports

HERE = "127.0.0.1"


@given(st.text(max_size=40))
def test_a_name_has_its_ports_below_the_kernels_own(name: str) -> None:
    found = list(ports(name))
    assert found == list(ports(name))
    assert len(found) == 64
    assert all(FIRST <= port <= LAST < 32768 for port in found)


def test_two_attempts_look_elsewhere() -> None:
    first = [next(ports(f"infx-run-{number:08x}-a1")) for number in range(1000)]
    assert len(set(first)) > 900  # 961 are expected of 1000 draws from 12768
    assert len(set(ports("infx-run-0-a1"))) > 60


def test_a_taken_port_is_passed_over() -> None:
    name = "infx-test-taken-a1"
    first, second = list(ports(name))[:2]
    assert free_port(HERE, name) == first
    with socket.create_server((HERE, first)):
        assert free_port(HERE, name) == second
    with socket.create_server(("0.0.0.0", first), reuse_port=True):
        assert free_port(HERE, name) == second


def test_a_wish_is_that_port_or_none() -> None:
    with socket.create_server((HERE, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EngineError, match=f"port {port} on {HERE} cannot be taken: Address"):
            free_port(HERE, "infx-test", port)
    assert free_port(HERE, "infx-test", port) == port


def test_all_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infx.job.ports.TRIES", 2)
    held = [socket.create_server((HERE, port)) for port in ports("infx-test-full-a1")]
    try:
        with pytest.raises(EngineError, match="2 ports from 20000 to 32767 on") as caught:
            free_port(HERE, "infx-test-full-a1")
        assert caught.value.code == "port-busy"
    finally:
        for one in held:
            one.close()
