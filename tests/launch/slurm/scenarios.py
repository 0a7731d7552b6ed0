"""Scenarios that mostly wait, run side by side; each is a test of its own.

    FAULTS = named(a_node_dies, a_job_is_cancelled)

    @pytest.mark.parametrize("fault", FAULTS)
    def test_fault(fault, scenario):
        scenario(fault)

``scenario`` is a fixture of this folder. The first test that uses it starts those of the whole
session, in the order of the tests; each test waits for its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.launch.lab_fixture import Lab

__all__ = ["Scenario", "named", "scenario"]

Scenario = Callable[[Lab, Path], None]
"""Is given a lab that others use too, and an empty folder of its own."""

AT_ONCE = 6
"""The machine may have two cores."""


def named(*scenarios: Scenario) -> dict[str, Scenario]:
    """Return the scenarios by their names, in the order in which they start."""
    return {scenario.__name__: scenario for scenario in scenarios}


@pytest.fixture(scope="session")
def scenario(
    request: pytest.FixtureRequest, lab: Lab, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], None]]:
    """Wait for the scenario of a name; its assertions are the test's."""
    pool = ThreadPoolExecutor(AT_ONCE)
    started = {
        name: pool.submit(_timed, act, lab, tmp_path_factory.mktemp(name))
        for name, act in _asked(request.session).items()
    }

    def wait(name: str) -> None:
        print(f"{name}: {started[name].result():.0f} s")

    yield wait
    pool.shutdown(cancel_futures=True)


def _asked(session: pytest.Session) -> dict[str, Scenario]:
    """Return the scenarios of the tests that this session runs."""
    items = [item for item in session.items if isinstance(item, pytest.Function)]
    faults = [item for item in items if "scenario" in item.fixturenames]
    return {
        item.callspec.params["fault"]: item.module.FAULTS[item.callspec.params["fault"]]
        for item in faults
    }


def _timed(act: Scenario, lab: Lab, folder: Path) -> float:
    """Return the seconds that a scenario took."""
    started = time.monotonic()
    act(lab, folder)
    return time.monotonic() - started
