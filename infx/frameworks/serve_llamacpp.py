"""A llama.cpp OpenAI server in this process: ``python -m infx.frameworks.serve_llamacpp --help``.

The server is llama.cpp's own (the `xllamacpp` wheel); this program only turns flags into its
parameters, says what it does, and ends within a moment of SIGTERM.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["main"]

QUIET_THREADS = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads that wait sleep instead of spin. With the client on the same cores spinning is ruinous: 2
threads on 2 busy cores took 270 to 690 ms a token, 43 ms with this; a recipe's env may differ."""


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT. Return 0, or 1 when the model cannot be loaded."""
    options = _parse(argv)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    for name, value in QUIET_THREADS.items():
        os.environ.setdefault(name, value)
    import xllamacpp

    print(f"serve_llamacpp: xllamacpp {xllamacpp.__version__}, {options.model}", flush=True)
    try:
        server = xllamacpp.Server(_parameters(xllamacpp, options))
    except RuntimeError as error:
        print(f"serve_llamacpp: error: cannot serve {options.model}: {error}", file=sys.stderr)
        return 1
    print(f"serve_llamacpp: listening on {server.listening_address}", flush=True)
    while True:
        signal.pause()


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="serve_llamacpp", description=__doc__)
    parser.add_argument("--model", required=True, help="a GGUF file")
    parser.add_argument("--alias", required=True, help="model id that /v1/models answers")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--parallel", type=int, default=1, help="slots: requests a step may hold")
    parser.add_argument(
        "--ctx-size", type=int, default=4096, help="tokens of context, all slots together"
    )
    parser.add_argument("--cache-prompt", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    return parser.parse_args(argv)


def _parameters(xllamacpp: Any, options: argparse.Namespace) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = options.model
    parameters.model_alias = {options.alias}
    parameters.hostnames, parameters.port = [options.host], options.port
    parameters.n_parallel = options.parallel
    parameters.n_ctx = options.ctx_size
    parameters.cpuparams.n_threads = options.threads
    parameters.cpuparams_batch.n_threads = options.threads
    parameters.cache_prompt = options.cache_prompt
    parameters.endpoint_metrics = True
    parameters.ui = False
    return parameters


def _leave(_number: int, _frame: object) -> None:
    # llama.cpp's threads do not end with the interpreter: leave without waiting for them.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
