"""What keys of a master configuration mean together; each rule is one that its validator has.

Values of a wrong type were reported before; a rule that needs them says nothing then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from infx.config.inferencex.tree import Map, Notes

__all__ = [
    "check_agentic",
    "check_components",
    "check_concurrency",
    "check_offload",
    "check_topology",
    "check_workers",
]


def check_concurrency(row: Map, notes: Notes) -> None:
    """Report a row that does not say its concurrencies in exactly one way, or an empty range."""
    ends = [row.get("conc-start"), row.get("conc-end")]
    ranged, listed = None not in ends, bool(row.get("conc-list"))
    if ranged and listed:
        sentence = "`conc-list` and `conc-start` with `conc-end` both say the concurrencies"
        notes.error("conflicting-keys", sentence, row.key_at("conc-list"), "remove one")
    elif listed and ends != [None, None]:
        lone = "conc-end" if ends[0] is None else "conc-start"
        sentence = f"`{lone}` stands beside `conc-list`; their generator ignores it"
        notes.warn("conflicting-keys", sentence, row.key_at(lone), "remove one of them")
    elif not ranged and not listed:
        sentence = "a row needs `conc-list`, or `conc-start` and `conc-end`"
        notes.error("missing-key", sentence, row.where)
    if ranged and all(type(end) is int for end in ends):
        _check_range(row, ends[0], ends[1], notes)


def check_topology(part: Map, notes: Notes) -> None:
    """Report a tensor parallelism that the decode-context groups do not divide."""
    tp, size = part.get("tp"), part.get("dcp-size")
    if type(tp) is int and type(size) is int and size > 0 and tp % size:
        sentence = f"`tp` {tp} is no multiple of `dcp-size` {size}"
        notes.error("conflicting-keys", sentence, part.value_at("dcp-size"))


def check_workers(row: Map, notes: Notes) -> None:
    """Report workers of which one names its hardware and the other does not."""
    pair = [row.get("prefill"), row.get("decode")]
    named = [bool(worker.get("hardware")) for worker in pair if isinstance(worker, Map)]
    if len(named) == 2 and named[0] != named[1]:
        sentence = "one of `prefill` and `decode` names `hardware`, the other does not"
        notes.error("conflicting-keys", sentence, row.where, "name it in both, or in neither")


def check_agentic(entry: Map, row: Map, notes: Notes) -> None:
    """Report a row whose topology is not the one that its entry needs."""
    pair = [role for role in ("prefill", "decode") if row.get(role) is not None]
    if entry.get("multinode") is True:
        _check_multi(row, pair, notes)
    else:
        _check_single(row, pair, notes)


def check_offload(config: Map, row: Map, notes: Notes) -> None:
    """Report an offload to host memory without its backend or share, or a backend without it."""
    offload, backend = row.get("kv-offloading"), row.get("kv-offload-backend")
    if backend is not None and offload in (None, "none"):
        sentence = "`kv-offload-backend` stands where `kv-offloading` is not dram"
        notes.error("conflicting-keys", sentence, row.key_at("kv-offload-backend"))
    if offload != "dram":
        return
    if backend is None:
        sentence = "`kv-offloading: dram` needs `kv-offload-backend`"
        notes.error("missing-key", sentence, row.key_at("kv-offloading"))
    if config.get("dram-utilization") is None:
        sentence = "`kv-offloading: dram` needs `dram-utilization` in its scenario"
        notes.error("missing-key", sentence, row.key_at("kv-offloading"))


def check_components(key: str, entry: Map, rows: Sequence[Map], notes: Notes) -> None:
    """Report what an entry and its rows both say, and a transfer of the KV cache that is missing:
    a disaggregated entry names one, or each of its rows does."""
    for name in ("router", "kv-p2p-transfer"):
        below = next((row for row in rows if row.get(name) is not None), None)
        if entry.get(name) is not None and below is not None:
            sentence = f"`{name}` stands in `{key}` and in its rows"
            notes.error("conflicting-keys", sentence, below.key_at(name), "keep one of them")
    if entry.get("disagg") is True and entry.get("kv-p2p-transfer") is None:
        _need_transfers(key, entry, rows, notes)


def _check_range(row: Map, start: Any, end: Any, notes: Notes) -> None:
    for key, value in (("conc-start", start), ("conc-end", end)):
        if value < 1:
            sentence = f"`{key}` must be above 0, not {value}"
            notes.error("out-of-range", sentence, row.value_at(key))
    if start > end:
        sentence = f"`conc-start` {start} is above `conc-end` {end}"
        notes.error("out-of-range", sentence, row.value_at("conc-start"))


def _check_single(row: Map, pair: list[str], notes: Notes) -> None:
    if pair:
        sentence = f"`{pair[0]}` stands in an entry of one node"
        hint = "set multinode: true, or write tp"
        notes.error("conflicting-keys", sentence, row.key_at(pair[0]), hint)
    elif row.get("tp") is None:
        notes.error("missing-key", "an agentic row needs `tp`", row.where)
    elif row.get("kv-offloading") is None:
        hint = "write none or dram"
        notes.error("missing-key", "an agentic row needs `kv-offloading`", row.where, hint)
    if row.get("kv-p2p-transfer") is not None:
        sentence = "`kv-p2p-transfer` stands in an entry of one node"
        notes.error("conflicting-keys", sentence, row.key_at("kv-p2p-transfer"))


def _check_multi(row: Map, pair: list[str], notes: Notes) -> None:
    if len(pair) < 2:
        sentence = "a row over several nodes needs `prefill` and `decode`"
        notes.error("missing-key", sentence, row.where)
    for key in ("tp", "pp", "dcp-size", "pcp-size"):
        if row.get(key) is not None:
            sentence = f"`{key}` stands beside workers, which have their own"
            notes.error("conflicting-keys", sentence, row.key_at(key))
    for key in ("ep", "dp-attn"):
        if row.get(key) is not None:
            sentence = f"`{key}` stands beside workers; their generator ignores it"
            notes.warn("conflicting-keys", sentence, row.key_at(key), "write it in the workers")


def _need_transfers(key: str, entry: Map, rows: Sequence[Map], notes: Notes) -> None:
    without = [row for row in rows if row.get("kv-p2p-transfer") is None]
    if without or not rows:
        sentence = f"`{key}` is disaggregated and names no `kv-p2p-transfer`"
        where = without[0].where if len(without) < len(rows) else entry.key_at("disagg")
        notes.error("missing-key", sentence, where, "write it in the entry, or in every row")
