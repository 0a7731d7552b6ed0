"""Drafts as their checkpoints ship them and as servers say that they run them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from infx.domain.record import PointRecord
from infx.review.bundle import Draft, DraftLayer

__all__ = ["UNKNOWN", "Checkpoint", "agreed", "draft_of", "drafting"]

UNKNOWN = "unknown"
"""The stored type of a draft whose files do not tell it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A draft's files: ``tensors`` maps each tensor to its stored type in the words of safetensors,
    ``config`` is config.json, ``where`` the folder."""

    tensors: Mapping[str, str]
    config: Mapping[str, Any]
    where: str


def drafting(records: Iterable[PointRecord]) -> dict[str, list[PointRecord]]:
    """Return the records whose servers draft, by what a bundle calls the draft."""
    found: dict[str, list[PointRecord]] = {}
    for record in records:
        arm = record.point.arm
        if arm.axes.k:
            found.setdefault(arm.draft or arm.model.name, []).append(record)
    return found


def draft_of(model: str, kept: Checkpoint, records: Sequence[PointRecord]) -> Draft:
    """Return a draft as its checkpoint holds it and as the servers of ``records`` say that they run
    it. Layers are told only where every server names one type and nothing is quantized: what runs
    then is known."""
    quantization = _quantization(kept.config)
    effective = _told_type(records)
    stored = _layers(kept.tensors)
    types = sorted(set(stored.values())) or [_WORDS.get(_said_type(kept.config), UNKNOWN)]
    layers = tuple(
        DraftLayer(name=name, stored=held, effective=effective)
        for name, held in stored.items()
        if effective and not quantization
    )
    where = kept.where
    return Draft(
        model=model, stored=", ".join(types), quantization=quantization, layers=layers, where=where
    )


def agreed(given: Draft | None, found: Draft) -> Draft:
    """Return a draft with what its checkpoint holds as ``found``, and of what somebody has
    ``given`` the layers where files and servers do not tell them."""
    if given is None or found.layers:
        return found
    return replace(found if found.stored != UNKNOWN else given, layers=given.layers)


def _layers(tensors: Mapping[str, str]) -> dict[str, str]:
    """Return the stored types by layer, in the order of the file: a module without its parameter's
    name; of the numbers of blocks none is left out."""
    found: dict[str, set[str]] = {}
    for name, kind in tensors.items():
        layer = name.removesuffix(".weight").removesuffix(".bias")
        found.setdefault(layer, set()).add(_WORDS.get(kind.lower(), kind.lower()))
    return {name: "/".join(sorted(kinds)) for name, kinds in found.items()}


def _said_type(config: Mapping[str, Any]) -> str:
    return str(config.get("torch_dtype") or config.get("dtype") or "").lower()


def _quantization(config: Mapping[str, Any]) -> str:
    said = config.get("quantization_config") or config.get("compression_config")
    method = said.get("quant_method") if isinstance(said, dict) else said
    return str(method or "quantized in a way that config.json does not name") if said else ""


def _told_type(records: Sequence[PointRecord]) -> str:
    """Return the type that every server says its draft runs in, "" where one does not say."""
    told = {_server_type(record) for record in records}
    return told.pop() if len(told) == 1 else ""


def _server_type(record: PointRecord) -> str:
    """Of infx's engine ``dtype`` is that of all weights but the experts, which no draft has; other
    engines say with it how the target computes."""
    server = record.provenance.server
    own = server.get("dtype") if record.point.arm.framework == "infx" else ""
    said = str(server.get("draft_dtype") or own or "").lower()
    return _WORDS.get(said.removeprefix("torch."), "")


_WORDS = {
    **dict.fromkeys(("f32", "fp32", "float32"), "fp32"),
    **dict.fromkeys(("f16", "fp16", "float16", "half"), "fp16"),
    **dict.fromkeys(("bf16", "bfloat16"), "bf16"),
    **dict.fromkeys(("f8_e4m3", "f8_e5m2", "fp8", "float8_e4m3fn"), "fp8"),
    "i8": "int8",
}
"""Types as a bundle says them; what is not here is told in the file's own word."""
