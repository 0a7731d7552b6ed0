"""What commands do with InferenceX's own files: options, rows, summaries, findings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from infx.cli.options import project

if TYPE_CHECKING:
    from infx.config.inferencex.evals import Evaluations
    from infx.config.inferencex.expand import Made
    from infx.config.inferencex.load import Masters
    from infx.config.inferencex.select import Selection
    from infx.domain.findings import Finding

__all__ = [
    "Checkout",
    "ConfigKeys",
    "Format",
    "Runners",
    "is_theirs",
    "plan_theirs",
    "read_theirs",
    "split",
    "told",
]

Format = Annotated[
    Literal["infx", "inferencex"] | None,
    typer.Option("--format", help="whose files these are (default: found by what they hold)"),
]
Runners = Annotated[
    Path | None,
    typer.Option(
        "--runners",
        metavar="FILE",
        help="InferenceX: its runners (default: runners.yaml beside the first file)",
    ),
]
Checkout = Annotated[
    Path | None,
    typer.Option("--checkout", metavar="DIR", help="InferenceX: look for each script in a clone"),
]
ConfigKeys = Annotated[
    list[str] | None,
    typer.Option("--config-keys", metavar="GLOB", help="InferenceX: entries, with all their rows"),
]
_LISTS = {
    "framework": "--framework",
    "model_prefix": "--model-prefix",
    "precision": "--precision",
    "runner": "--runner",
    "seq_lens": "--seq-lens",
    "scenario_type": "--scenario-type",
    "config_keys": "--config-keys",
    "conc": "--conc",
}
_OTHERS = {
    "min_conc": "--min-conc",
    "max_conc": "--max-conc",
    "max_tp": "--max-tp",
    "max_ep": "--max-ep",
    "step_size": "--step-size",
    "single_node": "--single-node",
    "multi_node": "--multi-node",
    "runner_node": "--runner-node-filter",
    "runners": "--runners",
    "checkout": "--checkout",
    "no_evals": "--no-evals",
    "evals_only": "--evals-only",
    "all_evals": "--all-evals",
    "strict": "--strict",
}
_COUNTED = ("ROWS", "POINTS", "EVALUATED")
_OURS = {
    "output": "--output",
    "ledger": "--ledger",
    "entry": "--entry",
    "on": "--on",
    "repeats": "--repeats",
    "interleave": "--interleave",
    "repeat_evaluations": "--repeat-evaluations",
    "reuse": "--reuse",
}
_SWEEP_ONLY = (
    *("framework", "model_prefix", "precision", "runner", "min_conc", "max_conc"),
    *("max_tp", "max_ep", "step_size", "single_node", "multi_node"),
)


def is_theirs(sources: Sequence[str], asked: str | None, given: Mapping[str, Any]) -> bool:
    """Return True when the files are InferenceX's, as ``--format`` or the files say.

    Raises UsageError ``bad-option`` for files of both kinds, and for an option of the other kind.
    """
    from infx.config.inferencex.recognise import is_master

    known = [asked == "inferencex" if asked else is_master(_path(s, sources)) for s in sources]
    if any(known) != all(known):
        first = sources[known.index(True)]
        other = sources[known.index(False)]
        _refuse(f"{first} is a file of InferenceX, {other} is not", "plan them one by one")
    theirs = all(known)
    wrong = _OURS if theirs else _LISTS | _OTHERS
    for name, option in wrong.items():
        if _is_said(given.get(name)):
            whose = "matrices of infx" if theirs else "files of InferenceX (--format inferencex)"
            hint = "use --config-keys GLOB" if theirs and name == "entry" else ""
            _refuse(f"{option} is for {whose}", hint)
    return theirs


def read_theirs(sources: Sequence[str], given: Mapping[str, Any]) -> Masters:
    """Return what InferenceX's files hold. Raises ConfigError with all findings."""
    from infx.config.inferencex.load import read_masters

    paths = [_path(source, sources) for source in sources]
    runners, checkout = (given.get(name) for name in ("runners", "checkout"))
    beside = paths[0].parent / "runners.yaml"
    if runners is not None:
        beside = _path(str(runners), sources)
    if checkout is not None and not Path(checkout, "benchmarks").is_dir():
        _refuse(f"--checkout {checkout} holds no benchmarks/", "name a clone of InferenceX")
    found = beside if runners is not None or beside.is_file() else None
    return read_masters(paths, found, project(), Path(checkout) if checkout else None)


def plan_theirs(sources: Sequence[str], given: Mapping[str, Any], as_json: bool) -> int:
    """Print the rows of InferenceX's files, and return the exit code.

    With ``as_json`` stdout is the JSON list that its own generator prints.
    """
    from infx.config.inferencex.load import plan_rows

    chosen, evaluations = _selection(given), _evaluations(given)
    planned = plan_rows(read_theirs(sources, given), chosen, evaluations)
    told(planned.findings)
    if as_json:
        print(json.dumps([one.row for one in planned.made]))
    else:
        _print_summary(planned.made)
    if not planned.made:
        return 5
    return int(bool(given["strict"] and planned.findings))


def told(findings: Iterable[Finding]) -> None:
    """Say findings on stderr, each with its level."""
    from infx.cli.output import say
    from infx.config.diagnostics import format_finding

    for finding in findings:
        say(f"{finding.level}: {format_finding(finding)}")


def _path(source: str, sources: Sequence[str]) -> Path:
    """Return the path of a source; a bare name that is not here is looked for beside the first."""
    path, beside = Path(source), Path(sources[0]).parent / source
    return beside if "/" not in source and not path.exists() and beside.exists() else path


def _selection(given: Mapping[str, Any]) -> Selection:
    from infx.config.inferencex.select import Selection

    if given["config_keys"]:
        for name in _SWEEP_ONLY:
            if _is_said(given[name]):
                option = (_LISTS | _OTHERS)[name]
                hint = "it takes --conc, --seq-lens, --scenario-type and --runner-node-filter"
                _refuse(f"{option} does not go with --config-keys", hint)
    elif _is_said(given["conc"]):
        _refuse("--conc is for the entries of --config-keys", "use --min-conc and --max-conc")
    lists: dict[str, Any] = {n: split(option, given[n]) for n, option in _LISTS.items()}
    lists["conc"] = _whole("--conc", lists["conc"])
    counts = {name: given[name] for name in ("min_conc", "max_conc", "max_tp", "max_ep")}
    single, multi = given["single_node"], given["multi_node"]
    return Selection(
        **lists,
        **counts,
        step_size=2 if given["step_size"] is None else given["step_size"],
        runner_node=given["runner_node"] or "",
        single_node=single or not multi,
        multi_node=multi or not single,
    )


def _evaluations(given: Mapping[str, Any]) -> Evaluations:
    from infx.config.inferencex.evals import Evaluations

    none, only, every = given["no_evals"], given["evals_only"], given["all_evals"]
    if none and (only or every):
        other = "--evals-only" if only else "--all-evals"
        _refuse(f"--no-evals and {other} exclude each other", "keep one")
    return Evaluations(none=none, only=only, every=every)


def _is_said(value: Any) -> bool:
    return value is not None and value is not False and value not in ([], ())


def split(option: str, values: Sequence[str] | None) -> tuple[str, ...]:
    """Return the words of a repeated option, each of which may hold several between commas.

    Raises UsageError ``bad-option`` for one that is given and names nothing.
    """
    words = tuple(word for value in values or () for word in value.split(",") if word)
    if values and not words:
        _refuse(f"{option} names nothing", "leave it out, or name what to keep")
    return words


def _whole(option: str, words: Iterable[str]) -> tuple[int, ...]:
    for word in words:
        if not word.isdecimal():
            _refuse(f"{option} {word} is no whole number", "write 4, or 1,4,16")
    return tuple(int(word) for word in words)


def _print_summary(made: Sequence[Made]) -> None:
    from infx.cli.output import table

    if not made:
        print("nothing is left: loosen what selects rows")
        return
    for title, what in (("ENTRY", _entry), ("RUNNER", _runner), ("SCENARIO", _scenario)):
        groups: dict[str, list[Made]] = {}
        for one in made:
            groups.setdefault(what(one), []).append(one)
        table((title, *_COUNTED), [(name, *_counts(group)) for name, group in groups.items()])
        print()
    entries = len({one.entry for one in made})
    counted = ", ".join(
        f"{n} {word.lower()}" for n, word in zip(_counts(made), _COUNTED, strict=True)
    )
    print(f"{entries} entries, {counted}")


def _counts(made: Sequence[Made]) -> tuple[int, int, int]:
    """Return how many rows, points, and rows that are evaluated."""
    points = sum(_points(one.row) for one in made)
    return len(made), points, sum(bool(one.row.get("run-eval")) for one in made)


def _entry(one: Made) -> str:
    return one.entry


def _points(row: Mapping[str, Any]) -> int:
    return len(row["conc"]) if isinstance(row["conc"], list) else 1


def _runner(one: Made) -> str:
    return str(one.row["runner"])


def _scenario(one: Made) -> str:
    row = one.row
    nodes = "several nodes" if "prefill" in row else "one node"
    if "isl" in row:
        return f"{row['isl']} in, {row['osl']} out, {nodes}"
    return f"agentic-coding, {nodes}"


def _refuse(message: str, hint: str) -> None:
    from infx.domain.errors import UsageError

    raise UsageError("bad-option", message, hint=hint)
