"""The requests of one point, column by column: what an interval over requests is drawn from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import add
from pathlib import Path

import msgspec

from infx.analysis.export import read_export
from infx.analysis.measurements import input_lengths, output_lengths
from infx.analysis.records import Records

__all__ = ["Requests", "aligned", "columns_of", "read_requests"]

INPUTS = "inputs.json"
"""What aiperf sent, by the name of each prompt."""


class _Payload(msgspec.Struct, frozen=True):
    messages: msgspec.Raw = msgspec.Raw(b"")


class _Session(msgspec.Struct, frozen=True):
    session_id: str
    payloads: tuple[_Payload, ...] = ()


class _Inputs(msgspec.Struct, frozen=True):
    data: tuple[_Session, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests of the profiling phase that succeeded, in the order of the file.

    ``columns`` holds ``ttft_ms``, ``itl_ms``, ``e2el_ms``, ``token_s`` (E2EL over OSL), ``isl``,
    ``osl`` and ``tokens``, both together; NaN where an answer is too short to have a value.
    ``names`` are those of the prompts, ``failed`` counts the requests left out, ``prompts`` maps a
    name to the messages sent.
    """

    names: tuple[str, ...]
    columns: Mapping[str, tuple[float, ...]]
    failed: int = 0
    prompts: Mapping[str, bytes] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)


def read_requests(folder: Path) -> Requests:
    """Return the requests of an aiperf artifact folder that was judged ok.

    Raises UsageError (``not-artifacts``) when it holds no export, and MeasurementError as
    `measurements.measure` does.
    """
    return columns_of(read_export(folder).records, _prompts(folder / INPUTS))


def columns_of(records: Records, prompts: Mapping[str, bytes] | None = None) -> Requests:
    """Return ``records`` as figures. Raises MeasurementError when a request lacks one."""
    kept = records.succeeded()
    isl, osl = input_lengths(kept), output_lengths(kept)
    e2el, ttft = kept.numbers("request_latency"), kept.numbers("time_to_first_token")
    triples = list(zip(e2el, ttft, osl, strict=True))
    return Requests(
        names=tuple(kept.prompts),
        columns={
            "ttft_ms": tuple(ttft),
            "itl_ms": tuple((e - t) / (n - 1) if n > 1 else math.nan for e, t, n in triples),
            "e2el_ms": tuple(e2el),
            "token_s": tuple(e / 1000 / n if n else math.nan for e, _, n in triples),
            "isl": tuple(isl),
            "osl": tuple(osl),
            "tokens": tuple(map(add, isl, osl)),
        },
        failed=len(records) - len(kept),
        prompts=prompts or {},
    )


def aligned(a: Requests, b: Requests) -> tuple[Requests, str]:
    """Return ``b`` in the order of ``a`` and "" where both answered the same prompts, one by one;
    else ``b`` as it is and why requests cannot be paired."""
    why = _why_not(a, b)
    if why:
        return b, why
    place = {name: number for number, name in enumerate(b.names)}
    order = [place[name] for name in a.names]
    columns = {name: tuple(column[n] for n in order) for name, column in b.columns.items()}
    return Requests(names=a.names, columns=columns, prompts=b.prompts), ""


def _why_not(a: Requests, b: Requests) -> str:
    if a.failed or b.failed:
        return f"{a.failed} and {b.failed} requests failed"
    if len(a) != len(b):
        return f"{len(a)} and {len(b)} requests"
    if len(set(a.names)) < len(a) or set(a.names) != set(b.names):
        return "the exports name other prompts, or one twice"
    if not all(a.prompts.get(name) and a.prompts[name] == b.prompts.get(name) for name in a.names):
        return f"the prompts differ, or {INPUTS} does not tell"
    return ""


def _prompts(path: Path) -> dict[str, bytes]:
    try:
        inputs = msgspec.json.decode(path.read_bytes(), type=_Inputs)
    except (OSError, msgspec.DecodeError):
        return {}
    return {
        session.session_id: b"\n".join(bytes(part.messages) for part in session.payloads)
        for session in inputs.data
    }
