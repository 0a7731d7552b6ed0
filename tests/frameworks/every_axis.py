"""Does an engine serve or refuse every axis? A value of each away from its default must change the
command, or be refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from infx import frameworks
from infx.domain.axes import AXES, is_load
from infx.domain.point import Arm

__all__ = ["check_every_axis"]

FOLDER = Path("/FOLDER")

AWAY: Mapping[str, Any] = {
    "tp": 4,
    "pp": 2,
    "ep": 4,
    "dp_attention": True,
    "mono": "on",
    "kv_cache_dtype": "fp8",
    "index_cache_dtype": "fp8",
    "k": 3,
    "block_size": 128,
    "max_num_seqs": 8,
    "max_num_batched_tokens": 4096,
    "max_model_len": 65536,
    "capture_sizes": (4, 8),
    "prefix_caching": False,
    "chunked_prefill": False,
    "kv_offload": "dram",
    "kv_offload_backend": "native",
    "kv_offload_gb": 64,
}

WITH: Mapping[str, Mapping[str, Any]] = {
    "ep": {"tp": 4},
    "dp_attention": {"tp": 4},
    "kv_offload": {"kv_offload_gb": 64},
    "kv_offload_backend": {"kv_offload": "dram", "kv_offload_gb": 64},
    "kv_offload_gb": {"kv_offload": "dram"},
}
"""What an axis needs beside it to mean something."""


def check_every_axis(make: Callable[..., Arm], served: set[str], refused: set[str]) -> None:
    """``make`` makes an arm from axes and more; the axes are in one of the two sets, as claimed."""
    assert set(AWAY) == {name for name in AXES if not is_load(name)}
    assert served | refused == set(AWAY)
    assert not served & refused
    for name, value in AWAY.items():
        beside = dict(WITH.get(name, {}))
        drafts = {"method": "mtp"} if name == "k" else {}
        asked = make(axes={**beside, name: value}, **drafts)
        told = frameworks.get(asked.framework).refusals(asked)
        if name in refused:
            assert [found.axis for found in told] == [name], (name, told)
        else:
            assert not told, (name, told)
            assert _rendered(asked) != _rendered(make(axes=beside)), name


def _rendered(arm: Arm) -> tuple[Any, ...]:
    launch = frameworks.get(arm.framework).launch(arm, "h", 1, FOLDER)
    return launch.argv, launch.env, launch.files
