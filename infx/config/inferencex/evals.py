"""Which rows are also evaluated: InferenceX's own choice, field by field.

Fixed lengths are evaluated at 8k1k only, at concurrencies from 16 on. Rows of one node: the largest
and the median concurrency of each model, runner, framework, precision, speculation and attention,
at every tensor parallelism. Rows of several nodes: one row of each topology, at its largest
concurrency. Agentic rows only when evaluations are asked for: the largest concurrency of each
model, runner, framework and precision, or of each topology.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from infx.config.inferencex.expand import Made, Row
from infx.config.inferencex.fields import LENGTHS

__all__ = ["Evaluations", "with_evaluations"]

_LEAST_CONC = 16
_LENGTHS = LENGTHS["8k1k"]
_SERVED = ("model", "runner", "framework", "precision")
_NOT_TOPOLOGY = {"conc", "run-eval", "eval-only", "eval-conc", "eval-all-concs", "exp-name"}


@dataclass(frozen=True, slots=True)
class Evaluations:
    """What is asked: none; ``only`` the evaluated rows; ``every`` eligible row, evaluated."""

    none: bool = False
    only: bool = False
    every: bool = False


def with_evaluations(made: list[Made], asked: Evaluations) -> list[Made]:
    """Return the rows with `run-eval` and what goes with it; only the evaluated ones if asked."""
    if asked.none:
        return made
    _mark([one.row for one in made], agentic=asked.only or asked.every)
    if asked.every:
        made = _all(made)
    if not (asked.only or asked.every):
        return made
    evaluated = [one for one in made if one.row["run-eval"]]
    return [replace(one, row={**one.row, "eval-only": True}) for one in evaluated]


def _mark(rows: Sequence[Row], agentic: bool) -> None:
    chosen, at = _largest_and_median(rows), _topologies(rows, _is_evaluated)
    if agentic:
        chosen |= _largest_agentic(rows)
        at |= _topologies(rows, _is_agentic)
    for index, row in enumerate(rows):
        row["run-eval"] = index in chosen or index in at
        if index in at:
            row["eval-conc"] = at[index]


def _largest_and_median(rows: Sequence[Row]) -> set[int]:
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        if "tp" in row and _is_evaluated(row) and row["conc"] >= _LEAST_CONC:
            named = (*_SERVED, "spec-decoding", "dp-attn")
            groups[tuple(row[name] for name in named)].append(index)
    chosen = set()
    for members in groups.values():
        concs = sorted({rows[index]["conc"] for index in members})
        wanted = {concs[-1], concs[len(concs) // 2]}
        chosen |= {index for index in members if rows[index]["conc"] in wanted}
    return chosen


def _topologies(rows: Sequence[Row], wanted: Any) -> dict[int, int]:
    """Return the first row of each topology that has its largest concurrency, with that."""
    best: dict[str, tuple[int, int]] = {}
    for index, row in enumerate(rows):
        if "prefill" in row and wanted(row) and max(row["conc"], default=0) >= _LEAST_CONC:
            key, most = _topology(row), max(row["conc"])
            if key not in best or most > best[key][1]:
                best[key] = (index, most)
    return dict(best.values())


def _largest_agentic(rows: Sequence[Row]) -> set[int]:
    best: dict[tuple[Any, ...], int] = {}
    for index, row in enumerate(rows):
        if "tp" in row and _is_agentic(row):
            key = tuple(row[name] for name in _SERVED)
            if key not in best or row["conc"] > rows[best[key]]["conc"]:
                best[key] = index
    return set(best.values())


def _all(made: Iterable[Made]) -> list[Made]:
    """Return the rows with every eligible one evaluated; those of one topology become one row."""
    found: list[Made] = []
    merged: dict[str, Row] = {}
    for one in made:
        row = one.row
        if not (_is_agentic(row) or _is_evaluated(row)):
            found.append(one)
        elif "prefill" not in row:
            found.append(replace(one, row={**row, "run-eval": True}))
        elif (key := _topology(row)) in merged:
            _merge(merged[key], row)
        else:
            merged[key] = _first(row)
            found.append(replace(one, row=merged[key]))
    return found


def _first(row: Row) -> Row:
    """Return the evaluation row that a topology starts with: an agentic one is evaluated at its
    largest concurrency, another at all."""
    first = {**row, "conc": sorted(set(row["conc"])), "run-eval": True}
    if _is_agentic(row):
        return {**first, "eval-conc": max(row["conc"])}
    first.pop("eval-conc", None)
    return {**first, "eval-all-concs": True}


def _merge(first: Row, row: Row) -> None:
    first["conc"] = sorted({*first["conc"], *row["conc"]})
    if _is_agentic(row):
        first["eval-conc"] = first["conc"][-1]


def _topology(row: Row) -> str:
    return json.dumps({k: v for k, v in row.items() if k not in _NOT_TOPOLOGY}, sort_keys=True)


def _is_evaluated(row: Row) -> bool:
    return (row.get("isl"), row.get("osl")) == _LENGTHS


def _is_agentic(row: Row) -> bool:
    return row.get("scenario-type") == "agentic-coding"
