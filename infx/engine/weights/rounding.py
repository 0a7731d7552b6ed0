"""Experts as MXFP4 holds them, computed with in float32."""

from __future__ import annotations

from torch import Tensor

from infx.engine.quant import GROUP, mxfp4_round
from infx.engine.refusal import refuse_faults
from infx.engine.shapes import ModelConfig

__all__ = ["check_groups", "round_experts"]

EXPERTS = ("experts_up", "experts_down")


def check_groups(shape: ModelConfig) -> None:
    """Raise RefusalError (``unserved-config``) unless experts' inputs are whole groups of MXFP4."""
    inputs = {"hidden_size": shape.hidden_size, "expert_size": shape.expert_size}
    faults = [
        f"{name} {size}: expected a multiple of {GROUP} for MXFP4 experts"
        for name, size in inputs.items()
        if size % GROUP
    ]
    refuse_faults("unserved-config", shape.name, faults)


def round_experts(weights: dict[str, Tensor], shape: ModelConfig) -> None:
    """Round experts' matrices [experts, in, out], in place, to MXFP4's values, groups along in."""
    check_groups(shape)
    for name, matrices in weights.items():
        # One by one: packing takes ten times the bytes of what it packs.
        for matrix in matrices if name.endswith(EXPERTS) else ():
            matrix.copy_(mxfp4_round(matrix.T).T)
