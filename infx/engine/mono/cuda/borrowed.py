"""What is wrong with weights and caches that a host hands in: sizes, types, places, strides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from infx.engine.mono.cuda.pack import field_sizes
from infx.engine.mono.cuda.setting import KINDS
from infx.engine.mono.refusal import Refusal
from infx.engine.mono.shape import Caches, LayerShape

if TYPE_CHECKING:
    from torch import Tensor

    from infx.engine.cache import KvCache

__all__ = ["cache_faults", "cache_fields", "weight_faults"]

ALIGNMENT = 16  # of bulk copies and of the widest loads


def weight_faults(
    number: int, weights: Mapping[str, Any], shape: LayerShape, device: str
) -> Iterator[Refusal]:
    """Yield what kernels could not read of a sparse layer's weights (`pack.packed_layer`)."""
    for name, (size, dtype) in field_sizes(shape).items():
        what, tensor = f"{name} of layer {number}", weights.get(name)
        if tensor is None:
            yield Refusal("mono-weights", f"{what} is missing: expected {dtype} {list(size)}")
            continue
        if tuple(tensor.shape) != size or tensor.dtype != dtype:
            yield Refusal(
                "mono-weights",
                f"{what} is {tensor.dtype} {list(tensor.shape)}: expected {dtype} {list(size)}, as"
                " pack.packed_layer returns",
            )
        yield from _place_faults(what, tensor, device)


def _place_faults(what: str, tensor: Tensor, device: str) -> Iterator[Refusal]:
    if str(tensor.device) != device:
        yield Refusal("mono-residency", f"{what} lies on {tensor.device}: expected {device}")
    if not tensor.is_contiguous():
        strides = tensor.stride()
        yield Refusal("mono-strides", f"{what} has strides {strides}: expected contiguous")
    if tensor.data_ptr() % ALIGNMENT:
        yield Refusal(
            "mono-alignment",
            f"{what} begins at {tensor.data_ptr():#x}: expected a multiple of {ALIGNMENT} bytes",
        )


def cache_faults(number: int, cache: KvCache, shape: LayerShape, device: str) -> Iterator[Refusal]:
    """Yield what kernels could not read of a sparse layer's part of ``cache``.

    infx's pages are the kernels': of one kv head, keys [page, token, ...] in front of values, each
    with its scales apart; index keys likewise. Nothing is converted.
    """
    kinds = cache.kinds
    if not {kinds.kv, kinds.index} <= set(KINDS) or cache.block != shape.block:
        yield Refusal(
            "mono-cache",
            f"the cache keeps {kinds.kv} keys and {kinds.index} index keys in pages of"
            f" {cache.block} tokens: expected {', '.join(KINDS)} in pages of {shape.block}",
        )
        return
    kv, index = _parts(cache, number)
    a_vector, an_index_key = Caches(kinds.kv, kinds.index).token_bytes(shape.head_dim)
    wanted = (2 * cache.slots * shape.kv_heads * a_vector, cache.slots * an_index_key)
    found = tuple(sum(part.nbytes for part in parts) for parts in (kv, index))
    if found != wanted:
        yield Refusal(
            "mono-cache",
            f"the cache of layer {number} has {found} bytes of keys and values, and of index keys,"
            f" for {cache.slots} tokens: expected {wanted}",
        )
    for part in (*kv, *index):
        yield from _place_faults(f"the cache of layer {number}", part, device)


def cache_fields(cache: KvCache, number: int) -> dict[str, int]:
    """Return where a sparse layer's part of ``cache`` begins, by field of `LayerArgs`."""
    kv, index = _parts(cache, number)
    halves = [(part.data_ptr(), part.data_ptr() + part.nbytes // 2) for part in kv]
    fields = dict(zip(("keys", "values"), halves[0], strict=True))
    for scales in halves[1:]:
        fields |= zip(("key_scales", "value_scales"), scales, strict=True)
    names = ("index_keys", "index_scales")
    return fields | {n: part.data_ptr() for n, part in zip(names, index, strict=False)}


def _parts(cache: KvCache, number: int) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    """Return the tensors of a layer, none where the cache has no such layer."""
    try:
        return cache.layer_parts(number)
    except IndexError:
        return (), ()
