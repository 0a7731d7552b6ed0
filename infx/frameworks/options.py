"""The options of an engine that infx does not carry: its own flags, read from a file of data.

``flags/ENGINE.json`` holds every flag of the engine's parser with the version and the file that it
was read from (`infx.frameworks.flag_reader` writes it for the packages whose source it can read).
An option of a recipe is such a flag by its own name, without ``--``; so a flag that the engine does
not have is an error before anything is submitted.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from infx.domain.axes import kebab
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding, Where
from infx.domain.point import Arm
from infx.frameworks.base import Option, Refusal

__all__ = [
    "FLAGS_FOLDER",
    "FlagsFile",
    "conflicts",
    "engine_options",
    "environment",
    "fault",
    "flags_file",
    "read_flags",
    "words",
]

FLAGS_FOLDER = Path(__file__).parent / "flags"

_KINDS: Mapping[str, type] = {kind.__name__: kind for kind in (bool, int, float, str, tuple)}


@dataclass(frozen=True, slots=True)
class FlagsFile:
    """What a data file holds: ``spellings`` are all words that the parser takes for a flag, aliases
    and negations included; ``version`` and ``source`` say what it was read from."""

    engine: str
    version: str
    source: str
    options: Mapping[str, Option]
    spellings: frozenset[str]


@cache
def flags_file(engine: str) -> FlagsFile:
    """Return the content of ``flags/ENGINE.json``.

    Raises ConfigError (``bad-record``) when the file is not there or not of this form.
    """
    path = FLAGS_FOLDER / f"{engine}.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        rows = content["flags"]
        options = {option.name: option for option in map(_option, rows)}
        said = frozenset(word for row in rows for word in _spellings(row))
        return FlagsFile(engine, content["version"], content["source"], options, said)
    except (OSError, ValueError, KeyError, TypeError) as error:
        sentence = f"not the flags of an engine: {error!r}"
        raise ConfigError([Finding("bad-record", "error", sentence, Where(str(path)))]) from error


def read_flags(engine: str) -> Mapping[str, Option]:
    """Return the flags of ``engine`` as options, by their names without ``--``."""
    return flags_file(engine).options


def engine_options(
    engine: str, *, capacity: Collection[str] = (), more: Iterable[Option] = ()
) -> dict[str, Option]:
    """Return what a recipe may set: the flags of ``engine``, those named in ``capacity`` marked as
    such, and ``more`` (options by environment variable; flags that are spelled in another way).

    Raises ValueError for a name in ``capacity`` that is no flag of the engine.
    """
    flags = read_flags(engine)
    if strangers := sorted(set(capacity) - set(flags)):
        raise ValueError(f"no flags of {engine}: {', '.join(strangers)}")
    marked = {name: replace(flags[name], capacity=True) for name in capacity}
    return {**flags, **marked, **{option.name: option for option in more}}


def words(options: Mapping[str, Option], values: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line for ``values``, in their order.

    None says nothing. Options without a flag are left out: `environment` has them.
    """
    return [
        word
        for name, value in values.items()
        if options[name].flag and value is not None
        for word in _words(options[name], value)
    ]


def environment(options: Mapping[str, Option], values: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment variables for ``values``: of options that have no flag.

    A bool is ``1`` or ``0``, a tuple as the option lists it; None sets nothing.
    """
    return {
        options[name].env: _text(options[name], value)
        for name, value in values.items()
        if options[name].env and not options[name].flag and value is not None
    }


def fault(option: Option, value: Any) -> str:
    """Return what is wrong with ``value`` for ``option`` in one sentence; "" when it is fine."""
    if value is None:
        return ""
    if not _is_kind(option.kind, value):
        return f"{option.name} is {value!r}; expected {_kind_text(option)}"
    told = value if isinstance(value, tuple) else (value,)
    wrong = [item for item in told if option.choices and str(item) not in option.choices]
    if wrong:
        return f"{option.name} is {wrong[0]!r}; expected one of {', '.join(option.choices)}"
    return ""


def conflicts(arm: Arm, owned: Mapping[str, str]) -> Iterator[Refusal]:
    """Yield an ``option-conflict`` for each option of ``arm`` that says what an axis says.

    ``owned`` maps an option's name to the axis; "" is what the job itself gives (ports, names).
    """
    for name in arm.options:
        if name not in owned or arm.options[name] is None:
            continue
        axis = owned[name]
        by = f"the axis {kebab(axis)}" if axis else "the job"
        yield Refusal("option-conflict", f"{name} is set by {by}, not as an option", name)


def _option(row: Mapping[str, Any]) -> Option:
    word = row["flag"].removeprefix("--")
    return Option(
        name=kebab(word),
        kind=_KINDS[row["kind"]],
        flag=row["flag"] if row["flag"].startswith("--") else "",
        key="" if row["flag"].startswith("--") else word,
        about=row.get("about", ""),
        choices=tuple(str(choice) for choice in row.get("choices", ())),
        negation=f"--no-{word}" if row.get("negatable") else "",
        listed=row.get("listed", "words"),
    )


def _spellings(row: Mapping[str, Any]) -> Iterator[str]:
    for flag in (row["flag"], *row.get("aliases", ())):
        yield flag
        if row.get("negatable") and flag.startswith("--"):
            yield f"--no-{flag.removeprefix('--')}"


def _words(option: Option, value: Any) -> list[str]:
    if option.kind is bool:
        said = option.flag if value else option.negation
        return [said] if said else []
    if isinstance(value, tuple) and option.listed == "words":
        return [option.flag, *map(str, value)]
    return [option.flag, _text(option, value)]


def _text(option: Option, value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, tuple):
        return str(value)
    if option.listed == "json":
        return json.dumps(value, separators=(",", ":"))
    return ("," if option.listed == "commas" else " ").join(map(str, value))


def _is_kind(kind: type, value: Any) -> bool:
    if isinstance(value, bool):
        return kind is bool
    if kind is float:
        return isinstance(value, int | float)
    return isinstance(value, kind)


def _kind_text(option: Option) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", tuple: "a list"}
    return names.get(option.kind, "text")
