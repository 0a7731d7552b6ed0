"""A small valid project, and edits of its files that mark where a fault is expected."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from infx.config.load import load_matrix
from infx.config.matrix import Matrix
from infx.config.project import Project
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding

MATRIX = "configs/demo.yaml"
FILES = {
    MATRIX: """\
demo:
  model-prefix: minimaxm3
  precision: fp32
  framework: infx
  image: pypi:infx
  recipe: mini
  cluster: box
  speculation: {method: eagle3, golden: curve, thinking: on, law: geometric}
  options: {num-blocks: 64}
  scenarios:
    - workload: {isl: 64, osl: 32, requests: 6*conc}
      axes:
        conc: [1, 2, 4]
        k: 3
        max-num-seqs: 2*conc
        capture-sizes: [4, 8]
        mono: [off, on]
      include:
        - {conc: 4, mono: off, queueing: true}
      exclude:
        - {when: "mono == 'on' and conc > 2", reason: too wide}
  evaluations:
    - {task: gsm_mini, limit: 8, bars: {strict-match: 0.0}}
""",
    "configs/clusters.yaml": """\
box: {executor: local, hardware: cpu}
far: {executor: slurm, hardware: h200, gpus-per-node: 8, slurm: {partition: gpu}}
""",
    "recipes/mini.yaml": """\
framework: infx
model: {name: mini, weights: random:0}
hardware: [cpu]
options: {threads: 2, dtype: fp32}
env: {OMP_NUM_THREADS: "2"}
""",
    "golden_al/curve.yaml": """\
some-model:
  thinking_on: {1: 1.8, 2: 2.4, 3: 2.78}
""",
}


@dataclass(frozen=True)
class Edit:
    """Replace ``old`` by ``new`` in ``file``; ``«`` in ``new`` marks where a fault is expected."""

    old: str
    new: str
    file: str = MATRIX

    def apply(self, text: str) -> tuple[str, tuple[int, int]]:
        """Return the edited text and the marked line and column (1, 1 without a mark)."""
        assert text.count(self.old) == 1, f"{self.old!r} is not once in {self.file}"
        marked = text.replace(self.old, self.new)
        before, mark, _ = marked.partition("«")
        place = (before.count("\n") + 1, len(before) - before.rfind("\n")) if mark else (1, 1)
        return marked.replace("«", ""), place


def write_project(root: Path, changes: dict[str, str] | None = None) -> Project:
    """Write the sample into ``root``, with some files changed, and return the project."""
    for name, text in (FILES | (changes or {})).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Project(root.resolve(), root.resolve())


def load(project: Project) -> Matrix:
    return load_matrix([project.root / MATRIX], project)


def faults(project: Project) -> list[Finding]:
    """Return the findings of loading the sample's matrix; none when it loads."""
    try:
        load(project)
    except ConfigError as error:
        return list(error.findings)
    return []
