"""The job program with the broken servers as its engine: ``broken_job.py job.json``.

The arm's recipe option ``fault`` chooses the fault; everything else is the real job.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from infx.domain.acceptance import Acceptance, Law
from infx.domain.point import Arm
from infx.domain.record import EngineCounters
from infx.frameworks.base import Framework, Launch, Option, Paths, Refusal
from infx.job import client, server
from infx.job.__main__ import main

SERVER = Path(__file__).parent / "servers" / "broken.py"
TOKENIZER = Path(__file__).parent / "tokenizer"

DEFAULT_S = server.STOP_S, client.STOP_S
PATIENCE_S = {"ignores-term": (1.0, 10.0), "hangs-when-measured": (10.0, 1.0)}
"""For the faults that use it up: how long a server and a client may take to stop."""


class Broken:
    name = "broken"
    options: Mapping[str, Option] = {}
    methods: tuple[str, ...] = ("none",)
    laws: tuple[Law, ...] = ()
    paths = Paths()
    pages: tuple[str, ...] = ("/server_info",)
    gauges: Mapping[str, str] = {}

    def refusals(self, arm: Arm) -> Sequence[Refusal]:
        return [Refusal("unsupported-tp", "tp 2: one rank only")] if arm.axes.tp > 1 else []

    def launch(self, arm: Arm, host: str, port: int, folder: Path, nonce: str = "") -> Launch:
        server.STOP_S, client.STOP_S = PATIENCE_S.get(str(arm.options["fault"]), DEFAULT_S)
        words = ("--port", str(port), "--model", arm.model.name, "--nonce", nonce)
        return Launch(argv=(sys.executable, str(SERVER), str(arm.options["fault"]), *words))

    def tokenizer(self, arm: Arm, folder: Path) -> str:
        from infx import frameworks

        return frameworks.get("infx").tokenizer(arm, folder)

    def resolved(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}

    def acceptance(self, answers: Mapping[str, Any]) -> Acceptance | None:
        return None

    def nonce(self, answers: Mapping[str, Any]) -> str | None:
        return str(answers["/server_info"]["nonce"])

    def counters(self, before: str, after: str) -> EngineCounters:
        return EngineCounters()


def find(_name: str) -> Framework:
    return Broken()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], find=find))
