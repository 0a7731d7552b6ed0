"""Both arms of a layer in plain torch: what stands for kernels where a bench runs without a GPU.

Arguments of a launch are the tensors themselves, by field of ``LayerArgs``. Stages leave what the
kernels leave; which form of a sum is as good as any other is not modelled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from infx.engine.model.attention import block_scores, choose_blocks
from infx.engine.model.experts import route
from infx.engine.model.layers import swiglu_oai
from infx.engine.mono.cuda import judge, judge_attention, judge_dense
from infx.engine.mono.cuda.packing import bf16_untiled, ups_behind_gates
from infx.engine.mono.cuda.random_layer import Layer
from infx.engine.mono.cuda.random_step import Step
from infx.engine.mono.cuda.setting import SHAPE, Asked
from infx.engine.mono.cuda.store import Store
from infx.engine.mono.shape import Kind

Fields = dict[str, Any]
TOPK = SHAPE.experts_per_token


class PlainArms:
    """Arms for ``rows`` rows; ``unwritten`` names a field that mono alone leaves as it was."""

    stages = ("qkv", "scores", "attend", "o", "router", "up", "down")

    def __init__(self, rows: int, unwritten: str = "") -> None:
        self.rows, self._unwritten = rows, unwritten

    def unfused(self, stream: int, given: Fields, dependent: bool = False) -> None:
        """Run all stages."""
        assert len(given["batch_ids"]) == self.rows
        project(given)
        attend(given)
        leave_mid(given)
        (choose_and_mix if kind_of(given) == "sparse" else mix_dense)(given)

    def mono(self, stream: int, given: Fields, dependent: bool = False) -> None:
        """Run all stages; put back what is not to be written."""
        kept = {name: given[name].clone() for name in (self._unwritten,) if name}
        self.unfused(stream, given)
        for name, old in kept.items():
            given[name].copy_(old)

    def stage(self, name: str, stream: int, given: Fields, dependent: bool = False) -> None:
        """Do nothing: a layer leaves what each of its stages does."""

    def read(self, stream: int, address: int, size: int, out: int, blocks: int) -> None:
        """Do nothing."""


def project(given: Fields) -> None:
    """Leave the sums of the first projection, all in their first part."""
    x = given["stream_in"] * given["attention_norm"]
    for name, found in (
        ("qkv_sums", times(x, weight(given, "qkv"))),
        ("qkv_squares", given["stream_in"].square().sum(-1)),
    ):
        given[name].zero_()[0] = found


def attend(given: Fields) -> None:
    """Leave caches, scores, chosen blocks, and attention's output."""
    step, layer = step_of(given), layer_of(given)
    heads = judge_attention._heads(layer, step)
    written = judge_attention._written(layer, heads[: step.live], step)
    for old, new in zip(layer.stores, written.stores, strict=True):
        for part, right in zip(old.parts(), new.parts(), strict=True):
            part.copy_(right)
    if kind_of(given) != "dense":
        given["queries"].copy_(heads[:, : SHAPE.heads].transpose(0, 1))
    given["merged"].zero_()
    given["chosen"].fill_(-1)
    for _, pages, rows in step.spans:
        for row in range(rows.start, rows.stop):
            attend_row(given, written, heads, torch.tensor(pages), row)
    given["attended_back"].fill_(2.0)
    given["attended"].copy_(given["merged"] / 2)


def attend_row(given: Fields, layer: Layer, heads: Tensor, pages: Tensor, row: int) -> None:
    """Leave one row's scores, blocks and output."""
    at = given["positions"][row].long().view(1, 1)
    own = int(at) // SHAPE.block + 1
    if kind_of(given) == "dense":
        best = torch.arange(own)
    else:
        best = choose_row(given, layer, heads, pages, row)
    given["merged"][:, row] = judge_attention._mixed(
        layer, heads[row, : SHAPE.heads], pages, best, at
    )


def choose_row(given: Fields, layer: Layer, heads: Tensor, pages: Tensor, row: int) -> Tensor:
    """Leave one row's scores and blocks; return these."""
    at = given["positions"][row].long().view(1, 1)
    own = int(at) // SHAPE.block + 1
    index = layer.index.read(pages[:own])[None]
    query = heads[row, SHAPE.heads + 1][None, None, None]
    scores = block_scores(query, index, at, SHAPE.block)
    given["scores"][row, :own] = scores[0, 0, 0]
    best = choose_blocks(scores, at, SHAPE.block, SHAPE.topk_blocks)[0, 0, 0].sort().values
    given["chosen"][row, : len(best)] = best.int()
    return best


def leave_mid(given: Fields) -> None:
    """Leave the stream after attention."""
    live = given["batch_ids"] >= 0
    attended = times(given["merged"].transpose(0, 1).flatten(1), weight(given, "o"))
    mid = torch.where(live[:, None], given["stream_in"] + SHAPE.ranks * attended, 0)
    given["mid"].copy_(mid)
    given["mid_squares"].zero_()[0] = mid.square().sum(-1)


def mix_dense(given: Fields) -> None:
    """Leave all of a dense MLP."""
    mid = given["mid"]
    normed = mid * given["mlp_norm"]
    given["mid_exponents"].fill_(127)
    given["mid_normed"].copy_(normed)
    factor = torch.rsqrt(mid.square().mean(-1, keepdim=True) + SHAPE.norm_eps)
    both = times(factor * normed, ups_behind_gates(weight(given, "up")))
    hidden = swiglu_oai(both, SHAPE.swiglu_alpha, SHAPE.swiglu_limit)
    given["mids"].copy_(judge_dense.MIDS_SCALE * hidden)
    added = times(given["mids"].float() / judge_dense.MIDS_SCALE, weight(given, "down"))
    given["stream_out"].copy_(mid + SHAPE.ranks * added)


def choose_and_mix(given: Fields) -> None:
    """Leave all of the experts."""
    live, mid = given["batch_ids"] >= 0, given["mid"]
    given["mid_normed"].copy_(mid * given["mlp_norm"])
    router = bf16_untiled(given["router"]).view(torch.bfloat16).float()
    given["logit_sums"].zero_()[0] = times(mid * given["mlp_norm"], router)
    factor = torch.rsqrt(mid.square().mean(-1, keepdim=True) + SHAPE.norm_eps)
    eye = torch.eye(SHAPE.experts)
    chosen, weights = route(
        factor * given["logit_sums"].sum(0), eye, given["router_bias"], TOPK, SHAPE.routed_scale
    )
    given["routing"].copy_(torch.cat((chosen, weights), 1)).masked_fill_(~live[:, None], -1)
    given["stream_out"].copy_(mid)
    for row in live.nonzero()[:, 0].tolist():
        x = factor[row] * mid[row] * given["mlp_norm"]
        for slot, expert in enumerate([*chosen[row].tolist(), len(given["up"]) - 1]):
            both = x @ up(given["up"], expert).T
            hidden = swiglu_oai(both, SHAPE.swiglu_alpha, SHAPE.swiglu_limit)
            given["mids"][row, slot] = hidden
            factor_of = weights[row, slot] if slot < TOPK else 1.0
            out = given["mids"][row, slot].float() @ down(given["down"], expert).T
            given["stream_out"][row] += SHAPE.ranks * factor_of * out


def step_of(given: Fields) -> Step:
    """Return the step that fields are of, with its requests by their batch ids."""
    ids, positions = given["batch_ids"].tolist(), given["positions"].tolist()
    requests, tables = [], []
    for number in dict.fromkeys(one for one in ids if one >= 0):
        rows = [row for row, one in enumerate(ids) if one == number]
        requests.append(Asked(positions[rows[0]], len(rows)))
        tables.append(given["pages"][rows[0], : requests[-1].pages].tolist())
    return Step(tuple(requests), len(ids), tables, given, kind_of(given))


def kind_of(given: Fields) -> Kind:
    """Return the kind of layer that fields are of."""
    if "router" in given:
        return "sparse"
    heads = given["qkv_sums"].shape[-1] // SHAPE.head_dim
    return "dense" if heads == SHAPE.heads + 2 else "sparse_dense"


def layer_of(given: Fields) -> Layer:
    """Return the layer that fields are of."""

    def store(name: str, scales: str, scaled: bool) -> Store:
        numbers = given[name]
        kind = {256: "bf16", 128: "fp8", 64: "mxfp4"}[numbers[0, 0].nbytes]
        return Store(kind, scaled, numbers, given.get(scales))

    stores = [store("keys", "key_scales", True), store("values", "value_scales", True)]
    return Layer(given, *stores, store("index_keys", "index_scales", False))


def times(x: Tensor, matrix: Tensor) -> Tensor:
    """Return ``x`` [rows, in] by ``matrix`` [out, in], a row at a time: its bits are its own."""
    return torch.stack([row @ matrix.T for row in x])


def weight(given: Fields, name: str) -> Tensor:
    """Return an fp8 matrix."""
    return kept(given[name], 0, lambda: judge_dense.fp8_weight(given, name))


def up(pieces: Tensor, expert: int) -> Tensor:
    """Return an expert's first matrix, ups behind gates."""
    return kept(pieces, expert, lambda: ups_behind_gates(judge._expert(pieces, expert)))


def down(pieces: Tensor, expert: int) -> Tensor:
    """Return an expert's second matrix."""
    return kept(pieces, expert, lambda: judge._expert(pieces, expert))


_KEPT: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}


def kept(tensor: Tensor, part: int, make: Callable[[], Tensor]) -> Tensor:
    """Return what ``make`` makes of a weight, once; the weight is held: its address is its name."""
    name = (tensor.data_ptr(), part)
    if name not in _KEPT:
        _KEPT[name] = tensor, make()
    return _KEPT[name][1]
