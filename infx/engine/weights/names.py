"""The weight map: infx's tensors and the public ones they are made of.

Public tensors are [out, in]. Two spellings are known: that of the public checkpoint (one matrix for
each gate, up and expert) and that of transformers' modules (gate and up fused, experts stacked).
Names stand here as the text model alone has them: ``model.layers.0…``, ``lm_head.weight``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from infx.engine.shapes import ModelConfig
from infx.engine.weights.tensors import normed_heads

__all__ = ["Entry", "Part", "Spelling", "join", "plain_name", "split", "weight_map"]

Spelling = Literal["checkpoint", "modules"]
Kind = Literal["plain", "matrix", "head-norms", "experts", "stacked"]

# What wraps the text model's names: in the public checkpoint, in transformers' whole model.
WRAPPERS = (
    ("model.language_model.", "model."),
    ("language_model.model.", "model."),
    ("language_model.lm_head.", "lm_head."),
)
# Other parts of the public model (vision, multi-token prediction), which are not served.
FOREIGN = re.compile(
    r"(^|\.)(vision_tower|multi_modal_projector|patch_merge_mlp|mtp)\.|\.rotary_emb\.inv_freq$"
)


@dataclass(frozen=True, slots=True)
class Part:
    """A public tensor.

    ``role`` says which packed forms it may have: FP8 for a projection, MXFP4 for an expert.
    ``count`` heads share a norm; as many matrices of an expert make one of infx's.
    """

    name: str
    size: tuple[int, ...]
    role: Literal["", "projection", "expert"] = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One of infx's tensors: how its public ``parts`` are put together."""

    kind: Kind
    parts: tuple[Part, ...]


def plain_name(name: str) -> str | None:
    """Return a public tensor's name as the text model alone has it; None for other parts."""
    if FOREIGN.search(name):
        return None
    for wrapper, inside in WRAPPERS:
        if name.startswith(wrapper):
            return inside + name.removeprefix(wrapper)
    return name


def weight_map(shape: ModelConfig, spelling: Spelling) -> dict[str, Entry]:
    """Return infx's name -> entry for every tensor of the target."""
    vocabulary, hidden = shape.vocab_size, shape.hidden_size
    entries = {
        "embed": _plain("model.embed_tokens.weight", vocabulary, hidden),
        "norm": _plain("model.norm.weight", hidden),
        "head": Entry("matrix", (Part("lm_head.weight", (vocabulary, hidden)),)),
    }
    for layer in range(shape.num_layers):
        own = _attention(shape, layer, spelling) | _mlp(shape, layer, spelling)
        entries |= {f"layers.{layer}.{name}": entry for name, entry in own.items()}
    return entries


def join(entry: Entry, tensors: Sequence[Tensor]) -> Tensor:
    """Return infx's tensor of the public ``tensors``, in the order of the entry's parts."""
    match entry.kind:
        case "plain":
            joined = tensors[0]
        case "matrix":
            joined = torch.cat(list(tensors)).T
        case "head-norms":
            counts = [part.count for part in entry.parts]
            pairs = zip(tensors, counts, strict=True)
            joined = torch.cat([norm.expand(count, -1) for norm, count in pairs])
        case "experts":
            rows, columns = entry.parts[0].size
            rows *= entry.parts[0].count
            joined = torch.stack(list(tensors)).view(-1, rows, columns).transpose(1, 2)
        case "stacked":
            joined = tensors[0].transpose(1, 2)
    return joined.contiguous()


def split(entry: Entry, tensor: Tensor) -> list[Tensor]:
    """Return the public tensors of one of infx's, in the order of the entry's parts.

    Raises ValueError when heads of one kind have different norms: the public form has one a kind.
    """
    match entry.kind:
        case "plain":
            parts = [tensor]
        case "matrix":
            parts = list(torch.split(tensor.T, [part.size[0] for part in entry.parts]))
        case "head-norms":
            kinds = torch.split(tensor, [part.count for part in entry.parts])
            if not all(torch.equal(kind, kind[:1].expand_as(kind)) for kind in kinds):
                raise ValueError(f"{entry.parts[0].name}: heads of one kind have different norms")
            parts = [kind[0] for kind in kinds]
        case "experts":
            parts = list(tensor.transpose(1, 2).reshape(-1, *entry.parts[0].size))
        case "stacked":
            parts = [tensor.transpose(1, 2)]
    return [part.contiguous() for part in parts]


def _plain(name: str, *size: int) -> Entry:
    return Entry("plain", (Part(name, size),))


def _attention(shape: ModelConfig, layer: int, spelling: Spelling) -> dict[str, Entry]:
    at, hidden, dim = f"model.layers.{layer}.", shape.hidden_size, shape.head_dim
    heads = normed_heads(shape, layer)
    # The indexer's tensors: index_q_proj in the checkpoint, indexer.q_proj in transformers.
    spelt = {kind: _head_name(kind, spelling) for kind in heads}
    projections = [
        Part(f"{at}self_attn.{name}_proj.weight", (count * dim, hidden), "projection")
        for name, count in [*((spelt[k], n) for k, n in heads.items()), ("v", shape.kv_heads)]
    ]
    norms = [
        Part(f"{at}self_attn.{spelt[kind]}_norm.weight", (dim,), count=count)
        for kind, count in heads.items()
    ]
    out = Part(f"{at}self_attn.o_proj.weight", (hidden, shape.heads * dim), "projection")
    return {
        "attention_norm": _plain(f"{at}input_layernorm.weight", hidden),
        "mlp_norm": _plain(f"{at}post_attention_layernorm.weight", hidden),
        "qkv": Entry("matrix", tuple(projections)),
        "head_norm": Entry("head-norms", tuple(norms)),
        "o": Entry("matrix", (out,)),
    }


def _head_name(kind: str, spelling: Spelling) -> str:
    return kind.replace("index_", "indexer.") if spelling == "modules" else kind


def _mlp(shape: ModelConfig, layer: int, spelling: Spelling) -> dict[str, Entry]:
    at = f"model.layers.{layer}."
    if not shape.has_experts(layer):
        return _gated(f"{at}mlp.", shape.hidden_size, shape.dense_size, spelling, "projection")
    at += "block_sparse_moe." if spelling == "checkpoint" else "mlp."
    bias = "e_score_correction_bias" if spelling == "checkpoint" else "gate.e_score_correction_bias"
    gate = Part(f"{at}gate.weight", (shape.experts, shape.hidden_size))
    experts = _listed if spelling == "checkpoint" else _stacked
    return {
        **_gated(f"{at}shared_experts.", shape.hidden_size, shape.shared_size, spelling, ""),
        "router": Entry("matrix", (gate,)),
        "router_bias": _plain(at + bias, shape.experts),
        **experts(f"{at}experts.", shape),
    }


def _gated(
    at: str, hidden: int, size: int, spelling: Spelling, role: Literal["", "projection"]
) -> dict[str, Entry]:
    names = ("gate_proj", "up_proj") if spelling == "checkpoint" else ("gate_up_proj",)
    rows = 2 * size // len(names)
    up = tuple(Part(f"{at}{name}.weight", (rows, hidden), role) for name in names)
    down = Part(f"{at}down_proj.weight", (hidden, size), role)
    return {"up": Entry("matrix", up), "down": Entry("matrix", (down,))}


def _listed(at: str, shape: ModelConfig) -> dict[str, Entry]:
    """Experts one by one: w1 is gate, w3 up, w2 down."""
    wide, back = (shape.expert_size, shape.hidden_size), (shape.hidden_size, shape.expert_size)
    numbers = range(shape.experts)
    up = [Part(f"{at}{e}.{w}.weight", wide, "expert", 2) for e in numbers for w in ("w1", "w3")]
    down = [Part(f"{at}{e}.w2.weight", back, "expert") for e in numbers]
    return {
        "experts_up": Entry("experts", tuple(up)),
        "experts_down": Entry("experts", tuple(down)),
    }


def _stacked(at: str, shape: ModelConfig) -> dict[str, Entry]:
    experts, hidden, size = shape.experts, shape.hidden_size, shape.expert_size
    up = Part(f"{at}gate_up_proj", (experts, 2 * size, hidden))
    down = Part(f"{at}down_proj", (experts, hidden, size))
    return {"experts_up": Entry("stacked", (up,)), "experts_down": Entry("stacked", (down,))}
