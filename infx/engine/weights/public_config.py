"""config.json of a checkpoint, by the public names, to a shape and back. Imports no torch.

Both forms are read: that of the public checkpoint (``sparse_attention_config``, ``moe_layer_freq``)
and that which `transformers` writes (``layer_types``, ``index_*``, ``rope_parameters``); the text
model's fields stand at the top or inside ``text_config``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from infx.engine.refusal import RefusalError, refuse_faults
from infx.engine.shapes import ModelConfig

__all__ = ["CONFIG", "differences", "public_config", "read_shape", "shape_of"]

CONFIG = "config.json"

# Our field -> the public one.
SIZES = {
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "experts": "num_local_experts",
    "experts_per_token": "num_experts_per_tok",
    "expert_size": "intermediate_size",
    "shared_size": "shared_intermediate_size",
    "dense_size": "dense_intermediate_size",
    "vocab_size": "vocab_size",
    "max_positions": "max_position_embeddings",
}
CONSTANTS = ("rms_norm_eps", "routed_scaling_factor", "swiglu_alpha", "swiglu_limit")
# The indexer's fields: as transformers writes them -> inside sparse_attention_config.
INDEX = {
    "index_block_size": "sparse_block_size",
    "index_topk_blocks": "sparse_topk_blocks",
    "index_n_heads": "sparse_num_index_heads",
    "index_head_dim": "sparse_index_dim",
    "index_local_blocks": "sparse_local_block",
}
# What the layers compute in one way only: field -> the values that mean this way.
ONLY: dict[str, tuple[Any, ...]] = {
    "hidden_act": ("swigluoai", "silu"),
    "scoring_func": ("sigmoid",),
    "n_shared_experts": (1,),
    "use_routing_bias": (True,),
    "qk_norm_type": ("per_head",),
    "use_qk_norm": (True,),
    "use_gemma_norm": (True,),
    "attention_output_gate": (False,),
    "attention_bias": (False,),
    "tie_word_embeddings": (False,),
    "use_sparse_attention": (True,),
    "sparse_score_type": ("max",),
    "sparse_init_block": (0,),
}
USUAL_THETA = 5e6
# Numbers are computed with in float32.
LARGEST = 2.0**128
SPARSE, FULL = "minimax_m3_sparse", "full_attention"
# Fields of a shape that a public configuration does not say.
UNSAID = ("name", "aux_layers", "block_layers", "router_dtype", "simulated_ranks")


def read_shape(folder: Path, name: str = "") -> ModelConfig:
    """Return the shape that ``folder``/config.json describes, named ``name`` or as the folder.

    Raises RefusalError: ``bad-checkpoint`` without a readable file, ``unserved-config`` with
    every field that is missing or that the layers cannot compute.
    """
    path = folder / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RefusalError("bad-checkpoint", f"{path}: cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise RefusalError("bad-checkpoint", f"{path}: expected a JSON object")
    return shape_of(config, name or folder.name, where=str(path))


def shape_of(config: Mapping[str, Any], name: str, where: str = CONFIG) -> ModelConfig:
    """Return the shape of a public configuration. Raises RefusalError (``unserved-config``)."""
    text = config.get("text_config", config)
    ours = config.get("infx", {})
    if not isinstance(text, Mapping) or not isinstance(ours, Mapping):
        raise RefusalError("unserved-config", f"{where}: text_config and infx: expected objects")
    reader = _Reader(text)
    known = reader.shape()
    layers = known["num_layers"]
    known["aux_layers"] = reader.taps(ours, "aux_layers", _spread(layers))
    known["block_layers"] = reader.taps(ours, "block_layers", known["aux_layers"])
    refuse_faults("unserved-config", where, reader.faults)
    return ModelConfig(name=name, **known)


def differences(one: ModelConfig, other: ModelConfig) -> list[tuple[str, Any, Any]]:
    """Return (field, of ``one``, of ``other``) where two shapes compute differently."""
    names = [field.name for field in fields(ModelConfig) if field.name not in UNSAID]
    pairs = [(name, getattr(one, name), getattr(other, name)) for name in names]
    return [(name, a, b) for name, a, b in pairs if a != b]


def public_config(shape: ModelConfig) -> dict[str, Any]:
    """Return what config.json says of ``shape``; the drafts' taps stand under ``infx``."""
    sparse = [shape.attends_sparsely(layer) for layer in range(shape.num_layers)]
    routed = [shape.has_experts(layer) for layer in range(shape.num_layers)]
    text = {public: getattr(shape, ours) for ours, public in SIZES.items()}
    text |= {name: getattr(shape, name) for name in CONSTANTS}
    text |= {
        "model_type": "minimax_m3_vl_text",
        "hidden_act": "swigluoai",
        "rotary_dim": shape.rotary_dim,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": shape.rope_theta,
            "partial_rotary_factor": shape.rotary_dim / shape.head_dim,
        },
        "index_block_size": shape.block_size,
        "index_topk_blocks": shape.topk_blocks,
        "index_n_heads": shape.kv_heads,
        "index_head_dim": shape.head_dim,
        "index_local_blocks": 1,
        "layer_types": [SPARSE if one else FULL for one in sparse],
        "mlp_layer_types": ["sparse" if one else "dense" for one in routed],
        "tie_word_embeddings": False,
    }
    taps = {"aux_layers": shape.aux_layers, "block_layers": shape.block_layers}
    return {"model_type": "minimax_m3_vl", "text_config": text, "infx": taps}


def _spread(layers: int) -> tuple[int, ...]:
    """Return the customary taps of EAGLE3: early, middle, late (public drafts of 60 layers)."""
    return tuple(sorted((min(2, layers - 1), layers // 2, max(layers - 3, 0))))


class _Reader:
    """Reads fields of a text configuration and keeps every fault. A faulty size reads as 1."""

    def __init__(self, text: Mapping[str, Any]) -> None:
        self.faults: list[str] = []
        self._text = text
        self._nested = self._object("sparse_attention_config")
        self._rope = self._object("rope_parameters") or self._object("rope_scaling")

    def shape(self) -> dict[str, Any]:
        """Return the fields of a shape, taps left out."""
        known: dict[str, Any] = {ours: self._size(name) for ours, name in SIZES.items()}
        known |= {name: self._number(name, self._text.get(name)) for name in CONSTANTS}
        known = {name: value for name, value in known.items() if value is not None}
        known["rope_theta"] = self._theta()
        known["rotary_dim"] = self._rotary(known["head_dim"])
        index = {name: self._size(name, also) for name, also in INDEX.items()}
        known["block_size"] = index["index_block_size"]
        known["topk_blocks"] = index["index_topk_blocks"]
        self._only_index(index, known)
        layers = known["num_layers"]
        known["full_layers"] = self._leading(
            layers, "layer_types", (FULL, SPARSE), "sparse_attention_freq"
        )
        known["dense_layers"] = self._leading(
            layers, "mlp_layer_types", ("dense", "sparse"), "moe_layer_freq"
        )
        self._only()
        return known

    def taps(self, ours: Mapping[str, Any], name: str, usual: tuple[int, ...]) -> tuple[int, ...]:
        """Return the layers of ``infx.NAME``, or the ``usual`` ones when it does not say."""
        given = ours.get(name, list(usual))
        if isinstance(given, list | tuple) and all(_whole(one) for one in given):
            return tuple(given)
        self.faults.append(f"infx.{name} {_short(given)}: expected a list of layers")
        return usual

    def _object(self, name: str) -> Mapping[str, Any]:
        """Return the fields of an object, none where it is not said."""
        value = self._text.get(name)
        if value is None or isinstance(value, Mapping):
            return value or {}
        self.faults.append(f"{name} {_short(value)}: expected an object")
        return {}

    def _find(self, *names: str) -> Any:
        """Return the value of the first name that the text or its nested part has, or None."""
        for name in names:
            for place in (self._text, self._nested):
                if place.get(name) is not None:
                    return place[name]
        return None

    def _size(self, *names: str) -> int:
        value = self._find(*names)
        if _whole(value) and value >= 1:
            return int(value)
        told = "is missing" if value is None else f"{_short(value)}: expected a whole number >= 1"
        self.faults.append(f"{names[0]} {told}")
        return 1

    def _number(self, name: str, value: Any) -> float | None:
        """Return a number; None where it is not said, and the shape's default holds."""
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST:
            return float(value)
        self.faults.append(f"{name} {_short(value)}: expected a number, finite in float32")
        return None

    def _theta(self) -> float:
        kind = self._rope.get("rope_type", self._rope.get("type", "default"))
        if kind != "default":
            self.faults.append(f"rope_type {_short(kind)}: expected default")
        given = self._rope.get("rope_theta", self._text.get("rope_theta"))
        theta = self._number("rope_theta", given)
        return USUAL_THETA if theta is None else theta

    def _rotary(self, head_dim: int) -> int:
        """Return the turned dimensions: as transformers counts them, or ``rotary_dim``.

        transformers reads the partial factor alone: 1 where rope_parameters does not say it.
        """
        whole = 1.0 if self._rope else None
        factor = self._rope.get("partial_rotary_factor", self._text.get("partial_rotary_factor"))
        factor = self._number("partial_rotary_factor", whole if factor is None else factor)
        return self._size("rotary_dim") if factor is None else int(head_dim * factor)

    def _leading(self, layers: int, name: str, kinds: tuple[str, str], freq: str) -> int:
        """Return how many first layers are of the first of two kinds; the others of the second."""
        listed, marks = self._text.get(name), self._find(freq)
        if listed is None and isinstance(marks, list):
            listed = [kinds[1] if mark else kinds[0] for mark in marks]
        if not isinstance(listed, list) or len(listed) != layers or not set(listed) <= set(kinds):
            told = "is missing" if listed is None else f"{_short(listed)}"
            self.faults.append(f"{name} {told}: expected {layers} of {' or '.join(kinds)}")
            return 0
        first = listed.index(kinds[1]) if kinds[1] in listed else layers
        for layer in range(first, layers):
            if listed[layer] != kinds[1]:
                self.faults.append(
                    f"{name}: layer {first} is {kinds[1]} and layer {layer} {kinds[0]}: expected"
                    f" {kinds[0]} in the first layers only"
                )
                break
        return first

    def _only_index(self, index: Mapping[str, int], known: Mapping[str, Any]) -> None:
        expected = {
            "index_n_heads": ("num_key_value_heads", known["kv_heads"]),
            "index_head_dim": ("head_dim", known["head_dim"]),
            "index_local_blocks": ("one local block", 1),
        }
        for name, (what, value) in expected.items():
            if index[name] != value:
                self.faults.append(f"{name} {index[name]}: expected {value}, as {what}")

    def _only(self) -> None:
        for name, values in ONLY.items():
            value = self._find(name)
            if value is not None and value not in values:
                told = " or ".join(str(one) for one in values)
                self.faults.append(f"{name} {_short(value)}: expected {told}")
        kind = self._text.get("model_type", "minimax_m3")
        if not str(kind).startswith("minimax_m3"):
            self.faults.append(f"model_type {_short(kind)}: expected minimax_m3_vl_text")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _short(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"of {len(value)} entries"
    return json.dumps(value, default=str)[:40]
