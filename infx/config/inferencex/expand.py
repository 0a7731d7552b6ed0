"""Search spaces to rows: the same rows, field by field and in the same order, that InferenceX's
own generator prints.

Two of its ways are odd and kept. A largest concurrency below all those of a fixed-length row gives
that row this one concurrency, where an agentic row falls away; and filters of lengths, tensor and
expert parallelism do not touch agentic rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infx.config.inferencex.fields import LENGTHS
from infx.config.inferencex.runners import Runners, gpus_of, host_gb
from infx.config.inferencex.schema import maps_of
from infx.config.inferencex.select import Selection
from infx.config.inferencex.tree import Map

__all__ = ["DURATION_S", "Made", "Row", "doubled", "expand", "replica_gpus"]

Row = dict[str, Any]
DURATION_S = 3600
"""How long an agentic point is measured; no file of InferenceX says another."""

_MARGIN = 256
"""Tokens of the context beyond input and output."""

_NAMES = {lengths: name for name, lengths in LENGTHS.items()}


@dataclass(frozen=True, slots=True)
class Made:
    """A row with the entry and the line of the search space that it comes from."""

    row: Row
    entry: str
    source: Map


def expand(entries: Mapping[str, Map], runners: Runners, chosen: Selection) -> list[Made]:
    """Return the rows of the entries that ``chosen`` selects."""
    made: list[Made] = []
    for key in chosen.keys(entries):
        entry = entries[key]
        if machines := chosen.machines(entry["runner"], runners):
            made += _Entry(key, entry, machines, runners, chosen).rows()
    return made


def doubled(start: int, end: int, step: int = 2) -> list[int]:
    """Return ``start``, each time multiplied by ``step``, up to ``end``, which is always one."""
    values = [start] if start <= end else []
    while values and values[-1] < end:
        values.append(min(values[-1] * step, end))
    return values


def replica_gpus(row: Mapping[str, Any]) -> int:
    """Return the accelerators that hold the offloaded cache: a server's, or a prefill worker's."""
    return gpus_of(row.get("prefill") or row)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry under expansion."""

    key: str
    entry: Map
    machines: Sequence[str]
    runners: Runners
    chosen: Selection

    def rows(self) -> Iterator[Made]:
        """Yield its rows: fixed lengths first."""
        if not self.chosen.topology(self.entry["multinode"]):
            return
        scenarios = self.entry["scenarios"]
        if self.chosen.scenario("fixed-seq-len"):
            for config in maps_of(scenarios, "fixed-seq-len"):
                if self.chosen.lengths(config["isl"], config["osl"]):
                    yield from self._all(config, self._fixed)
        if self.chosen.scenario("agentic-coding"):
            for config in maps_of(scenarios, "agentic-coding"):
                yield from self._all(config, self._agentic)

    def _all(self, config: Map, rows: Any) -> Iterator[Made]:
        for source in maps_of(config, "search-space"):
            yield from (Made(row, self.key, source) for row in rows(config, source))

    def _fixed(self, config: Map, source: Map) -> Iterator[Row]:
        isl, osl = config["isl"], config["osl"]
        name = f"{self.entry['model-prefix']}_{_NAMES.get((isl, osl), f'{isl}_{osl}')}"
        length = {"max-model-len": isl + osl + _MARGIN}
        last = {"exp-name": name, "disagg": self.entry.get("disagg", False), "run-eval": False}
        rows = self._fixed_multi if self.entry["multinode"] else self._fixed_single
        yield from rows(source, {"isl": isl, "osl": osl}, length, {**last, **self._parts(source)})

    def _fixed_single(self, source: Map, lengths: Row, context: Row, last: Row) -> Iterator[Row]:
        server = _server(source)
        if not self.chosen.tensor(server["tp"]):
            return
        server["ep"] = self.chosen.experts(server["ep"], source.get("ep") is not None)
        ranks = {key: server.pop(key) for key in ("tp", "pp", "dcp-size", "pcp-size")}
        for conc in self._fixed_concs(source):
            for machine in self.machines:
                head = {**self._head(machine), **lengths, **ranks, "conc": conc}
                yield {**head, **context, **server, **last}

    def _fixed_multi(self, source: Map, lengths: Row, context: Row, last: Row) -> Iterator[Row]:
        concs, drafts = self._fixed_concs(source), source.get("spec-decoding", "none")
        body = {"spec-decoding": drafts, **_workers(source), "conc": concs}
        for machine in self.machines if concs else ():
            yield {**self._head(machine), **lengths, **body, **context, **last}

    def _agentic(self, config: Map, source: Map) -> Iterator[Row]:
        offload = source.get("kv-offloading", "none") or "none"
        backend = source.get("kv-offload-backend")
        cache = f"kv{offload}-{backend['name']}" if backend else "kvnone"
        load = {
            "kv-offloading": offload,
            "total-cpu-dram-gb": self._host_gb(config, source),
            "duration": DURATION_S,
        }
        ends = {"kv-offload-backend": backend} if backend else {}
        ends |= self._parts(source)
        concs = self.chosen.agentic_concs(_concs(source, self.chosen.step_size))
        rows = self._agentic_multi if self.entry["multinode"] else self._agentic_single
        for row in rows(source, concs, load, cache):
            yield {**row, "scenario-type": "agentic-coding", **ends}

    def _agentic_single(
        self, source: Map, concs: Sequence[int], load: Row, cache: str
    ) -> Iterator[Row]:
        server, prefix = _server(source), self.entry["model-prefix"]
        method = server["spec-decoding"]
        tail = f"_{cache}" + (f"_spec-{method}" if method != "none" else "")
        for conc in concs:
            name = {"exp-name": f"{prefix}_tp{server['tp']}_conc{conc}{tail}"}
            for machine in self.machines:
                yield {**self._head(machine), **server, "conc": conc, **load, **name}

    def _agentic_multi(
        self, source: Map, concs: Sequence[int], load: Row, cache: str
    ) -> Iterator[Row]:
        workers = _workers(source)
        body = {"spec-decoding": source.get("spec-decoding", "none"), **workers}
        pair = f"{_worker_name('p', workers['prefill'])}_{_worker_name('d', workers['decode'])}"
        tail = f"_{cache}" if cache != "kvnone" else ""
        for machine in self.machines:
            for conc in concs:
                name = f"{self.entry['model-prefix']}_{pair}_conc{conc}{tail}"
                last = {"exp-name": name, "disagg": self.entry.get("disagg", False)}
                yield {**self._head(machine), **body, "conc": [conc], **load, **last}

    def _head(self, machine: str) -> Row:
        names = ("image", "model", "model-prefix", "precision", "framework")
        return {**{name: self.entry[name] for name in names}, "runner": machine}

    def _parts(self, source: Map) -> Row:
        """Return the components that a row names, or its entry."""
        named = {key: source.get(key, self.entry.get(key)) for key in ("router", "kv-p2p-transfer")}
        return {key: value for key, value in named.items() if value is not None}

    def _fixed_concs(self, source: Map) -> list[int]:
        if self.entry["multinode"] or source.get("conc-list"):
            return self.chosen.fixed_concs(_concs(source, self.chosen.step_size))
        start, end = self.chosen.fixed_range(source["conc-start"], source["conc-end"])
        return self.chosen.asked(doubled(start, end, self.chosen.step_size))

    def _host_gb(self, config: Map, source: Map) -> int:
        if source.get("kv-offloading") != "dram":
            return 0
        node = self.runners.nodes[self.entry["runner"]]
        gpus = min(replica_gpus(source), node.gpus)
        return host_gb(config["dram-utilization"], gpus, node)


def _concs(source: Map, step: int) -> list[int]:
    if listed := source.get("conc-list"):
        return list(listed)
    return doubled(source["conc-start"], source["conc-end"], step)


def _server(source: Map) -> Row:
    """Return the parallelism of a row of one node, in the order of agentic rows."""
    server = {"tp": source["tp"]}
    server |= {key: source.get(key, 1) for key in ("pp", "dcp-size", "pcp-size")}
    ep, attention = source.get("ep"), source.get("dp-attn")
    server["ep"] = 1 if ep is None else ep
    server["dp-attn"] = bool(attention)
    return {**server, "spec-decoding": source.get("spec-decoding", "none")}


def _workers(source: Map) -> Row:
    sizes = ("pp", "dcp-size", "pcp-size")
    return {
        role: {**source[role], **{size: source[role].get(size, 1) for size in sizes}}
        for role in ("prefill", "decode")
    }


def _worker_name(role: str, worker: Mapping[str, Any]) -> str:
    experts = f"ep{worker['ep']}" if worker["ep"] != 1 else ""
    return f"{role}{worker['num-worker']}x{worker['tp']}{experts}{'dpa' * worker['dp-attn']}"
