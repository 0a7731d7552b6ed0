"""How fast the requests of one export become figures, in MB/s of profile_export.jsonl.

    python -m benchmarks.parsing [--save] [--rounds 7] [--requests 20000]

`records` is the typed reading into columns, `figures` that and every figure of the point, `judge`
that and every rule, as `infx judge` does for a folder; `json` is what the standard library needs to
decode the lines alone. The arms take turns, round after round, since machines are shared and noisy:
`counting_s` is the time of a counting loop, 0.4 s on a quiet core of 2024, and `mb_cpu_s` counts
the seconds that this process had a core.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.exports import write_export
from benchmarks.plan import counting_s, seconds
from benchmarks.saving import tell
from infx.analysis.asked import Asked
from infx.analysis.export import read_export
from infx.analysis.measurements import measure
from infx.analysis.records import read_records
from infx.analysis.validity import judge_folder

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks/results/parsing.json"
AIM_MB_S = 150.0
CONC = 16


def arms(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return what is timed, by name."""
    records = folder / "profile_export.jsonl"
    return {
        "records": lambda: read_records(records, []),
        "figures": lambda: measure(read_export(folder), Asked(conc=CONC), 1),
        "judge": lambda: judge_folder(folder),
        "json": lambda: [json.loads(line) for line in records.read_bytes().splitlines()],
    }


def compare(rounds: int, requests: int) -> dict[str, Any]:
    """Return the MB/s of each arm, round by round, over an export of so many requests."""
    with tempfile.TemporaryDirectory() as at:
        folder = write_export(Path(at) / "export", CONC, requests)
        assert str(judge_folder(folder).status) == "ok"
        size_mb = (folder / "profile_export.jsonl").stat().st_size / 1e6
        rates: dict[str, list[float]] = {name: [] for name in arms(folder)}
        cpu: dict[str, list[float]] = {name: [] for name in arms(folder)}
        for _ in range(rounds):
            for name, work in arms(folder).items():
                started_s = time.process_time()
                rates[name].append(size_mb / seconds(work))
                cpu[name].append(size_mb / (time.process_time() - started_s))
    return {
        "command": f"python -m benchmarks.parsing --rounds {rounds} --requests {requests}",
        "counting_s": round(counting_s(), 2),
        "requests": requests,
        "size_mb": round(size_mb, 1),
        "aim_mb_s": AIM_MB_S,
        "median_mb_s": {name: round(statistics.median(one), 1) for name, one in rates.items()},
        "best_mb_s": {name: round(max(one), 1) for name, one in rates.items()},
        "median_mb_cpu_s": {name: round(statistics.median(one), 1) for name, one in cpu.items()},
        "mb_s": {name: [round(rate, 1) for rate in one] for name, one in rates.items()},
    }


def main() -> None:
    """Measure, print, and save when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--save", action="store_true", help=f"write {RESULT.name}")
    options = parser.parse_args()
    results = compare(options.rounds, options.requests)
    tell(results, RESULT, save=options.save)


if __name__ == "__main__":
    main()
