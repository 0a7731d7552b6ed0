"""The peaks of the gauges while a point is measured."""

from __future__ import annotations

from pathlib import Path

from infx import frameworks
from infx.job.counters import Scraper
from infx.job.server import Server
from tests.frameworks.arms import arm


def test_the_fullest_replica_counts(tmp_path: Path) -> None:
    """Requests of all replicas add up, shares of their caches do not."""
    asked = arm("vllm", "/models/x", axes={"tp": 2, "dp_attention": True})
    server = Server(frameworks.get("vllm"), asked, tmp_path, host="127.0.0.1", port=1)
    scraper = Scraper(server, tmp_path)
    for used, running in ((0.2, 3), (0.7, 1)):
        scraper._note(
            f'vllm:kv_cache_usage_perc{{engine="0"}} {used}\n'
            'vllm:kv_cache_usage_perc{engine="1"} 0.6\n'
            f'vllm:num_requests_running{{engine="0"}} {running}\n'
            'vllm:num_requests_running{engine="1"} 2\n'
        )
    counters = scraper.end()
    assert counters.kv_cache_usage_peak == 0.7
    assert counters.peak_running == 5
