"""Checkpoints: a folder of config.json and safetensors files with the public names.

Read: float32, bfloat16 and float16 tensors; MXFP4 experts (``weight`` uint8 [out, in/2], low nibble
first, beside ``weight_scale`` uint8 e8m0 [out, in/32]); FP8 projections (``weight`` e4m3 beside
``weight_scale`` float32 [out, 1]). Drafts lie beside the target under infx's own names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from infx.engine.quant import GROUP, fp8_quantise, mxfp4_pack, mxfp4_unpack
from infx.engine.refusal import refuse_faults
from infx.engine.shapes import ModelConfig
from infx.engine.weights.files import WHOLE, Stored, opened
from infx.engine.weights.names import Entry, Part, Spelling, join, plain_name, split, weight_map
from infx.engine.weights.public_config import CONFIG, public_config
from infx.engine.weights.rounding import check_groups
from infx.engine.weights.tensors import draft_sizes

__all__ = ["read_draft", "read_target", "save_draft", "save_target"]

FLOATS = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
# These stay float32 on disk: a choice of experts changes with their last bits.
KEPT_WHOLE = (".gate.weight", ".e_score_correction_bias")
WRAPPER = "language_model."

Found = dict[str, Stored]


def read_target(folder: Path, shape: ModelConfig) -> dict[str, Tensor]:
    """Return the target's float32 tensors by infx's names, [in, out].

    Raises RefusalError (``bad-checkpoint``) that lists every tensor that is missing, extra, of
    another size or type, or not finite.
    """
    with opened(folder) as stored:
        faults: list[str] = []
        found = _by_plain_name(stored, faults)
        entries = weight_map(shape, _spelling(found))
        parts = [part for entry in entries.values() for part in entry.parts]
        if any(part.name in found and _packing(part, found) == "mxfp4" for part in parts):
            check_groups(shape)
        faults += _faults_of_parts(parts, found)
        refuse_faults("bad-checkpoint", str(folder), faults)
        weights = {}
        for name, entry in entries.items():
            weights[name] = _read_entry(entry, found, faults)
        refuse_faults("bad-checkpoint", str(folder), faults)
        return weights


def read_draft(folder: Path, shape: ModelConfig, method: str) -> dict[str, Tensor]:
    """Return a draft's float32 tensors from ``METHOD.safetensors``. Raises RefusalError."""
    name = f"{method}.safetensors"
    sizes = draft_sizes(shape, method)
    with opened(folder, name) as stored:
        faults = [_fault(Part(own, size), stored) for own, size in sizes.items()]
        faults += [_extra(own) for own in stored if own not in sizes]
        refuse_faults("bad-checkpoint", str(folder / name), [one for one in faults if one])
        weights = {own: _copied(stored[own].read()) for own in sizes}
    faults = [_not_finite(own) for own, tensor in weights.items() if not tensor.isfinite().all()]
    refuse_faults("bad-checkpoint", str(folder / name), faults)
    return weights


def save_target(
    folder: Path,
    shape: ModelConfig,
    weights: Mapping[str, Tensor],
    experts: str = "mxfp4",
    projections: str = "bf16",
    others: str = "bf16",
) -> None:
    """Write config.json and model.safetensors with the public checkpoint's names.

    ``experts`` are "mxfp4", "bf16" or "fp32", ``projections`` (attention, dense MLP) "fp8",
    "bf16" or "fp32", ``others`` "bf16" or "fp32"; router weights and bias are float32.
    """
    if experts == "mxfp4":
        check_groups(shape)
    forms = {"expert": experts, "projection": projections, "": others}
    tensors: dict[str, Tensor] = {}
    for name, entry in weight_map(shape, "checkpoint").items():
        for part, tensor in zip(entry.parts, split(entry, weights[name]), strict=True):
            tensors |= _written(part, tensor, forms[part.role])
    folder.mkdir(parents=True, exist_ok=True)
    _save(folder / WHOLE, {WRAPPER + name: tensor for name, tensor in tensors.items()})
    text = json.dumps(public_config(shape), indent=2) + "\n"
    (folder / CONFIG).write_text(text, encoding="utf-8")


def save_draft(
    folder: Path, shape: ModelConfig, method: str, weights: Mapping[str, Tensor]
) -> None:
    """Write a draft's tensors as bfloat16 into ``METHOD.safetensors`` of ``folder``."""
    names = draft_sizes(shape, method)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: weights[name].bfloat16().contiguous() for name in names}
    _save(folder / f"{method}.safetensors", tensors)


def _by_plain_name(stored: Mapping[str, Stored], faults: list[str]) -> Found:
    found: Found = {}
    for name, tensor in stored.items():
        plain = plain_name(name)
        if plain in found:
            faults.append(f"{name}: the same tensor as {found[plain].name}; expected one of them")
        elif plain is not None:
            found[plain] = tensor
    return found


def _spelling(found: Found) -> Spelling:
    return "modules" if any("gate_up_proj" in name for name in found) else "checkpoint"


def _faults_of_parts(parts: Iterable[Part], found: Found) -> list[str]:
    faults, expected = [], set()
    for part in parts:
        expected.add(part.name)
        if part.name in found and _packing(part, found):
            expected.add(_scale_name(part.name))
            faults += _packed_faults(part, found)
        else:
            faults.append(_fault(part, found))
    faults += [_extra(found[name].name) for name in found if name not in expected]
    return [fault for fault in faults if fault]


def _fault(part: Part, found: Mapping[str, Stored]) -> str:
    """Return what is wrong with a tensor that is not packed, "" if nothing."""
    stored, expected = found.get(part.name), f"{' or '.join(FLOATS)} {list(part.size)}"
    if stored is None:
        return f"{part.name} is missing: expected {expected}"
    good = stored.size == part.size and stored.dtype in FLOATS
    return "" if good else f"{stored.name} is {stored}: expected {expected}"


def _extra(name: str) -> str:
    return f"{name} is extra: the configuration has no such tensor"


def _not_finite(name: str) -> str:
    return f"{name} holds NaN or infinity: expected finite numbers"


def _scale_name(name: str) -> str:
    return f"{name}_scale"


def _packing(part: Part, found: Found) -> str:
    """Return how a part is packed: as MXFP4, as FP8, or "" as it is."""
    dtype = found[part.name].dtype
    if part.role == "expert" and dtype == "U8":
        return "mxfp4"
    return "fp8" if part.role == "projection" and dtype == "F8_E4M3" else ""


def _packed_faults(part: Part, found: Found) -> list[str]:
    out, inner = part.size
    if _packing(part, found) == "mxfp4":
        weight, scale = ("U8", (out, inner // 2)), ("U8", (out, inner // GROUP))
    else:
        weight, scale = ("F8_E4M3", (out, inner)), ("F32", (out, 1))
    faults = []
    for name, (dtype, size) in ((part.name, weight), (_scale_name(part.name), scale)):
        stored = found.get(name)
        if stored is None:
            faults.append(f"{name} is missing: expected {dtype} {list(size)}")
        elif (stored.dtype, stored.size) != (dtype, size):
            faults.append(f"{stored.name} is {stored}: expected {dtype} {list(size)}")
    return faults


def _read_entry(entry: Entry, found: Found, faults: list[str]) -> Tensor:
    tensors = []
    for part in entry.parts:
        tensor = _read_part(part, found)
        if not tensor.isfinite().all():
            faults.append(_not_finite(found[part.name].name))
        tensors.append(tensor)
    return join(entry, tensors)


def _read_part(part: Part, found: Found) -> Tensor:
    tensor, packing = found[part.name].read(), _packing(part, found)
    if not packing:
        return _copied(tensor)
    scale = found[_scale_name(part.name)].read()
    return mxfp4_unpack(tensor, scale) if packing == "mxfp4" else tensor.float() * scale


def _copied(tensor: Tensor) -> Tensor:
    """Return float32 numbers of our own: what is read stands in the mapped file, whoever edits it.

    A view of it would keep the whole file in memory, and die with it when it is cut short.
    """
    return tensor.to(torch.float32, copy=True)


def _written(part: Part, tensor: Tensor, form: str) -> dict[str, Tensor]:
    if part.name.endswith(KEPT_WHOLE):
        return {part.name: tensor.float()}
    if form in DTYPES:
        return {part.name: tensor.to(DTYPES[form])}
    data, scale = mxfp4_pack(tensor) if form == "mxfp4" else fp8_quantise(tensor, -1)
    return {part.name: data, _scale_name(part.name): scale}


def _save(path: Path, tensors: Mapping[str, Tensor]) -> None:
    from safetensors.torch import save_file

    save_file(dict(tensors), path, metadata={"format": "pt"})
