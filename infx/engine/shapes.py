"""The shapes of the MiniMax-M3 family, by configuration."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MODELS", "MOST_DRAFTS", "ModelConfig", "m3", "mini"]

MOST_DRAFTS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Shapes and constants of a MiniMax-M3 model, by the names of its public configuration.

    The first ``dense_layers`` layers have full attention and a dense MLP, the others block-sparse
    attention and experts. There is one index head for each kv head, of ``head_dim`` dimensions.
    ``block_size`` is the unit of block selection and of the cache's pages (tokens). ``aux_layers``
    are the layers whose output the EAGLE3 draft sees.
    """

    name: str
    hidden_size: int
    num_layers: int
    dense_layers: int
    heads: int
    kv_heads: int
    head_dim: int
    rotary_dim: int
    block_size: int
    topk_blocks: int
    experts: int
    experts_per_token: int
    expert_size: int
    shared_size: int
    dense_size: int
    vocab_size: int
    max_positions: int
    aux_layers: tuple[int, int, int]
    rope_theta: float = 5e6
    rms_norm_eps: float = 1e-6
    routed_scaling_factor: float = 2.0
    swiglu_alpha: float = 1.702
    swiglu_limit: float = 7.0

    def __post_init__(self) -> None:
        whole = self.heads % self.kv_heads == 0 and self.rotary_dim % 2 == 0
        fits = self.rotary_dim <= self.head_dim
        tapped = sorted(set(self.aux_layers))
        aux = len(tapped) == 3 and tapped[0] >= 0 and tapped[-1] < self.num_layers
        if not (whole and fits and aux):
            raise ValueError(f"the shapes of {self.name} do not fit each other: {self}")

    @property
    def farthest(self) -> int:
        """Positions that rotary tables cover: drafts of a last step write past the context."""
        return self.max_positions + 2 * MOST_DRAFTS + 1


def mini(**changes: int | tuple[int, int, int]) -> ModelConfig:
    """Return the small shape for CPUs (4.8 M parameters, 2 M a token), with any field changed."""
    shape: dict[str, object] = {
        "name": "mini",
        "hidden_size": 192,
        "num_layers": 5,
        "dense_layers": 1,
        "heads": 8,
        "kv_heads": 2,
        "head_dim": 32,
        "rotary_dim": 16,
        "block_size": 16,
        "topk_blocks": 4,
        "experts": 16,
        "experts_per_token": 4,
        "expert_size": 96,
        "shared_size": 96,
        "dense_size": 384,
        "vocab_size": 320,
        "max_positions": 8192,
        "aux_layers": (0, 2, 4),
    }
    return ModelConfig(**(shape | changes))  # type: ignore[arg-type]


def m3() -> ModelConfig:
    """Return MiniMax-M3's true shape (public text configuration); data only, not served here."""
    return ModelConfig(
        name="m3",
        hidden_size=6144,
        num_layers=60,
        dense_layers=3,
        heads=64,
        kv_heads=4,
        head_dim=128,
        rotary_dim=64,
        block_size=128,
        topk_blocks=16,
        experts=128,
        experts_per_token=4,
        expert_size=3072,
        shared_size=3072,
        dense_size=12288,
        vocab_size=200064,
        max_positions=524288,
        aux_layers=(2, 30, 57),
    )


MODELS = {"mini": mini, "m3": m3}
