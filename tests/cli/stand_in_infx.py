"""infx with the stand-in job in place of the real one, and its word taken for valid.

It has no matplotlib, which costs seconds a report, unless STAND_IN_PNG is set.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import infx.analysis.validity
import infx.cli.detaching
import infx.report.png
from infx.launch.local import LocalExecutor
from tests.store.tiny_plans import judge

JOB = Path(__file__).parents[1] / "launch" / "stand_in_job.py"
LocalExecutor.__init__.__defaults__ = ((sys.executable, "-S", str(JOB)),)
LocalExecutor.tick_s = 0.02
infx.analysis.validity.judge = judge
infx.cli.detaching.PROGRAM = (sys.executable, "-m", "tests.cli.stand_in_infx")


def without_matplotlib(*_: object) -> None:
    raise ModuleNotFoundError(name="matplotlib")


if "STAND_IN_PNG" not in os.environ:
    infx.report.png.write_png = without_matplotlib

if __name__ == "__main__":
    from infx.cli.main import main

    main()
