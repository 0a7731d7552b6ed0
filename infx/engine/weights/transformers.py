"""A model of transformers as infx's reference model."""

from __future__ import annotations

from typing import Any

from infx.engine.model.reference import ReferenceModel
from infx.engine.refusal import RefusalError, refuse_faults
from infx.engine.weights.names import join, plain_name, weight_map
from infx.engine.weights.public_config import shape_of

__all__ = ["from_transformers"]


def from_transformers(hf_model: Any) -> ReferenceModel:
    """Return the reference model with copies of ``hf_model``'s weights, float32 on the CPU.

    ``hf_model`` is a causal language model of `minimax_m3_vl`, the text model alone or with vision,
    of which only the text part is taken. Raises RefusalError: ``unserved-config`` for layers that
    infx does not compute, ``bad-checkpoint`` for tensors that are missing, extra or misshapen.
    """
    name = type(hf_model).__name__
    if not hasattr(hf_model, "config"):
        raise RefusalError(
            "unserved-config",
            f"{name} has no config: expected a model of transformers, of minimax_m3_vl",
        )
    shape = shape_of(hf_model.config.get_text_config().to_dict(), name, where=f"{name}.config")
    theirs = {plain_name(own): tensor for own, tensor in hf_model.state_dict().items()}
    theirs.pop(None, None)
    entries = weight_map(shape, "modules")
    sizes = {part.name: part.size for entry in entries.values() for part in entry.parts}
    faults = [
        f"{own} is {_size(theirs.get(own))}: expected {list(size)}"
        for own, size in sizes.items()
        if own not in theirs or tuple(theirs[own].shape) != size
    ]
    faults += [f"{own} is extra" for own in theirs if own not in sizes]
    refuse_faults("bad-checkpoint", name, faults)
    weights = {
        ours: join(
            entry, [theirs[part.name].detach().cpu().float().clone() for part in entry.parts]
        )
        for ours, entry in entries.items()
    }
    return ReferenceModel(shape, weights)


def _size(tensor: Any) -> str:
    return "missing" if tensor is None else str(list(tensor.shape))
