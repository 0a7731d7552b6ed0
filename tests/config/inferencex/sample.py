"""A small master configuration of every kind of entry, and what reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infx.config.inferencex.evals import Evaluations
from infx.config.inferencex.load import Masters, plan_rows, read_masters
from infx.config.inferencex.select import Selection
from infx.config.project import Project
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding

FIXED = """\
dsv4-fp8-h200-vllm:
  image: vllm/vllm-openai:v1
  model: org/Model
  model-prefix: dsv4
  runner: h200
  precision: fp8
  framework: vllm
  multinode: false
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      search-space:
      - { tp: 8, conc-start: 4, conc-end: 48 }
      - { tp: 4, ep: 4, dp-attn: true, conc-list: [64, 16], spec-decoding: mtp }
"""

AGENTIC = """\
dsv4-fp8-h200-sglang-agentic:
  image: lmsysorg/sglang:v1
  model: org/Model
  model-prefix: dsv4
  runner: cluster:h200-x
  precision: fp8
  framework: sglang
  multinode: false
  scenarios:
    agentic-coding:
    - dram-utilization: 0.5
      search-space:
      - { tp: 8, kv-offloading: none, conc-list: [1, 20] }
      - { tp: 4, kv-offloading: dram, kv-offload-backend: { name: hicache }, conc-list: [8] }
"""

MULTI = """\
dsv4-fp8-h200-dynamo-vllm:
  image: nvcr.io/dynamo:v1
  model: org/Model
  model-prefix: dsv4
  runner: h200
  precision: fp8
  framework: dynamo-vllm
  multinode: true
  disagg: true
  kv-p2p-transfer: nixl
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      search-space:
      - conc-list: [8, 32]
        prefill: { num-worker: 1, tp: 8, ep: 1, dp-attn: false }
        decode: { num-worker: 2, tp: 8, ep: 8, dp-attn: true, additional-settings: ["A=1"] }
"""

AGENTIC_MULTI = """\
dsv4-fp8-h200-dynamo-agentic:
  image: nvcr.io/dynamo:v1
  model: org/Model
  model-prefix: dsv4
  runner: cluster:h200-x
  precision: fp8
  framework: dynamo-vllm
  multinode: true
  disagg: true
  kv-p2p-transfer: nixl
  scenarios:
    agentic-coding:
    - dram-utilization: 0.5
      search-space:
      - kv-offloading: dram
        kv-offload-backend: { name: mooncake }
        conc-list: [1, 32]
        prefill: { num-worker: 1, tp: 8, ep: 1, dp-attn: false }
        decode: { num-worker: 2, tp: 8, ep: 8, dp-attn: true }
"""

RUNNERS = """\
labels:
  h200: [h200-x_0, h200-x_1]
  cluster:h200-x: [h200-x_0]
hardware:
  cluster:h200-x: { available-cpu-dram-mib: 1_000_000, gpus-per-node: 8 }
"""

WHOLE = FIXED + AGENTIC + MULTI


def masters(folder: Path, text: str | bytes, runners: str | None = RUNNERS) -> Masters:
    """Read one master configuration."""
    data = text.encode() if isinstance(text, str) else text
    (folder / "master.yaml").write_bytes(data)
    machines = None
    if runners is not None:
        machines = folder / "runners.yaml"
        machines.write_text(runners)
    return read_masters([folder / "master.yaml"], machines, Project(folder, folder))


def rows(read: Masters, evals: Evaluations | None = None, **chosen: Any) -> list[Mapping[str, Any]]:
    """Plan what was read."""
    planned = plan_rows(read, Selection(**chosen), evals or Evaluations(none=True))
    return [one.row for one in planned.made]


def refused(folder: Path, text: str | bytes, runners: str | None = RUNNERS) -> list[Finding]:
    """Return the errors of a configuration that is refused."""
    with pytest.raises(ConfigError) as raised:
        masters(folder, text, runners)
    return [finding for finding in raised.value.findings if finding.level == "error"]


def edited(old: str, new: str, text: str = WHOLE) -> str:
    """Return the sample with one place changed."""
    assert text.count(old) >= 1, old
    return text.replace(old, new, 1)


def place_of(text: str, mark: str, start: int = 0) -> str:
    """Return the place of ``mark``, from ``start`` on if it stands there, as findings write it."""
    found = text.find(mark, start)
    before = text[: text.index(mark) if found < 0 else found]
    return f"master.yaml:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
