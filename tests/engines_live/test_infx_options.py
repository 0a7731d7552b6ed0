"""infx's own engine, started with every option that a recipe may set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from infx import frameworks
from infx.domain.axes import snake
from infx.job.agreement import option_differences
from infx.job.ports import free_port
from infx.job.readiness import wait_ready
from infx.job.server import Server
from tests.frameworks.arms import arm

pytestmark = pytest.mark.engines

INFX = frameworks.get("infx")

VALUES: dict[str, Any] = {
    "shape": "mini",
    "dtype": "float32",
    "router-dtype": "bf16",
    "expert-dtype": "mxfp4",
    "projection-dtype": "fp8",
    "layers": "reference",
    "threads": 1,
    "num-blocks": 96,
    "queue-limit": 8,
}


def test_values_are_of_all_options() -> None:
    assert set(VALUES) == set(INFX.options)


def test_every_option_of_the_engine(tmp_path: Path) -> None:
    asked = arm("infx", "random:0", options=VALUES, axes={"max_num_seqs": 2, "max_model_len": 256})
    port = free_port("127.0.0.1", "options")
    server = Server(INFX, asked, tmp_path, host="127.0.0.1", port=port)
    server.start(dict(os.environ))
    try:
        wait_ready(server, 240)
        told = INFX.resolved(server.answers())
    finally:
        server.stop()
    assert option_differences(asked, told) == ()
    missing = {name for name in VALUES if not {name, snake(name)} & set(told)}
    assert not missing, f"not told by the running engine: {missing}"
