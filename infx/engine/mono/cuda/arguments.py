"""`LayerArgs` of kernels/args.cuh as a ctypes structure: the same fields in the same order."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["FIELDS", "NUMBERS", "LayerArgs", "args_of", "layer_args"]

FIELDS = (
    "batch_ids",
    "positions",
    "slots",
    "pages",
    "rotary",
    "stream_in",
    "stream_out",
    "attention_norm",
    "mlp_norm",
    "head_norm",
    "qkv",
    "qkv_scale",
    "o",
    "o_scale",
    "router",
    "router_bias",
    "up",
    "down",
    "keys",
    "values",
    "index_keys",
    "key_scales",
    "value_scales",
    "qkv_sums",
    "qkv_squares",
    "queries",
    "scores",
    "chosen",
    "partials",
    "merged",
    "mid",
    "mid_normed",
    "mid_squares",
    "logit_sums",
    "mids",
    "routing",
    "deal",
    "barrier",
    "give_up",
    "page_stride",
    "index_scales",
    "merge_counts",
    "trace",
    "attended",
    "attended_back",
    "up_scale",
    "down_scale",
    "mid_exponents",
)
NUMBERS = frozenset({"page_stride"})  # All others are addresses.


class LayerArgs(ctypes.Structure):
    """What a kernel gets by value."""

    _fields_ = [(name, ctypes.c_int if name in NUMBERS else ctypes.c_void_p) for name in FIELDS]


def layer_args(values: Mapping[str, int]) -> LayerArgs:
    """Return the structure of addresses and numbers by name; what is not named is 0.

    Raises KeyError for a name that is no field.
    """
    if unknown := sorted(values.keys() - set(FIELDS)):
        raise KeyError(f"fields {unknown}: LayerArgs has {', '.join(FIELDS)}")
    return LayerArgs(**values)


def args_of(tensors: Mapping[str, Tensor]) -> LayerArgs:
    """Return the structure over tensors by field; ``pages`` [rows, n] must be among them.

    Whoever launches keeps the tensors. Raises KeyError for a name that is no field.
    """
    addresses = {name: tensor.data_ptr() for name, tensor in tensors.items()}
    return layer_args(addresses | {"page_stride": tensors["pages"].stride(0)})
