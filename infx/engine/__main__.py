"""``python -m infx.engine``: serve a model until SIGTERM.

Exit codes: 0 drained, 2 refused (``CODE sentence`` on stderr), 3 port busy, 4 a step failed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from infx.domain.errors import InfxError
from infx.engine.arguments import parse

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the server; return its exit code."""
    try:
        config, address = parse(argv)
        _tame_threads()
        import asyncio

        from infx.engine.server.app import serve

        return asyncio.run(serve(config, address))
    except InfxError as error:
        print(f"{error.code} {error}", file=sys.stderr)
        return error.exit_code


def _tame_threads() -> None:
    """Let torch's threads sleep at barriers, and hand the interpreter over often.

    Spinning threads on a machine that also runs the client made steps of 30 ms take 200 to 2000 ms
    (2 cores, load 5). Has no effect once torch is imported.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    sys.setswitchinterval(0.001)


if __name__ == "__main__":
    sys.exit(main())
