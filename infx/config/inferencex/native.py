"""InferenceX's entries as matrices, recipes and clusters of infx.

Every entry of one node on an engine of infx becomes an entry; each row of its search spaces becomes
a scenario. What our words cannot say is a finding at its place, and nothing else is left out: K and
the draft live in InferenceX's scripts, so rows with drafts are written once K is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from infx.config.inferencex.expand import DURATION_S, doubled
from infx.config.inferencex.load import Masters
from infx.config.inferencex.runners import gpus_of, host_gb
from infx.config.inferencex.schema import maps_of, search_rows
from infx.config.inferencex.shelf import Shelf, family
from infx.config.inferencex.tree import Map, Notes
from infx.domain.axes import Axes, kebab, snake
from infx.domain.findings import Where
from infx.domain.vocabulary import FRAMEWORKS

__all__ = ["Native", "to_native"]

_ENGINES = {"vllm": "vllm", "sglang": "sglang", "atom": "atom", "trt": "trtllm"}
_BACKENDS = {
    "lmcache": "lmcache",
    "mooncake": "mooncake",
    "native": "native",
    "hicache": "native",  # SGLang's own
}
_TRACE = "semianalysis_cc_traces_weka_062126"
_LONG_CONTEXT = ("dsv4", "glm5.2", "minimaxm3", "kimik3")
"""Models that replay whole sessions; the others replay those of at most 256k tokens."""

_DEFAULTS = Axes()


@dataclass(slots=True)
class Native:
    """What an import makes: matrices by the stem of their file, recipes and clusters by name, and
    how many rows of search spaces were written and left out."""

    matrices: dict[str, dict[str, Any]] = field(default_factory=dict)
    recipes: dict[str, dict[str, Any]] = field(default_factory=dict)
    clusters: dict[str, dict[str, Any]] = field(default_factory=dict)
    written: int = 0
    left_out: int = 0
    notes: Notes = field(default_factory=Notes)


def to_native(masters: Masters, keys: Iterable[str], shelf: Shelf, k: int | None) -> Native:
    """Return the entries ``keys`` in infx's own words.

    ``shelf`` is what the target project holds; ``k`` the drafts a step of every row with drafts,
    which no file of InferenceX says (None: such rows are left out).
    """
    native = Native()
    for key in keys:
        _Entry(key, masters.entries[key], masters, shelf, k, native).write()
    return native


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry on its way."""

    key: str
    entry: Map
    masters: Masters
    shelf: Shelf
    k: int | None
    native: Native

    def write(self) -> None:
        """Add the entry to ``native``, or say why not."""
        if reason := self._unsaid():
            rows = sum(1 for _ in search_rows(self.entry))
            self._leave_out(f"`{self.key}`", reason, self.entry.key_at("framework"), rows)
            return
        if scenarios := [made for made in self._scenarios() if made]:
            entries = self.native.matrices.setdefault(_stem(self.entry.file), {})
            entries[self.key] = self._made(scenarios)

    def _made(self, scenarios: list[dict[str, Any]]) -> dict[str, Any]:
        prefix, drafts = self.entry["model-prefix"], any(s["axes"].get("k") for s in scenarios)
        speculation = {"speculation": self._speculation(prefix)} if drafts else {}
        return {
            "model-prefix": prefix,
            "precision": self.entry["precision"],
            "framework": self._engine,
            "image": self.entry["image"],
            "recipe": self._recipe(),
            "cluster": self._cluster(),
            **speculation,
            "scenarios": scenarios,
        }

    def _speculation(self, prefix: str) -> dict[str, str]:
        section = self.shelf.speculation(prefix)
        if section["method"] != "mtp":
            sentence = f"`{self.key}` drafts by {section['method']} and does not name its draft"
            hint = "add `draft: MODEL` to its speculation where the engine needs one"
            self.native.notes.inform("skeleton", sentence, self.entry.key_at("model"), hint)
        return section

    @property
    def _engine(self) -> str:
        return _ENGINES[self.entry["framework"]]

    def _unsaid(self) -> str:
        """Return what of the whole entry infx has no word for, or ``""``."""
        framework = self.entry["framework"]
        if self.entry["multinode"]:
            return f"it serves on several nodes ({framework}); plan it with --format inferencex"
        if _ENGINES.get(framework) not in FRAMEWORKS:
            return f"infx has no engine `{framework}`; it has {', '.join(FRAMEWORKS)}"
        return ""

    def _scenarios(self) -> Iterator[dict[str, Any] | None]:
        for kind in ("fixed-seq-len", "agentic-coding"):
            for config in maps_of(self.entry["scenarios"], kind):
                for row in maps_of(config, "search-space"):
                    yield self._scenario(config, row)

    def _scenario(self, config: Map, row: Map) -> dict[str, Any] | None:
        if reason := self._row_unsaid(row):
            self._leave_out(f"a row of `{self.key}`", reason, row.where, 1)
            return None
        self.native.written += 1
        if "isl" in config:
            return {"workload": _fixed(config), "axes": self._axes(config, row)}
        return {"workload": self._agentic(), "axes": self._axes(config, row)}

    def _row_unsaid(self, row: Map) -> str:
        """Return what of a row infx has no word for, or ``""``."""
        for size in ("dcp-size", "pcp-size"):
            if row.get(size, 1) > 1:
                return f"infx has no axis for {size} {row[size]}"
        router = row.get("router", self.entry.get("router"))
        if router is not None:
            return f"infx starts no router ({router['name']})"
        backend = row.get("kv-offload-backend")
        if backend is not None and backend["name"] not in _BACKENDS:
            return f"infx has no offload backend `{backend['name']}`"
        return self._drafts_unsaid(row)

    def _drafts_unsaid(self, row: Map) -> str:
        method = row.get("spec-decoding", "none")
        if method == "none":
            return ""
        if method == "draft_model":
            return "its draft model stands in a script, not in the entry"
        if self.k is None:
            return "K, its drafts a step, stands in a script, not in the entry: say it with --k"
        return self.shelf.golden_fault(self.entry["model-prefix"], self.k)

    def _axes(self, config: Map, row: Map) -> dict[str, Any]:
        concs = list(row.get("conc-list") or doubled(row["conc-start"], row["conc-end"]))
        concs = list(dict.fromkeys(concs))
        values: dict[str, Any] = {"tp": row["tp"], "pp": row.get("pp", 1)}
        values["ep"] = 1 if row.get("ep") is None else row["ep"]
        values["dp_attention"] = bool(row.get("dp-attn"))
        values["k"] = 0 if row.get("spec-decoding", "none") == "none" else self.k
        if "isl" in config:
            values["max_model_len"] = config["isl"] + config["osl"] + 256
        values |= self._offload(config, row)
        named = self.shelf.recipe_axes(self._recipe_name())
        kept = {
            kebab(name): value
            for name, value in values.items()
            if name == "tp" or name in named or value != getattr(_DEFAULTS, snake(name))
        }
        return {"conc": concs[0] if len(concs) == 1 else concs, **kept}

    def _offload(self, config: Map, row: Map) -> dict[str, Any]:
        if row.get("kv-offloading") != "dram":
            return {"kv_offload": "none"}
        node = self.masters.runners.nodes[self.entry["runner"]]
        backend = row["kv-offload-backend"]
        if "version" in backend:
            sentence = f"the version of {backend['name']}, {backend['version']}, is its image's now"
            self.native.notes.inform("not-native", sentence, backend.key_at("version"))
        return {
            "kv_offload": "dram",
            "kv_offload_backend": _BACKENDS[backend["name"]],
            "kv_offload_gb": host_gb(config["dram-utilization"], gpus_of(row), node),
        }

    def _agentic(self) -> dict[str, Any]:
        whole = self.entry["model-prefix"].startswith(_LONG_CONTEXT)
        trace = _TRACE if whole else f"{_TRACE}_256k"
        return {"trace": trace, "duration-s": DURATION_S, "warmup-requests-per-lane": 10}

    def _recipe_name(self) -> str:
        return self.shelf.recipe(self._engine, self.entry["model"], family(self.entry["runner"]))

    def _recipe(self) -> str:
        """Return the name of the entry's recipe, which is made where the project has none."""
        name = self._recipe_name()
        if not self.shelf.has_recipe(name) and name not in self.native.recipes:
            self.native.recipes[name] = {
                "framework": self._engine,
                "model": {"name": self.entry["model"], "weights": f"hf:{self.entry['model']}"},
                "hardware": [family(self.entry["runner"])],
                "chat-template": True,
            }
            sentence = f"the recipe {name} has no engine options: InferenceX has them in its script"
            self.native.notes.inform("skeleton", sentence, self.entry.key_at("model"))
        return name

    def _cluster(self) -> str:
        """Return the name of the entry's cluster, which is made where the project has none."""
        runner = self.entry["runner"]
        hardware = family(runner)
        if found := self.shelf.cluster(hardware):
            return found
        if hardware not in self.native.clusters:
            self.native.clusters[hardware] = _slurm(hardware, self._node(hardware))
            sentence = f"the cluster {hardware} has no partition, account or folders of a site"
            self.native.notes.inform("skeleton", sentence, self.entry.value_at("runner"))
        return hardware

    def _node(self, hardware: str) -> dict[str, int]:
        """Return what is known of a node: the least memory of all labels of this hardware."""
        nodes = [n for label, n in self.masters.runners.nodes.items() if family(label) == hardware]
        if not nodes:
            return {"gpus-per-node": 8}
        least = min(nodes, key=lambda node: node.dram_mib)
        return {"gpus-per-node": least.gpus, "dram-gb-per-node": least.dram_mib * 2**20 // 10**9}

    def _leave_out(self, what: str, reason: str, where: Where, rows: int) -> None:
        self.native.left_out += rows
        self.native.notes.warn("not-native", f"{what} is left out: {reason}", where)


def _stem(file: str) -> str:
    return file.rsplit("/", 1)[-1].rsplit(".", 1)[0]


def _fixed(config: Map) -> dict[str, Any]:
    """Return the workload: ten requests a lane after two of warm-up, as InferenceX's client has."""
    lengths = {"isl": config["isl"], "osl": config["osl"]}
    return {**lengths, "requests": "10*conc", "warmup-requests": "2*conc"}


def _slurm(hardware: str, node: Mapping[str, int]) -> dict[str, Any]:
    return {
        "executor": "slurm",
        "hardware": hardware,
        **node,
        "time-limits": {"job": 28800, "start": 3600, "point": 7200},
        "slurm": {"gpus": "gres", "exclusive": True},
    }
