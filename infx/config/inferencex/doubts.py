"""What InferenceX's validator accepts and should not: values nobody knows, rows said twice.

All are warnings, since its generator makes rows of them; but host memory that cannot be computed
is an error for both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from infx.config.inferencex.expand import Made, replica_gpus
from infx.config.inferencex.fields import FRAMEWORKS, PRECISIONS
from infx.config.inferencex.runners import Runners, gpus_of
from infx.config.inferencex.schema import maps_of, search_rows
from infx.config.inferencex.tree import Map, Notes, Seq
from infx.config.suggestions import did_you_mean
from infx.domain.findings import Where

__all__ = ["doubt_entries", "doubt_rows"]

Pairs = dict[tuple[str, Where, Where], list[Made]]

_FILE_NAME = ("exp-name", "framework", "precision", "runner", "conc", "tp")
"""What tells results apart by name before a fingerprint is added."""


def doubt_entries(
    entries: Mapping[str, Map], runners: Runners, checkout: Path | None, notes: Notes
) -> None:
    """Report what is doubtful about each entry, which was found sound."""
    for key, entry in entries.items():
        _known(key, entry, "precision", PRECISIONS, notes)
        _known(key, entry, "framework", FRAMEWORKS, notes)
        if runners.file:
            _runner(key, entry, runners, notes)
        for row in search_rows(entry):
            _repeats(row, notes)
            _node_size(entry, row, runners, notes)
        _host_memory(key, entry, runners, notes)
        if checkout and not entry["multinode"]:
            _script(key, entry, checkout, notes)


def doubt_rows(made: Sequence[Made], notes: Notes) -> None:
    """Report rows that stand twice, and agentic rows that differ and have one name.

    An agentic row's exp-name tells its topology and concurrency, and is meant to be its own.
    """
    named: dict[tuple[Any, ...], list[Made]] = defaultdict(list)
    twice: Pairs = defaultdict(list)
    alike: Pairs = defaultdict(list)
    for one in made:
        others = named[tuple(str(one.row.get(field)) for field in _FILE_NAME)]
        if same := next((other for other in others if other.row == one.row), None):
            twice[one.entry, one.source.where, same.source.where].append(one)
            continue
        if others and "scenario-type" in one.row:
            alike[one.entry, one.source.where, others[0].source.where].append(one)
        others.append(one)
    for (_, where, first_at), members in twice.items():
        _repeat(members, where, first_at, notes)
    for (_, where, first_at), members in alike.items():
        _collision(members, where, first_at, notes)


def _known(key: str, entry: Map, field: str, known: tuple[str, ...], notes: Notes) -> None:
    value = entry[field]
    if value not in known:
        sentence = f"`{key}` has the {field} `{value}`; known are {', '.join(known)}"
        where = entry.value_at(field)
        notes.warn("unknown-value", sentence, where, did_you_mean(value, known))


def _runner(key: str, entry: Map, runners: Runners, notes: Notes) -> None:
    runner = entry["runner"]
    if runner not in runners.labels:
        sentence = f"{runners.file} has no label `{runner}`: no machine takes the rows of `{key}`"
        hint = did_you_mean(runner, runners.labels)
        notes.warn("unknown-reference", sentence, entry.value_at("runner"), hint)


def _repeats(row: Map, notes: Notes) -> None:
    listed = row.get("conc-list")
    if not isinstance(listed, Seq) or len(set(listed)) == len(listed):
        return
    places: dict[int, list[int]] = defaultdict(list)
    for index, value in enumerate(listed):
        places[value].append(index)
    for value, found in places.items():
        if len(found) > 1:
            sentence = f"`conc-list` holds {value} {len(found)} times: one point is measured again"
            notes.warn("repeated-value", sentence, listed.at(found[1]), "remove the repeats")


def _node_size(entry: Map, row: Map, runners: Runners, notes: Notes) -> None:
    node = runners.nodes.get(entry["runner"])
    if node is None or entry["multinode"] or (gpus := gpus_of(row)) <= node.gpus:
        return
    sentence = (
        f"tp x pp x pcp-size is {gpus} accelerators; a node of {entry['runner']} has {node.gpus}"
    )
    notes.warn("tp-gpus", sentence, row.key_at("tp"), "lower tp, or use several nodes")


def _host_memory(key: str, entry: Map, runners: Runners, notes: Notes) -> None:
    for config in maps_of(entry["scenarios"], "agentic-coding"):
        for row in maps_of(config, "search-space"):
            if row.get("kv-offloading") == "dram":
                _node_memory(key, entry, row, runners, notes)


def _node_memory(key: str, entry: Map, row: Map, runners: Runners, notes: Notes) -> None:
    """Report what keeps the host memory of a row from being computed."""
    node, where = runners.nodes.get(entry["runner"]), row.key_at("kv-offloading")
    if node is None:
        of = f"{runners.file or 'no file of runners'} has no `hardware:` of `{entry['runner']}`"
        sentence = f"{of}, from which the host memory of `{key}` follows"
        hint = "" if runners.file else "name the file: --runners runners.yaml"
        notes.error("unknown-reference", sentence, where, hint)
        return
    gpus = replica_gpus(row)
    fits = gpus <= node.gpus
    if entry["multinode"]:
        fits = gpus > 0 and max(gpus, node.gpus) % min(gpus, node.gpus) == 0
    if not fits:
        sentence = f"a server of {gpus} accelerators does not tile nodes of {node.gpus}"
        notes.error("tp-gpus", sentence, where, "use a number that divides a node, or whole nodes")


def _script(key: str, entry: Map, checkout: Path, notes: Notes) -> None:
    """Report scripts that no row of an entry of one node can find.

    A launcher takes the name with the framework, else the one without it (`_trt` stays).
    """
    asked: dict[tuple[Path, Path], Where] = {}
    for kind, folder in (("fixed-seq-len", "fixed_seq_len"), ("agentic-coding", "agentic")):
        for config in maps_of(entry["scenarios"], kind):
            for row in maps_of(config, "search-space"):
                asked.setdefault(_script_paths(entry, row, folder), row.where)
    for (named, plain), where in asked.items():
        if not (checkout / named).is_file() and not (checkout / plain).is_file():
            sentence = f"no script runs these rows of `{key}`: {named} does not exist"
            hint = "" if named == plain else f"nor does {plain}"
            notes.warn("script-missing", sentence, where, hint)


def _script_paths(entry: Map, row: Map, folder: str) -> tuple[Path, Path]:
    family = entry["runner"].removeprefix("cluster:").split("-")[0]
    base = f"{entry['model-prefix']}_{entry['precision']}_{family}"
    drafts = "_mtp" if row.get("spec-decoding") == "mtp" else ""
    framework = entry["framework"]
    names = [f"_{framework}", "_trt" if framework == "trt" else ""]
    named, plain = (
        Path("benchmarks/single_node", folder, base + n + drafts + ".sh") for n in names
    )
    return named, plain


def _repeat(members: Sequence[Made], where: Where, first: Where, notes: Notes) -> None:
    sentence = (
        f"rows of `{members[0].entry}` at conc {_concs(members)} are, field by field, those that "
        f"{first} makes"
    )
    notes.warn("repeat-of", sentence, where, "remove one of them")


def _collision(members: Sequence[Made], where: Where, first: Where, notes: Notes) -> None:
    sentence = (
        f"rows of `{members[0].entry}` at conc {_concs(members)} have the exp-name of rows that "
        f"{first} makes and are others: {members[0].row['exp-name']}"
    )
    notes.warn("name-collision", sentence, where, "their names leave out what tells them apart")


def _concs(members: Sequence[Made]) -> str:
    concs = (member.row["conc"] for member in members)
    return ", ".join(str(*conc) if isinstance(conc, list) else str(conc) for conc in concs)
