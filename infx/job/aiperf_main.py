"""aiperf, started faster: ``python -m infx.job.aiperf_main profile …``.

Each aiperf process that reads the tokenizer imports `transformers`, which imports torch when it
is there: 2.2 s of CPU a process, for nothing, since aiperf computes no tensor. Here torch is
hidden from it. aiperf spawns its services with `multiprocessing`, which imports this module again
in each of them, so they do not find torch either.
"""

from __future__ import annotations

import runpy
import sys
from typing import Any, cast

__all__: list[str] = []

# None in sys.modules is Python's own way to say "not installed".
cast("dict[str, Any]", sys.modules).setdefault("torch", None)

if __name__ == "__main__":
    sys.argv[0] = "aiperf"
    runpy.run_module("aiperf", run_name="__main__", alter_sys=False)
