"""Time `infx report` of a run as a whole process, and where the time goes.

    python -m benchmarks.report [--save] [--repeats 7] [--points 500]

The run is made up (`tests.report.many_points`), the files are warm. `counting_s` is the time of a
counting loop, 0.4 s on a quiet core of 2024: machines are shared and noisy, so the processor's time
stands beside the clock's.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.plan import children_cpu_s, counting_s, seconds
from benchmarks.saving import tell
from infx.report.build import build_runs
from infx.report.data import data_of
from infx.report.html import html
from infx.report.markdown import markdown
from infx.report.model import RunData, RunFacts
from infx.store import FILE, Store, read_run
from tests.report.many_points import many_plan, many_points, many_records, write_run

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks/results/report.json"
AIM_S = 2.0
RUN = "20261129-1740-many"

CASES: dict[str, list[str]] = {
    "html": [RUN],
    "html, md": [RUN, "--md"],
    "html, md, png": [RUN, "--md", "--png"],
    "json": [RUN, "--json"],
}


def process_s(results: Path, arguments: list[str]) -> tuple[float, float]:
    """Return the seconds of one `infx report`: on the clock, and of the processor."""
    argv = [sys.executable, "-m", "infx", "report", *arguments, "-o", "report.html"]
    had = children_cpu_s()
    took = seconds(
        lambda: subprocess.run(
            [*argv, "--results", str(results)], cwd=results, capture_output=True, check=True
        )
    )
    return took, children_cpu_s() - had


def timed(results: Path, arguments: list[str], repeats: int) -> dict[str, float]:
    pairs = [process_s(results, arguments) for _ in range(repeats)]
    clock, processor = ([pair[n] for pair in pairs] for n in (0, 1))
    middle = statistics.median(clock)
    return {"min_s": min(clock), "median_s": middle, "min_processor_s": min(processor)}


def stages(results: Path, repeats: int) -> dict[str, float]:
    """Return the least seconds of each stage inside one process."""
    folder = results / "runs" / RUN
    with Store(results / FILE) as store:
        records = store.records(RUN)
        plan = read_run(folder)[1]
        data = RunData(facts=RunFacts(run_id=RUN), plan=plan, records=tuple(records))
        model = build_runs([data])
        work: dict[str, Callable[[], Any]] = {
            "records": lambda: store.records(RUN),
            "plan": lambda: read_run(folder),
            "model": lambda: build_runs([data]),
            "html": lambda: html(model),
            "markdown": lambda: markdown(model),
            "data": lambda: data_of(model),
        }
        return {name: min(seconds(part) for _ in range(repeats)) for name, part in work.items()}


def measure(points: int, repeats: int) -> dict[str, Any]:
    """Return the times of each case, of each stage, and the sizes of what is written."""
    with tempfile.TemporaryDirectory() as folder:
        results, some = Path(folder), many_points(points)
        write_run(results, some, many_records(some), many_plan(some), RUN)
        process_s(results, CASES["html, md, png"])
        found: dict[str, Any] = {
            "command": f"python -m benchmarks.report --repeats {repeats} --points {points}",
            "points": points,
            "aim_s": AIM_S,
            "counting_s": counting_s(),
            "process": {name: timed(results, words, repeats) for name, words in CASES.items()},
            "stages_s": stages(results, repeats),
            "bytes": {
                kind: (results / f"report.{kind}").stat().st_size for kind in ("html", "md", "png")
            },
        }
    return found


def main() -> None:
    """Measure, print, and save when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--save", action="store_true", help=f"write {RESULT.name}")
    options = parser.parse_args()
    results = measure(options.points, options.repeats)
    tell(results, RESULT, save=options.save)


if __name__ == "__main__":
    main()
