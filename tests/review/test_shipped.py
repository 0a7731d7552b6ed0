"""Drafts: what their files hold, and what servers say that they run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infx.domain.record import PointRecord, Provenance
from infx.review.bundle import Draft, DraftLayer
from infx.review.shipped import UNKNOWN, Checkpoint, agreed, draft_of, drafting
from tests.store.tiny_plans import arm, point, record

TENSORS = {"fc.weight": "BF16", "fc.bias": "BF16", "norm.weight": "F32"}


def speculating(framework: str = "infx", draft: str = "", **server: object) -> PointRecord:
    made = replace(arm(), framework=framework, draft=draft)
    made = replace(made, axes=replace(made.axes, k=3))
    return replace(record(point(made, 1), "r", "j"), provenance=Provenance(server=server))


def checkpoint(**config: object) -> Checkpoint:
    return Checkpoint(tensors=TENSORS, config=config, where="here")


def test_servers_are_grouped_by_what_drafts_for_them() -> None:
    plain = record(point(arm(), 1), "r", "j")
    one, two = speculating(), speculating(draft="org/draft")
    assert drafting([plain, one, two]) == {"tiny": [one], "org/draft": [two]}


def test_layers_are_stored_in_one_type_and_run_in_another() -> None:
    told = draft_of("tiny", checkpoint(), [speculating(dtype="float32")])
    assert (told.stored, told.quantization, told.where) == ("bf16, fp32", "", "here")
    assert [(one.name, one.stored, one.effective) for one in told.layers] == [
        ("fc", "bf16", "fp32"),
        ("norm", "fp32", "fp32"),
    ]


@pytest.mark.parametrize(
    "records",
    [
        [speculating()],
        [speculating("vllm", dtype="bfloat16")],
        [speculating(dtype="float32"), speculating(dtype="bfloat16")],
        [speculating(dtype="of its own")],
    ],
)
def test_what_no_server_tells_is_not_told(records: list[PointRecord]) -> None:
    assert draft_of("tiny", checkpoint(), records).layers == ()


def test_a_server_may_tell_the_draft_s_own_type() -> None:
    told = draft_of("tiny", checkpoint(), [speculating("vllm", draft_dtype="torch.bfloat16")])
    assert {layer.effective for layer in told.layers} == {"bf16"}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"quantization_config": {"quant_method": "fp8"}}, "fp8"),
        ({"quantization_config": {}}, ""),
        ({"quantization_config": {"bits": 4}}, "quantized in a way that config.json does not name"),
        ({"compression_config": "packed"}, "packed"),
    ],
)
def test_a_quantized_draft_says_so_and_no_more(config: dict[str, object], said: str) -> None:
    told = draft_of("tiny", checkpoint(**config), [speculating(dtype="float32")])
    assert told.quantization == said
    assert bool(told.layers) == (not said)


def test_what_files_hold_stands_before_what_somebody_says() -> None:
    layers = (DraftLayer(name="fc", stored="bf16", effective="bf16"),)
    given = Draft(model="tiny", stored="fp8", layers=layers)
    found = draft_of("tiny", checkpoint(), [speculating()])
    assert agreed(given, found) == replace(found, layers=layers)
    assert agreed(None, found) == found
    told = draft_of("tiny", checkpoint(), [speculating(dtype="float32")])
    assert agreed(given, told) == told
    assert agreed(given, replace(found, stored=UNKNOWN)) == given


def test_without_tensors_the_configuration_says_the_type() -> None:
    bare = Checkpoint(tensors={}, config={"torch_dtype": "bfloat16"}, where="")
    assert draft_of("tiny", bare, []).stored == "bf16"
    assert draft_of("tiny", replace(bare, config={}), []).stored == "unknown"
