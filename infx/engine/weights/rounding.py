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
    """Replace experts' matrices [experts, in, out] by their values in MXFP4, groups along in."""
    check_groups(shape)
    for name, matrices in weights.items():
        if name.endswith(EXPERTS):
            weights[name] = mxfp4_round(matrices.transpose(1, 2)).transpose(1, 2).contiguous()
