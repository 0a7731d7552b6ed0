"""One case for every code of refusal; a refused thing changes and writes nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infx.domain.codes import CODES
from infx.engine.mono.dispatch import (
    DEVICES,
    Deployment,
    refuse_compiler,
    refuse_config,
    refuse_layer,
)
from infx.engine.mono.library import BackEnd, Mono, StepRows
from infx.engine.mono.refusal import LEVELS, Refusal
from infx.engine.mono.shape import CACHE_KINDS, KINDS
from infx.engine.mono.step import Bounds, refuse_step
from tests.engine.mono import recording
from tests.engine.mono.recording import BLOCK, CACHE_PAGES, REACH, Recording, bound, deployment

ON_CUDA = {
    "device": "cuda",
    "projections": "fp8",
    "experts": "mxfp4",
    "router": "bf16",
    "kv_cache": "fp8",
    "index_cache": "fp8",
}
# Code -> the deployment's changes, then what the sentence has to name: the value, what is expected.
CONFIG: dict[str, list[tuple[dict[str, Any], tuple[str, ...]]]] = {
    "mono-device": [({"device": "tpu"}, ("tpu", "cpu or cuda"))],
    "mono-tp": [
        ({"tp": 2}, ("tp on cpu 2", "expected 1")),
        ({"tp": 4, "device": "cuda"}, ("tp on cuda 4", "expected 1")),
    ],
    "mono-pp": [({"pp": 2}, ("pp 2", "expected 1"))],
    "mono-ep": [({"ep": 8}, ("ep 8", "expected 1"))],
    "mono-dp-attention": [({"dp_attention": True}, ("dp attention on", "expected off"))],
    "mono-projections": [
        ({"projections": "fp8"}, ("projections on cpu fp8", "expected fp32")),
        ({"projections": "mxfp4", "device": "cuda"}, ("on cuda mxfp4", "expected fp8")),
    ],
    "mono-experts": [({"experts": "nvfp4"}, ("experts nvfp4", "fp32 or mxfp4"))],
    "mono-router": [({"router": "fp16"}, ("router fp16", "fp32 or bf16"))],
    "mono-kv-cache": [({"kv_cache": "int8"}, ("kv cache int8", "fp8"))],
    "mono-index-cache": [({"index_cache": "fp16"}, ("index cache fp16", "mxfp4"))],
    "mono-block-size": [({"block": 32}, ("block size 32", "expected 16"))],
    "mono-context": [({"context": REACH + 1}, ("context 129", "at most 128"))],
    "mono-verify": [
        ({"verify": "scheduled"}, ("scheduled", "expected fixed")),
        ({"verify": "ragged"}, ("ragged", "expected fixed")),
    ],
    "mono-rows-per-request": [({"rows_per_request": 17}, ("17 rows", "at most 16"))],
    "mono-full-experts": [
        ({"full_layers": 2, "dense_layers": 1, "model": "odd"}, ("2 layers of odd", "1 a dense"))
    ],
    "mono-shared-expert": [
        ({"expert_size": 96, "shared_size": 192}, ("expert of 192", "expected 96"))
    ],
    "mono-torch-compile": [({"torch_compile": True}, ("torch.compile", "expected plain"))],
    "mono-weight-swap": [({"weight_swap": True}, ("weight swap on", "expected off"))],
    "mono-lora": [({"lora": True}, ("LoRA on", "expected off"))],
    "mono-sleep": [({"sleep": True}, ("sleep on", "expected off"))],
}


def bind(
    back_end: BackEnd | Refusal,
    kinds: tuple[str, ...] = recording.KINDS,
    widths: tuple[int, ...] = (1, 16),
    **changes: Any,
) -> Mono | Refusal:
    return Mono.bind(
        deployment(**{"layers": len(kinds), **changes}), kinds, back_end, widths=widths
    )


def said(code: str) -> Callable[[Recording], Refusal | Mono]:
    """Return a bind whose back end refuses with ``code``: what it says is what is answered."""

    def ask(back_end: Recording) -> Refusal | Mono:
        back_end.bind = Refusal(code, "qkv of layer 1: expected another")
        return bind(back_end)

    return ask


def failing(back_end: Recording) -> Refusal | Mono:
    back_end.bind = OSError("no such device: expected one")
    return bind(back_end)


BIND: dict[str, list[Callable[[Recording], object]]] = {
    "mono-no-compiler": [
        lambda back_end: refuse_compiler("sys", "numba_that_is_not_there"),
        lambda back_end: bind(cast(Refusal, refuse_compiler("numba_that_is_not_there"))),
    ],
    "mono-layer-count": [
        lambda back_end: bind(back_end, layers=4),
        lambda back_end: bind(back_end, (), layers=4),
    ],
    "mono-sparse-dense": [lambda back_end: refuse_layer("sparse_dense")],
    "mono-layer-kind": [
        lambda back_end: refuse_layer("full_experts"),
        lambda back_end: refuse_layer("dense", "cuda"),
    ],
    "mono-no-layer": [
        lambda back_end: bind(back_end, ("sparse_dense",) * 3),
        lambda back_end: bind(back_end, ()),
    ],
    "mono-widths": [
        lambda back_end: bind(back_end, widths=()),
        lambda back_end: bind(back_end, widths=(0, 1)),
        lambda back_end: bind(back_end, widths=(1, 17)),
    ],
    "mono-bind-failed": [failing],
    **{
        code: [said(code)]
        for code in (
            "mono-shape",
            "mono-weights",
            "mono-cache",
            "mono-strides",
            "mono-alignment",
            "mono-residency",
        )
    },
}


def closed(mono: Mono) -> StepRows:
    mono.close()
    return recording.rows()


CAPTURES: list[Any] = []  # a context that nothing holds ends


def late(mono: Mono) -> StepRows:
    CAPTURES.append(mono.capturing())
    CAPTURES[-1].__enter__()
    return recording.rows()


def unbuildable(mono: Mono) -> StepRows:
    cast(Recording, mono._back_end).widths[8] = Refusal("mono-build-failed", "8: expected less")
    return recording.rows()


def breaking(mono: Mono) -> StepRows:
    cast(Recording, mono._back_end).widths[8] = MemoryError("expected more")
    return recording.rows()


def step(count: int = 3, **changes: Any) -> Callable[[Mono], StepRows]:
    return lambda mono: recording.rows(count, **changes)


def ints(*numbers: int, dtype: Any = np.int64) -> np.ndarray[Any, Any]:
    return np.array(numbers, dtype=dtype)


TABLE = np.zeros((8, 4), dtype=np.int32)
STEP: dict[str, list[Callable[[Mono], StepRows]]] = {
    "mono-closed": [closed],
    "mono-traced": [step(traced=True)],
    "mono-prefill": [step(prefill=True), step(40, prefill=True)],
    "mono-no-rows": [step(0), step(positions=np.int64(3))],
    "mono-too-many-rows": [
        step(17),
        # Twelve live rows and five pads: pads are rows.
        step(17, batch_ids=ints(*range(12), *[-1] * 5, dtype=np.int32)),
    ],
    "mono-batch-ids-missing": [step(batch_ids=None)],
    "mono-batch-ids-dtype": [
        step(batch_ids=ints(0, 1, 2)),
        step(batch_ids=ints(0, 1, 2, dtype=">i4")),
        step(batch_ids=ints(0, 1, 2, dtype=np.uint32)),
    ],
    "mono-batch-ids-few": [
        step(batch_ids=ints(0, 1, dtype=np.int32)),
        step(batch_ids=ints(dtype=np.int32)),
    ],
    "mono-batch-ids-range": [
        step(batch_ids=ints(0, 1, 3, dtype=np.int32)),
        step(batch_ids=ints(0, -2, 1, dtype=np.int32)),
    ],
    "mono-step-dtype": [
        step(positions=ints(0, 1, 2, dtype=np.int32)),
        step(slots=ints(0, 1, 2, dtype=np.int32)),
        step(slots=np.zeros(3)),
        step(pages=np.zeros((3, 2), dtype=np.int64)),
    ],
    "mono-step-rank": [
        step(positions=np.zeros((3, 1), dtype=np.int64)),
        step(slots=np.zeros((1, 3), dtype=np.int64)),
        step(pages=np.zeros(6, dtype=np.int32)),
        step(pages=np.int32(0)),
        step(batch_ids=np.zeros((3, 1), dtype=np.int32)),
        step(batch_ids=np.int32(0)),
    ],
    "mono-step-few": [
        step(slots=ints(0, 1)),
        step(pages=np.zeros((2, 2), dtype=np.int32)),
        step(positions=ints(0, 1, 2, 3), batch_ids=ints(0, 1, 2, -1, dtype=np.int32)),
    ],
    "mono-step-strides": [
        step(positions=np.zeros(6, dtype=np.int64)[::2]),
        step(slots=np.zeros(6, dtype=np.int64)[::-2]),
        step(pages=TABLE[:3, :2]),
        step(pages=TABLE[::2, :]),
        step(positions=np.zeros(4, dtype=np.int64)[::2]),
        step(pages=np.asfortranarray(TABLE)),
        step(batch_ids=np.zeros(6, dtype=np.int32)[::2]),
    ],
    "mono-row-beyond-context": [
        step(positions=ints(0, 1, REACH)),
        step(positions=ints(0, -1, 1)),
        # A pad, and a verify row of one request.
        step(batch_ids=ints(0, 1, -1, dtype=np.int32), positions=ints(0, 1, REACH + 7)),
        step(
            batch_ids=ints(0, 0, 0, dtype=np.int32),
            positions=ints(REACH - 2, REACH - 1, REACH),
            pages=np.zeros((3, 8), dtype=np.int32),
        ),
        step(last=REACH),
    ],
    "mono-page-table-short": [
        step(positions=ints(0, 1, 2 * BLOCK)),
        step(pages=np.zeros((3, 0), dtype=np.int32)),
        step(last=2 * BLOCK),
    ],
    "mono-slot-outside": [
        step(slots=ints(0, 1, CACHE_PAGES * BLOCK)),
        step(slots=ints(0, -1, 2)),
    ],
    "mono-step-numbers": [step(pages=TABLE[:3] + CACHE_PAGES)],
    "mono-no-width": [step(12)],
    "mono-width-not-built": [late],
    "mono-build-failed": [unbuildable, breaking],
}


def numbered(cases: dict[str, list[Any]]) -> list[Any]:
    return [
        pytest.param(code, case, id=f"{code}-{number}")
        for code, some in cases.items()
        for number, case in enumerate(some)
    ]


def test_every_code_has_a_case_and_a_meaning() -> None:
    for level, cases in (("config", CONFIG), ("bind", BIND), ("step", STEP)):
        assert cases.keys() == {code for code in LEVELS if LEVELS[code] == level}
    assert LEVELS.keys() == {code.name for code in CODES.values() if code.family == "mono"}


@pytest.mark.parametrize(("code", "case"), numbered(CONFIG))
def test_a_configuration_is_refused_before_the_back_end_is_asked(code: str, case: Any) -> None:
    changes, words = case
    refusal = refuse_config(deployment(**changes))
    assert refusal is not None
    assert (refusal.code, refusal.level) == (code, "config")
    assert all(word in refusal.sentence for word in words), refusal
    back_end = Recording()
    assert bind(back_end, **changes) == refusal
    assert not back_end.calls


@pytest.mark.parametrize(("code", "case"), numbered(BIND))
def test_what_cannot_be_bound_is_refused_and_left_as_it_is(code: str, case: Any) -> None:
    back_end = Recording()
    refusal = case(back_end)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.level) == (code, "bind")
    assert set(back_end.calls) <= {("refuse",)}


@pytest.mark.parametrize(("code", "case"), numbered(STEP))
def test_a_refused_step_changes_nothing_and_writes_nothing(code: str, case: Any) -> None:
    mono = bound(widths=(8,))
    given = case(mono)
    back_end = cast(Recording, mono._back_end)
    before = [np.array(a) for a in (given.positions, given.slots, given.pages)]
    refusal = mono.prepare_step(given)
    assert refusal is not None
    assert (refusal.code, refusal.level) == (code, "step")
    assert "expected" in refusal.sentence
    after = [np.array(a) for a in (given.positions, given.slots, given.pages)]
    assert all(map(np.array_equal, before, after))
    with pytest.raises(RuntimeError, match="prepare_step"):
        mono.forward_layer(1, np.zeros((3, 4)), np.zeros((3, 4)))
    assert mono.coverage.snapshot().refusals == {code: 1}
    assert mono.prepare_step(given) == refusal, "the same answer again"
    asked = {"mono-closed": [("close",)]}
    asked |= {code: [("build", 8)] for code in ("mono-build-failed", "mono-step-numbers")}
    assert back_end.calls == asked.get(code, [])


@pytest.mark.parametrize("device", DEVICES)
def test_what_a_device_serves_is_served(device: str) -> None:
    served = DEVICES[device]
    each = {
        "tp": served.tp,
        "projections": served.projections,
        "experts": served.experts,
        "router": served.router,
        "kv_cache": served.caches,
        "index_cache": served.caches,
    }
    first = {"device": device, **{name: values[0] for name, values in each.items()}}
    for name, values in each.items():
        for value in values:
            assert refuse_config(deployment(**{**first, name: value})) is None
    edges = {"context": REACH, "rows_per_request": 16, "full_layers": 1, "dense_layers": 3}
    assert refuse_config(deployment(**{**first, **edges})) is None
    assert set(served.caches) <= set(CACHE_KINDS)


def test_each_kind_of_layer_is_served_or_refused() -> None:
    assert {kind for kind in KINDS if refuse_layer(kind)} == {"sparse_dense"}
    assert {kind for kind in KINDS if refuse_layer(kind, "cuda")} == {"dense", "sparse_dense"}


def test_a_layer_that_the_device_lacks_stays_the_hosts() -> None:
    mono = bound(**ON_CUDA)
    assert [mono.serves(layer) for layer in range(3)] == [False, True, True]


def test_a_compiler_that_is_there_is_not_refused() -> None:
    assert "json" in sys.modules
    assert refuse_compiler("json", "ast") is None


@pytest.mark.parametrize(
    "served",
    [
        *[step(count) for count in range(1, 17)],
        step(batch_ids=ints(-1, -1, -1, dtype=np.int32)),  # a warm-up step
        step(positions=ints(2 * BLOCK - 1, 0, 0)),
        step(positions=ints(REACH - 1, 0, 0), pages=np.zeros((3, 8), dtype=np.int32)),
        step(slots=ints(CACHE_PAGES * BLOCK - 1, 0, 0)),
        step(last=2 * BLOCK - 1),
        step(1, pages=TABLE[:1, :2]),  # one row of a wider table
        step(pages=TABLE[:3]),
        step(16, batch_ids=ints(*[0] * 16, dtype=np.int32), requests=1),
    ],
)
def test_ordinary_steps_and_those_at_an_edge_are_served(served: Any) -> None:
    assert bound().prepare_step(served(bound())) is None


def test_longer_arrays_are_cut_to_the_rows_and_not_copied() -> None:
    mono = bound()
    longer = recording.rows(16)
    step = recording.rows(3, batch_ids=longer.batch_ids, slots=longer.slots, pages=longer.pages)
    assert mono.prepare_step(step) is None
    (given,) = cast(Recording, mono._back_end).steps
    for name in ("batch_ids", "positions", "slots", "pages"):
        whole, cut = getattr(step, name), getattr(given, name)
        assert len(cut) == 3
        assert recording.address(cut) == recording.address(whole)


def test_numbers_on_a_device_are_not_read() -> None:
    class Far:
        """An array whose numbers would have to be waited for."""

        def __init__(self, array: Any) -> None:
            self.dtype, self.shape, self.strides = array.dtype, array.shape, array.strides

        def __len__(self) -> int:
            return int(self.shape[0])

        def tolist(self) -> Any:
            raise AssertionError("the host said the last position")

        def __getitem__(self, rows: slice) -> Any:
            raise AssertionError("as many as rows")

    near = recording.rows()
    far = {n: Far(getattr(near, n)) for n in ("batch_ids", "positions", "slots", "pages")}
    mono, given = bound(**ON_CUDA), StepRows(**far, last=5)
    assert refuse_step(given, mono._bounds) is None
    assert given.exact() is given


DTYPES = st.sampled_from(["int32", "int64", "float32"])


@given(
    rank=st.integers(0, 3),
    sizes=st.lists(st.integers(0, 18), min_size=3, max_size=3),
    dtypes=st.lists(DTYPES, min_size=4, max_size=4),
    offset=st.integers(-3, 300),
    ids=st.booleans(),
)
def test_any_arrays_get_an_answer_and_none_raises(
    rank: int, sizes: list[int], dtypes: list[str], offset: int, ids: bool
) -> None:
    arrays = [np.full(sizes[:rank], offset).astype(dtype) for dtype in dtypes]
    given = StepRows(arrays[0] if ids else None, arrays[1], arrays[2], arrays[3], requests=5)
    answer = refuse_step(given, Bounds(REACH, BLOCK, CACHE_PAGES * BLOCK))
    assert answer is not None
    assert answer.level == "step"
    # No number of dimensions is right for positions and for pages.


def test_a_deployment_is_plain_values() -> None:
    values = [getattr(deployment(), name) for name in Deployment.__dataclass_fields__]
    assert {type(value) for value in values} <= {int, str, bool}
