"""lm-eval's samples of an evaluation: what was asked and answered, which filter found it right.

One line of JSON a question and filter, as lm-eval 0.4.13 logs them
(``samples_<task>_<date>.jsonl``) and as infx keeps them (``samples.jsonl``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from infx.analysis.unpaired import Counted
from infx.domain.errors import ConfigError, UsageError
from infx.domain.findings import Finding, Where

__all__ = ["SAMPLES", "Samples", "find_samples", "questions_differ", "read_samples"]

SAMPLES = "samples.jsonl"
"""infx's own name of the file, in an evaluation's folder."""

_PLACES = "name a samples file, its folder, or a score: 1199/1319 or 0.909/1319"
_NAMES = (SAMPLES, "samples_*.jsonl")
_KEYS = ("doc_id", "filter", "metrics", "resps", "doc_hash", "prompt_hash")


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What a file of samples says, by question.

    ``lines`` holds the line on which a question first stands, ``asked`` the hashes of question and
    prompt and the settings of generation (JSON), ``texts`` the answers as they came; ``filters``
    maps each filter to {question: right}.
    """

    file: str
    lines: Mapping[str, int]
    asked: Mapping[str, tuple[str, str, str]]
    texts: Mapping[str, Any]
    filters: Mapping[str, Mapping[str, bool]]

    def score(self, name: str) -> Counted:
        """Return the score by the filter ``name``."""
        right = self.filters[name]
        return Counted(score=sum(right.values()) / len(right), questions=len(right))


def find_samples(place: Path) -> Path:
    """Return the file of samples that ``place`` is, or that lies in or under that folder.

    Raises UsageError (``not-samples``) where there is none, or more than one.
    """
    try:
        if place.is_file():
            return place
    except OSError as error:  # a name that no file can have
        text = f"{str(place)[:60]} …: {error.strerror}"
        raise UsageError("not-samples", text, hint=_PLACES) from error
    found = sorted(path for name in _NAMES for path in place.rglob(name))
    if len(found) == 1:
        return found[0]
    what = f"{place} holds no samples of lm-eval" if place.is_dir() else f"there is no {place}"
    hint = _PLACES
    if found:
        what = f"{place} holds {len(found)} files of samples"
        hint = f"name one: {', '.join(map(str, found[:4]))}" + " …" * (len(found) > 4)
    raise UsageError("not-samples", what, hint=hint)


def read_samples(path: Path) -> Samples:
    """Return what the file says. Raises ConfigError (``bad-samples``) with the fault's line."""
    lines: dict[str, int] = {}
    asked: dict[str, tuple[str, str, str]] = {}
    texts: dict[str, Any] = {}
    rows: dict[tuple[str, str], tuple[int, Mapping[str, Any]]] = {}
    for number, row in _rows(path):
        question, key = str(row["doc_id"]), (str(row["filter"]), str(row["doc_id"]))
        if key in rows:
            first = f"stands on line {rows[key][0]} already"
            raise _bad(path, number, f"question {question} of the filter {key[0]} {first}")
        rows[key] = number, row
        lines.setdefault(question, number)
        hashes = str(row["doc_hash"]), str(row["prompt_hash"])
        asked.setdefault(question, (*hashes, _settings(row.get("arguments"))))
        texts.setdefault(question, row["resps"])
    if not rows:
        raise _bad(path, 0, "it holds no sample")
    filters = _filters(path, list(rows.values()))
    return Samples(file=str(path), lines=lines, asked=asked, texts=texts, filters=filters)


def questions_differ(a: Samples, b: Samples) -> Finding | None:
    """Return the first way in which B was not asked what A was, or is not scored by the same
    filters; None: they can be compared question by question."""
    for one, other in ((a, b), (b, a)):
        if missing := [name for name in one.filters if name not in other.filters]:
            sentence = f"it has no filter {missing[0]}, which {one.file} has"
            return Finding("filter-missing", "error", sentence, Where(other.file))
        if more := [question for question in one.lines if question not in other.lines]:
            counts = f"{len(one.lines)} questions here, {len(other.lines)} in {other.file}"
            sentence = f"{counts}, which lacks question {more[0]}"
            return _differ(one, more[0], sentence, a, b)
    for question, asked in a.asked.items():
        if b.asked[question] != asked:
            what = "had other settings than" if b.asked[question][:2] == asked[:2] else "is not"
            sentence = f"question {question} {what} the one of {a.file}:{a.lines[question]}"
            return _differ(b, question, sentence, a, b)
    return None


def _differ(where: Samples, question: str, sentence: str, a: Samples, b: Samples) -> Finding:
    name = next(iter(a.filters))
    hint = f"compare the scores alone: infx accuracy {a.score(name)} {b.score(name)}"
    place = Where(where.file, where.lines[question], 1)
    return Finding("questions-differ", "error", sentence, place, hint)


def _settings(arguments: Any) -> str:
    """Return the settings among the arguments of a question's first request."""
    told = [part for first in _listed(arguments)[:1] for part in _listed(first)]
    settings = [part for part in told if isinstance(part, dict)]
    return msgspec.json.encode(settings, order="sorted").decode()


def _listed(held: Any) -> list[Any]:
    """Return a list, which lm-eval writes as {"arg_0": …} too; anything else holds nothing."""
    if isinstance(held, dict):
        return list(held.values())
    return held if isinstance(held, list) else []


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _bad(path, 0, f"{path.name} cannot be read: {error.strerror}") from error
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line)
        except msgspec.DecodeError as error:
            cut = "the file ends in the middle of a sample" if number == len(lines) else ""
            raise _bad(path, number, cut or f"it is no line of JSON: {error}") from error
        yield number, _checked(path, number, row)


def _checked(path: Path, number: int, row: Any) -> Mapping[str, Any]:
    if not isinstance(row, dict):
        raise _bad(path, number, "it is no sample: expected an object")
    missing = [key for key in _KEYS if key not in row]
    if not missing and not _named(row["metrics"], row["filter"]):
        raise _bad(path, number, "it is no sample of lm-eval: expected a filter and named metrics")
    missing = missing or [name for name in row["metrics"] if name not in row]
    if missing:
        raise _bad(path, number, f"it is no sample of lm-eval: `{missing[0]}` is missing")
    return row


def _named(metrics: Any, filter_name: Any) -> bool:
    names = [*metrics, filter_name] if isinstance(metrics, list) else [None]
    return all(isinstance(name, str) for name in names)


def _filters(
    path: Path, rows: Sequence[tuple[int, Mapping[str, Any]]]
) -> dict[str, dict[str, bool]]:
    """Return {filter: {question: right}} of what is 0 or 1 in every row; a filter of a task with
    several metrics is called ``metric,filter``, as in a score."""
    single = len({metric for _, row in rows for metric in row["metrics"]}) == 1
    values: dict[str, dict[str, Any]] = {}
    for _, row in rows:
        for metric in row["metrics"]:
            name = row["filter"] if single else f"{metric},{row['filter']}"
            values.setdefault(name, {})[str(row["doc_id"])] = row[metric]
    found = {
        name: {question: bool(value) for question, value in of.items()}
        for name, of in values.items()
        if all(value in (0, 1) for value in of.values())
    }
    if not found:
        raise _bad(path, 0, "no filter of the task scores right or wrong")
    _refuse_gaps(path, found)
    return found


def _refuse_gaps(path: Path, filters: Mapping[str, Mapping[str, bool]]) -> None:
    every = {question for of in filters.values() for question in of}
    for name, of in filters.items():
        if lacks := every - of.keys():
            raise _bad(path, 0, f"the filter {name} has no row for question {sorted(lacks)[0]}")


def _bad(path: Path, number: int, sentence: str) -> ConfigError:
    where = Where(str(path), number, 1) if number else Where(str(path))
    return ConfigError([Finding("bad-samples", "error", sentence, where)])
