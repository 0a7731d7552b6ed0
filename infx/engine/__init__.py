"""The inference engine: ``python -m infx.engine`` serves, `from_transformers` is for Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infx.engine.model.reference import ReferenceModel

__all__ = ["from_transformers"]


def from_transformers(hf_model: Any) -> ReferenceModel:
    """Return infx's reference model with the weights of a `minimax_m3_vl` model of transformers.

    Its ``logits(token_ids)`` are float32 [T, vocabulary]. Raises RefusalError for a model whose
    layers infx does not compute. Imports torch when it is called.
    """
    from infx.engine.weights.transformers import from_transformers as convert

    return convert(hf_model)
