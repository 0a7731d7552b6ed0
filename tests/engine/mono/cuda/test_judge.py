"""The judge of a layer: what plain torch leaves is right, and each stage's fault has its name."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from infx.engine.mono.cuda.judge import faults, judge_layer
from infx.engine.mono.cuda.packing import bf16_untiled
from infx.engine.mono.cuda.random_layer import Layer, copied, make_caches, make_weights
from infx.engine.mono.cuda.random_step import Step, deal_pages, held_slots, make_step
from infx.engine.mono.cuda.setting import SHAPE, Asked
from tests.engine.mono.cuda.plain_arms import PlainArms

pytestmark = pytest.mark.slow  # a layer in plain torch takes a second
REQUESTS, ROWS, EXPERTS = (Asked(130, 2),), 3, 4


class Ran:
    """A layer that ran: what judge_layer is given."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        tables = deal_pages(REQUESTS, 1)
        weights = make_weights(3, "cpu", EXPERTS)
        weights["router_bias"][:EXPERTS] += 10
        stores = make_caches(3, held_slots(REQUESTS, tables), 3, "fp8", "fp8")
        self.before = Layer(weights, *stores)
        self.layer = copied(self.before)
        self.step = make_step(REQUESTS, ROWS, tables)
        draw = torch.Generator().manual_seed(1)
        self.stream = torch.randn(ROWS, SHAPE.hidden, generator=draw)
        self.out = torch.full_like(self.stream, torch.nan)
        streams = {"stream_in": self.stream, "stream_out": self.out}
        PlainArms(ROWS).unfused(0, self.step.tensors | self.layer.fields | streams)

    def with_wrong(self, field: str) -> list[str]:
        """Return the faults where a field's second row is a tenth too large."""
        tensors = {name: tensor.clone() for name, tensor in self.step.tensors.items()}
        out = self.out.clone()
        wrong = out if field == "out" else tensors[field]
        axis = 1 if field in {"qkv_sums", "qkv_squares", "mid_squares", "logit_sums"} else 0
        wrong.select(axis, 1).mul_(1.1)
        return self.faults_with(tensors, out)

    def faults_with(self, tensors: dict[str, torch.Tensor], out: torch.Tensor) -> list[str]:
        step: Step = replace(self.step, tensors=tensors)
        return faults(judge_layer(self.before, self.layer, step, self.stream, out))


@pytest.fixture(scope="module")
def ran() -> Ran:
    return Ran()


def test_a_layer_in_plain_torch_is_right(ran: Ran) -> None:
    figures = judge_layer(ran.before, ran.layer, ran.step, ran.stream, ran.out)
    assert not faults(figures), figures


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("qkv_sums", {"qkv"}),
        ("qkv_squares", {"qkv-squares"}),
        ("mid", {"o", "mid-squares"}),
        ("mid_squares", {"mid-squares"}),
        ("mid_normed", {"mid-normed"}),
        ("logit_sums", {"router"}),
        ("routing", {"weights"}),
        ("mids", {"up", "down"}),
        ("out", {"down"}),
    ],
)
def test_a_stage_that_is_wrong_is_named(ran: Ran, field: str, names: set[str]) -> None:
    assert names <= set(ran.with_wrong(field))


def test_a_router_without_the_lower_half_of_its_inputs_is_named(ran: Ran) -> None:
    weights = ran.layer.weights
    upper = (ran.step.tensors["mid"] * weights["mlp_norm"]).bfloat16().float()
    router = bf16_untiled(weights["router"]).view(torch.bfloat16).float()
    sums = torch.zeros_like(ran.step.tensors["logit_sums"])
    sums[0] = upper @ router.T
    assert "router" in ran.faults_with(ran.step.tensors | {"logit_sums": sums}, ran.out)


def test_nan_is_beyond_every_limit() -> None:
    assert faults({"up": torch.nan, "moved": torch.nan, "qkv": 0.0004}) == ["up"]
