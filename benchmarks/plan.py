"""Time `infx plan` as a whole process, and the expansion of 100,000 candidates inside one.

    python -m benchmarks.plan [--save]

Both stand beside the time of a counting loop of the same run, since machines are shared and noisy.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.saving import tell

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks/results/plan.json"

ENTRY = """
bench-{number}:
  model-prefix: minimaxm3
  precision: fp32
  framework: infx
  image: pypi:infx
  recipe: minimaxm3-mini-cpu-infx
  cluster: local
  scenarios:
    - workload: {{isl: 64, osl: 32, requests: 4*conc}}
      axes:
        conc: {concs}
        max-num-seqs: {seqs}
        max-num-batched-tokens: {tokens}
        max-model-len: {lengths}
      exclude:
        - {{when: max_num_seqs < conc, reason: the limit would bind}}
        - {{when: conc > {most}, reason: not asked}}
"""


def matrix(concs: range, seqs: list[int], tokens: list[int], lengths: list[int], most: int) -> str:
    return ENTRY.format(
        number=1, concs=list(concs), seqs=seqs, tokens=tokens, lengths=lengths, most=most
    )


CASES = {
    "2,000 points": matrix(range(1, 26), [64, 128], [*range(256, 256 * 9, 256)],
                           [512, 1024, 2048, 4096, 8192], 25),
    "100,000 candidates": matrix(range(1, 101), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
                                 [*range(256, 256 * 11, 256)], [*range(512, 512 * 11, 512)], 8),
}  # fmt: skip


def seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def children_cpu_s() -> float:
    """Return the CPU seconds of the processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def counting_s() -> float:
    """Time of counting to ten million: about 0.4 s on a quiet core of 2024."""
    return seconds(lambda: sum(1 for _ in range(10_000_000)))


def plan_process(path: Path) -> dict[str, Any]:
    argv = [sys.executable, "-m", "infx", "plan", str(path), "--json"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout)["data"])


def measure(repeats: int) -> dict[str, Any]:
    """Return for each case its counts and the least and median seconds of the whole process."""
    results: dict[str, Any] = {"counting_s": counting_s()}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in CASES.items():
            path = Path(folder) / "matrix.yaml"
            path.write_text(text)
            counts = plan_process(path)["counts"]
            times = [seconds(lambda p=path: plan_process(p)) for _ in range(repeats)]  # type: ignore[misc]
            results[name] = {
                "counts": counts, "min_s": min(times), "median_s": statistics.median(times),
            }  # fmt: skip
    return results


def main() -> None:
    """Measure, print, and save when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--save", action="store_true", help=f"write {RESULT.name}")
    options = parser.parse_args()
    results = measure(options.repeats)
    tell(results, RESULT, save=options.save)


if __name__ == "__main__":
    main()
