"""Server configurations that differ in a few values: what they share stands once.

A line whose max-num-seqs follows the concurrency has as many arms as points, each with its own
command. Their commands have the same words in the same order but for those few.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from infx.domain.record import PointRecord
from infx.report.figures import plain
from infx.report.model import ArmDetails

__all__ = ["Column", "Command", "Family", "Word", "families_of"]

Key = TypeVar("Key", bound=Hashable)

Word = str | int
"""A text that all share, or the number of the column that holds each one's own."""

Facts = Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A thing in which the arms of a family differ, with its value for each of them."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The command lines of several points: ``words`` of which some are columns of ``values``,
    which holds a row for each point id."""

    words: tuple[Word, ...]
    names: tuple[str, ...]
    values: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Arms of one entry and image, told apart by ``columns``.

    ``server``, ``env`` and ``reported`` (the configuration that the server tells) hold shared
    values and numbers of columns. ``clients`` are the client's commands of their points.
    """

    anchor: str
    title: str
    arms: tuple[ArmDetails, ...]
    columns: tuple[Column, ...]
    server: tuple[Word, ...]
    env: Mapping[str, Word]
    reported: Mapping[str, Word]
    axes: Mapping[str, Word]
    clients: tuple[Command, ...] = field(default=())


def families_of(arms: Sequence[ArmDetails]) -> tuple[Family, ...]:
    """Return the arms in families, in the order of their first."""
    groups: dict[Hashable, list[tuple[ArmDetails, Facts]]] = {}
    for arm in arms:
        facts = _facts(arm)
        key = (arm.title, arm.arm.framework, arm.arm.image, arm.arm.image_digest, tuple(facts))
        groups.setdefault(key, []).append((arm, facts))
    return tuple(_family(group) for group in groups.values())


def _facts(arm: ArmDetails) -> dict[tuple[str, str], str]:
    """Return everything that an arm says by section and name; axes first, for columns are named
    after the first thing that differs."""
    facts = {("axis", axis.name): axis.planned for axis in arm.axes}
    facts |= {("argv", f"{n:04}"): word for n, word in enumerate(arm.server_argv)}
    facts |= {("env", name): value for name, value in arm.env.items()}
    return facts | {("reported", name): plain(value) for name, value in arm.server.items()}


def _family(group: Sequence[tuple[ArmDetails, Facts]]) -> Family:
    arms = tuple(arm for arm, _ in group)
    shared, columns = _shared([facts for _, facts in group])
    argv = _section(shared, "argv").values()
    return Family(
        anchor=f"servers-{arms[0].anchor.removeprefix('arm-')}",
        title=arms[0].title,
        arms=arms,
        columns=tuple(
            Column(name=_name(group[0][1], *key), values=values) for key, values in columns.items()
        ),
        server=tuple(argv),
        env=_section(shared, "env"),
        reported=_section(shared, "reported"),
        axes=_section(shared, "axis"),
        clients=_clients([record for arm in arms for record in arm.records]),
    )


def _section(shared: Mapping[tuple[str, str], Word], name: str) -> dict[str, Word]:
    return {key: word for (section, key), word in shared.items() if section == name}


def _name(facts: Facts, section: str, key: str) -> str:
    """Return a column's name: of a word of a command, the option before it."""
    if section != "argv":
        return key
    return _option(facts.get((section, f"{int(key) - 1:04}"), ""), int(key))


def _option(before: str, number: int) -> str:
    """Return what word ``number`` of a command is called, after the word ``before`` it."""
    return before.lstrip("-") if before.startswith("-") else f"word {number}"


def _shared(
    items: Sequence[Mapping[Key, str]],
) -> tuple[dict[Key, Word], dict[Key, tuple[str, ...]]]:
    """Return what all items say, with the number of a column where they differ, and the columns.

    Things that differ together are one column, under the key of the first of them.
    """
    shared: dict[Key, Word] = {}
    numbers: dict[tuple[str, ...], int] = {}
    columns: dict[Key, tuple[str, ...]] = {}
    for key in items[0]:
        values = tuple(item[key] for item in items)
        if len(set(values)) == 1:
            shared[key] = values[0]
            continue
        if values not in numbers:
            numbers[values] = len(columns)
            columns[key] = values
        shared[key] = numbers[values]
    return shared, columns


def _clients(records: Sequence[PointRecord]) -> tuple[Command, ...]:
    groups: dict[int, list[PointRecord]] = {}
    told = {r.point.point_id: r for r in records if r.provenance.client_argv}
    for record in told.values():
        groups.setdefault(len(record.provenance.client_argv), []).append(record)
    return tuple(_command(group) for group in groups.values())


def _command(records: Sequence[PointRecord]) -> Command:
    argvs = [dict(enumerate(record.provenance.client_argv)) for record in records]
    shared, columns = _shared(argvs)
    rows = zip(*columns.values(), strict=True) if columns else ((),) * len(records)
    return Command(
        words=tuple(shared.values()),
        names=tuple(_option(argvs[0].get(number - 1, ""), number) for number in columns),
        values={
            record.point.point_id: tuple(row) for record, row in zip(records, rows, strict=True)
        },
    )
