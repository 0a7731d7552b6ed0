"""docs/recipes.md, and the table of docs/golden.md, from the files themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from infx.config.expressions import Expression
from infx.config.library import Library
from infx.config.load import load_matrix
from infx.config.matrix import Entry, Matrix, Recipe, Value
from infx.config.project import Project
from infx.config.schema import recipe_schema
from infx.domain.axes import AXES, kebab
from infx.domain.findings import Where
from infx.domain.plan import Candidate, Plan
from infx.domain.point import SERVER_AXES, Point
from infx.plan.make import make_plan

__all__ = ["curves_table", "key_row", "recipes_page", "short_list"]

HEAD = """
A recipe (`recipes/NAME.yaml`) says how an engine is launched for a model on a chip; a matrix entry
names it, adds the load, and may set anything anew ([matrix.md](matrix.md)). What changes with the
concurrency is written once, in the recipe's `axes` and `options`, as an expression; the tables
below are what it becomes. `infx plan MATRIX --ledger` prints the same for your own.

```yaml
# yaml-language-server: $schema=../configs/schema/recipe.json
framework: vllm
model: {name: my-model, weights: "hf:me/my-model", tokenizer: me/my-model, heads: 64, kv-heads: 4}
hardware: [h200]
axes:                                          # where a scenario does not name the axis
  tp: 8
  max-num-seqs: conc if conc <= 2 else 2*conc  # an expression: all concurrencies lie on one curve
  capture-sizes: range(k+1, (k+1)*max_num_seqs+1, k+1)
options:                                       # the engine's own flags, without --
  gpu-memory-utilization: 0.9
env: {VLLM_LOGGING_LEVEL: WARNING}
chat-template: true
```

An option is a flag of the engine by its own name; one that the engine does not have, or a value
that it does not take, is an error of `infx plan` at its line. What an axis says (`max-num-seqs`,
`tp`, the types of caches, offload) is no option: one spelling for every engine. Capture sizes count
rows of a decode step, a request's K drafts and its own token being K+1 rows; engines that count
requests are given the number of requests.
"""


def recipes_page(root: Path, note: str) -> str:
    """Return docs/recipes.md: the keys, each recipe, and what each matrix makes of it."""
    project = Project(root, root)
    matrices = {name: _load(project, name) for name in project.matrices()}
    plans = {name: make_plan(matrix) for name, matrix in matrices.items()}
    parts = ["# Recipes\n", note + HEAD, *_keys()]
    library = Library(project)
    for name in project.recipes():
        recipe = library.recipe(name, Where(name))
        library.report.check()
        assert recipe
        parts += [*_recipe(recipe), *_users(name, matrices, plans)]
    return "\n".join(parts).rstrip() + "\n"


def curves_table(root: Path) -> str:
    """Return every published curve as a row: the acceptance lengths of K = 1, 2, 3 …"""
    project = Project(root, root)
    library, rows, most = Library(project), list[tuple[str, str, Mapping[int, float]]](), 0
    for name in project.goldens():
        if project.root.joinpath("golden_al", f"{name}.measured.json").exists():
            continue  # measured by infx: `infx golden show`
        for mode, lengths in (library.golden(name, Where(name)) or {}).items():
            rows.append((name, mode, lengths))
            most = max(most, *lengths)
    library.report.check()
    ks = range(1, most + 1)
    lines = [_row(["file", "thinking", *(f"K={k}" for k in ks)]), "|---" * (most + 2) + "|"]
    for name, mode, lengths in rows:
        lines.append(_row([f"`{name}`", mode, *(_length(lengths.get(k)) for k in ks)]))
    return "\n".join(lines) + "\n"


def short_list(numbers: Sequence[int]) -> str:
    """Return numbers in order with even runs as one: ``4–72 by 4, 80, 96``."""
    parts, rest = list[str](), list(numbers)
    while rest:
        run = _run(rest)
        if len(run) < 3:
            run = rest[:1]
        step = run[1] - run[0] if len(run) > 1 else 1
        by = f" by {step}" if step > 1 else ""
        parts.append(f"{run[0]}–{run[-1]}{by}" if len(run) > 1 else str(run[0]))
        rest = rest[len(run) :]
    return ", ".join(parts)


def key_row(key: str, about: Mapping[str, Any], required: bool) -> str:
    """Return a key of a section's JSON Schema as a row: name, default, meaning."""
    default = about.get("default")
    shown = "" if default in (None, [], {}, "") else f"`{str(default).lower()}`"
    choices = f" ({', '.join(about['enum'])})" if "enum" in about else ""
    text = about.get("description", "the weights under test, below")
    return _row([f"`{key}`", "required" if required else shown, text + choices])


def _run(numbers: Sequence[int]) -> Sequence[int]:
    for n in range(2, len(numbers)):
        if numbers[n] - numbers[n - 1] != numbers[1] - numbers[0]:
            return numbers[:n]
    return numbers


def _load(project: Project, name: str) -> Matrix:
    return load_matrix([project.matrix_path(name)], project)


def _keys() -> Iterator[str]:
    sections = recipe_schema()["$defs"]
    titles = {"RecipeSection": "The keys of a recipe", "ModelSection": "`model`"}
    titles |= {"DelegatedSection": "`srt`"}
    for name, title in titles.items():
        section = sections[name]
        yield f"## {title}\n"
        yield "| key | default | meaning |\n|---|---|---|"
        for key, about in section["properties"].items():
            yield key_row(key, about, key in section.get("required", ()))
        yield ""


def _recipe(recipe: Recipe) -> Iterator[str]:
    model = recipe.model
    yield f"## {recipe.name}\n"
    yield (
        f"{recipe.framework}, `{model.name}` (`{model.weights}`), for {', '.join(recipe.hardware)}"
        f"{', with the chat template' if recipe.chat_template else ''}.\n"
    )
    yield "| axis, option or variable | value |\n|---|---|"
    for axis in recipe.axes:
        values = axis.values if isinstance(axis.values, Expression) else axis.values[0]
        yield _row([f"axis `{kebab(axis.name)}`", _value(values)])
    for name, value in recipe.options.items():
        yield _row([f"`{name}`", _value(value)])
    for name, text in recipe.env.items():
        yield _row([f"`{name}` (environment)", f"`{text}`"])
    yield ""


def _users(recipe: str, matrices: Mapping[str, Matrix], plans: Mapping[str, Plan]) -> Iterator[str]:
    for name, matrix in matrices.items():
        for entry in matrix.entries:
            if entry.recipe.name == recipe:
                yield from _entry(name, entry, plans[name])


def _entry(matrix: str, entry: Entry, plan: Plan) -> Iterator[str]:
    points = [p for p in plan.points if p.entry == entry.name and p.mode == "throughput"]
    rows = [r for r in plan.ledger if r.entry == entry.name and r.scenario >= 0]
    left_out = [row for row in rows if row.disposition == "excluded"]
    where = f"configs/{matrix}.yaml, on {entry.cluster.name}"
    yield f"`{entry.name}` ({where}): {len(points)} points.\n"
    if points:
        yield from _points(points)
    if left_out:
        yield from _left_out(left_out)


def _points(points: Sequence[Point]) -> Iterator[str]:
    varied = [name for name in SERVER_AXES if len({_axis(p, name) for p in points}) > 1]
    options = [n for n in points[0].arm.options if len({_option(p, n) for p in points}) > 1]
    constant = [
        f"`{kebab(name)}` {_shown(_axis(points[0], name))}"
        for name in SERVER_AXES
        if name not in varied and _axis(points[0], name) != AXES[name].default
    ]
    yield f"At every point: {', '.join(constant)}.\n" if constant else ""
    yield _row(["`conc`", *(f"`{kebab(name)}`" for name in varied), *(f"`{n}`" for n in options)])
    yield "|---" * (1 + len(varied) + len(options)) + "|"
    for point in points:
        cells = [_cell(point, name) for name in varied]
        yield _row([str(point.conc), *cells, *(_shown(_option(point, n)) for n in options)])
    yield ""


def _left_out(rows: Iterable[Candidate]) -> Iterator[str]:
    yield "Left out, and why:\n"
    concs: dict[str, list[int]] = {}
    for row in rows:
        concs.setdefault(row.sentence, []).append(row.values["conc"])
    for sentence, left_out in concs.items():
        yield f"- conc {', '.join(map(str, left_out))}: {sentence}"
    yield ""


def _axis(point: Point, name: str) -> Any:
    return getattr(point.arm.axes, name)


def _cell(point: Point, name: str) -> str:
    of_offload = name.startswith("kv_offload_") and point.arm.axes.kv_offload == "none"
    return "" if of_offload else _shown(_axis(point, name))


def _option(point: Point, name: str) -> Any:
    return point.arm.options.get(name)


def _value(value: Value) -> str:
    if isinstance(value, Expression):
        return f"`{value.text}`".replace("|", "\\|")
    return _shown(value)


def _shown(value: Any) -> str:
    if value is None or value == ():
        return "the engine's"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return short_list(value) if all(isinstance(n, int) for n in value) else ", ".join(value)
    return f"`{value}`" if isinstance(value, str) else str(value)


def _length(length: float | None) -> str:
    return "" if length is None else f"{length:.2f}"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
