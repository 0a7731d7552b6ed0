"""Write the generated files: docs/{axes,cli,clusters,codes,recipes}.md, configs/schema/*.json and
infx/review/schema/*.json.

Of docs/mono.md and docs/golden.md the part between two marks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer.main
from typer.core import TyperGroup

from infx.cli.main import app
from infx.config import schema
from infx.domain.axes import AXES, VOCABULARY, kebab
from infx.domain.codes import CODES, Code
from infx.engine.mono.refusal import LEVELS, Level
from infx.review.schema import write_schemas as write_review_schemas

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from recipe_tables import curves_table, key_row, recipes_page  # noqa: E402

NOTE = "<!-- Written by `make docs`; a test compares it. -->\n"

FAMILIES = {
    "config": ("Files that infx cannot read", "Exit code 2; nothing is run."),
    "plan": (
        "Combinations that must not be run",
        "Errors exit with 2; rules and repeats only exclude.",
    ),
    "usage": ("Command lines", "Exit code 2."),
    "infra": ("The machine", "Exit code 3: the same work may succeed elsewhere or later."),
    "failed": ("Points without a measurement", "Written `failed:code`; the sweep exits with 4."),
    "invalid": (
        "Measurements that may not enter a frontier",
        "Written `invalid:code`; the point is drawn crossed, with its reason.",
    ),
    "remark": (
        "Remarks on measurements that count",
        "The point stays valid; the report lists the remark.",
    ),
    "ci": (
        "Pull requests",
        "Labels, events, comments, bundles; exit code 2, or 1 where a finding says so.",
    ),
    "changelog": (
        "The changelog",
        "`infx changelog check` exits with 1 for errors; `infx ci plan` refuses them with 2.",
    ),
    "golden": (
        "Golden lengths",
        "Exit code 1 for a length that does not hold, 2 or 4 for what cannot be measured.",
    ),
    "engine": (
        "Refusals of infx's own engine",
        "At start, at planning (the candidate is excluded) or as an HTTP error.",
    ),
    "mono": (
        "What mono does not serve",
        "Counted by `infx:mono_refusals_total`; the unfused layers serve it instead.",
    ),
}

MONO_LEVELS: dict[Level, str] = {
    "config": "At configuration: known from plain values, before anything is loaded.",
    "bind": "At bind: what was handed in, and the layers that stay unfused.",
    "step": "At each step; `mono-build-failed` is that of its width, for good.",
}
MARKS = ("<!-- refusals: written by `make docs` -->\n", "<!-- end of refusals -->\n")
CURVES = ("<!-- curves: written by `make docs` -->\n", "<!-- end of curves -->\n")

SECTIONS = {
    "ClusterSection": "A cluster",
    "TimeLimitsSection": "`time-limits`",
    "SlurmSection": "`slurm`",
    "ContainerSection": "`slurm: container`",
    "ExcludedNodesSection": "`slurm: exclude-nodes`, each item",
    "SrtSection": "`srt`",
}
CLUSTERS_HEAD = """
`configs/clusters.yaml` says where jobs run: a mapping of a name to a cluster. A matrix entry names
its cluster with `cluster:`, `--on NAME` puts a whole sweep elsewhere. The name is no part of a
point's identity, the hardware is: the points of `lab` are those of `local`.

```yaml
h200:
  executor: slurm
  hardware: h200
  gpus-per-node: 8
  time-limits: {job: 14400, start: 1800}
  slurm:
    ssh: h200-login              # a host of ~/.ssh/config; without it, this machine's own sbatch
    folder: /shared/infx         # there: runs, bundles, images
    partition: gpu
    account: bench
    exclusive: true
    directives: [--constraint=h200]
    exclude-nodes:
      - {nodes: "node[3-4]", until: "2027-01-31", reason: NVLink errors}
```

The file holds no secret: who you are is ssh's and Slurm's to know. "There" is on the cluster's
side. Options of sbatch that infx writes itself (`--time`, `--output`, `--array`, …) are refused in
`directives`. After its last day an exclusion is a warning and its nodes are used again, so that no
list of bad nodes outlives the repair.

A job ends in order at `time-limits: job`; Slurm is asked for five minutes more, and tells the job
to stop two minutes before that. A server's start may be as silent as `start` says, or as its
recipe says when that is 0.
"""
CLUSTERS_TAIL = """
## Why no Slurm library

infx calls `sbatch`, `squeue`, `sacct` and `scancel`, here or over `ssh`, and needs no package for
it. The package that is called `slurm-tools` on PyPI (0.1.0 of 2023) cannot be installed beside
aiperf: it pins `pandas<2` and `pydantic<2`, where aiperf 0.13.0 needs `pandas~=2.3` and pydantic
2, and pip ends with ResolutionImpossible. It has neither submission nor accounting.
"""


def axes_page() -> str:
    """Return docs/axes.md: every axis of a matrix."""
    head = (
        "# Axes\n\n"
        + NOTE
        + "\n| axis | changes | unit | default | meaning |\n|---|---|---|---|---|\n"
    )
    return head + "\n".join(_axis_row(name) for name in AXES) + "\n"


def clusters_page() -> str:
    """Return docs/clusters.md: every key of configs/clusters.yaml."""
    sections = schema.clusters_schema()["$defs"]
    parts = ["# Clusters\n", NOTE + CLUSTERS_HEAD]
    for name, title in SECTIONS.items():
        parts += [f"## {title}\n", "| key | default | meaning |\n|---|---|---|"]
        keys, required = sections[name]["properties"], sections[name].get("required", ())
        parts += [key_row(key, about, key in required) for key, about in keys.items()]
        parts.append("")
    return "\n".join(parts) + CLUSTERS_TAIL


def codes_page() -> str:
    """Return docs/codes.md: every code, what it means, what to do."""
    parts = ["# Codes\n", NOTE, "Every code that infx says, by who says it.\n"]
    for family, (title, about) in FAMILIES.items():
        rows = [code for code in CODES.values() if code.family == family]
        parts += [
            f"## {title}\n",
            f"{about}\n",
            "| code | what happened | what to do |\n|---|---|---|",
        ]
        parts += [_code_row(code) for code in rows] + [""]
    return "\n".join(parts)


def cli_page() -> str:
    """Return docs/cli.md: every command with its arguments and options."""
    root = typer.main.get_command(app)
    return "\n".join(["# Command line\n", NOTE, _help(root), *_commands(root, "infx")])


def mono_refusals() -> str:
    """Return the codes that mono refuses with, a table a level."""
    parts = []
    for level, about in MONO_LEVELS.items():
        rows = [_code_row(CODES[code]) for code, its in LEVELS.items() if its == level]
        parts += [f"{about}\n", "| code | what happened | what to do |\n|---|---|---|", *rows, ""]
    return "\n".join(parts)


def mono_page() -> str:
    """Return docs/mono.md as it is, with its refusals as they should be. Raises ValueError."""
    return _filled("docs/mono.md", MARKS, mono_refusals())


def golden_page() -> str:
    """Return docs/golden.md as it is, with the curves as they should be. Raises ValueError."""
    return _filled("docs/golden.md", CURVES, curves_table(ROOT))


def _filled(name: str, marks: tuple[str, str], text: str) -> str:
    """Return a page with ``text`` between its two marks. Raises ValueError without them."""
    before, begin, rest = (ROOT / name).read_text().partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not begin or not end:
        raise ValueError(f"{name}: expected the marks {marks[0]!r} and {marks[1]!r}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def pages() -> dict[str, str]:
    """Return file name -> text of every generated page."""
    made = {
        "axes": axes_page,
        "cli": cli_page,
        "clusters": clusters_page,
        "codes": codes_page,
        "golden": golden_page,
        "mono": mono_page,
        "recipes": lambda: recipes_page(ROOT, NOTE),
    }
    return {f"{name}.md": page() for name, page in made.items()}


def write_all() -> None:
    """Write every generated file."""
    for name, page in pages().items():
        (ROOT / "docs" / name).write_text(page)
    schema.write_schemas(ROOT / "configs/schema")
    write_review_schemas(ROOT / "infx/review/schema")


def _commands(group: Any, title: str) -> list[str]:
    context = group.make_context(title, [], resilient_parsing=True)
    named = ((name, group.get_command(context, name)) for name in group.list_commands(context))
    return [part for name, command in named for part in _command(command, f"{title} {name}")]


def _command(command: Any, title: str) -> list[str]:
    if isinstance(command, TyperGroup):
        return [f"## {title}\n", _help(command), *_commands(command, title)]
    context = command.make_context(title, [], resilient_parsing=True)
    usage = " ".join([title, *command.collect_usage_pieces(context)])
    parts = [f"## {title}\n", f"```\n{usage}\n```\n", _help(command)]
    options = [row for option in command.params if (row := _option(option, context))]
    if options:
        parts += ["| option | what it does |\n|---|---|", *options, ""]
    return parts


def _option(option: Any, context: Any) -> str:
    record = option.get_help_record(context) if option.param_type_name == "option" else None
    return f"| `{record[0]}` | {record[1]} |" if record else ""


def _help(command: Any) -> str:
    return (command.help or "").strip() + "\n"


def _axis_row(name: str) -> str:
    about, default = AXES[name].metadata, AXES[name].default
    values = f" ({', '.join(VOCABULARY[name])})" if name in VOCABULARY else ""
    shown = {None: "the engine's", (): "none"}.get(default, str(default).lower())
    cells = (f"`{kebab(name)}`", about["kind"], about["unit"], shown, about["about"] + values)
    return "| " + " | ".join(cells) + " |"


def _code_row(code: Code) -> str:
    return f"| `{code.name}` | {code.meaning} | {code.action} |"


if __name__ == "__main__":
    write_all()
