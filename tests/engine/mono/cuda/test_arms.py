"""Which kernels a layer is, and how it is launched."""

from __future__ import annotations

import pytest

from infx.engine.mono.cuda.arguments import LayerArgs, layer_args
from infx.engine.mono.cuda.arms import BLOCKS, Arms
from infx.engine.mono.shape import KINDS, Kind


class Recorder:
    """A kernel that keeps what it was launched with."""

    def __init__(self) -> None:
        self.launched: list[tuple[int, int]] = []
        self.how: list[dict[str, bool]] = []

    def launch(
        self, stream: int, blocks: int, threads: int, given: tuple[LayerArgs], **how: bool
    ) -> None:
        (args,) = given
        self.launched.append((blocks, args.page_stride))
        self.how.append(how)


@pytest.mark.parametrize("dependent", [False, True])
def test_a_layer_that_may_run_ahead_is_no_cooperative_launch(
    monkeypatch: pytest.MonkeyPatch, dependent: bool
) -> None:
    kernel, arms = Recorder(), Arms(2)
    monkeypatch.setattr(arms, "kernel", lambda *of: {("mono.cu", "mono_layer"): kernel}[of])
    arms.mono(0, layer_args({"page_stride": 5}), dependent)
    assert kernel.launched == [(BLOCKS, 5)]
    assert kernel.how == [{"cooperative": not dependent, "dependent": dependent}]


@pytest.mark.parametrize(
    ("kind", "rows", "attention", "mlp", "files"),
    [
        ("sparse", 1, ["scores", "split"], ["router", "up", "down"], {"mono", "attn"}),
        ("sparse", 2, ["scores", "attend"], ["router", "up", "down"], {"mono", "attn"}),
        (
            "sparse_dense",
            2,
            ["scores", "attend"],
            ["dense_up", "dense_down"],
            {"mono_dense", "attn", "dense"},
        ),
        ("dense", 2, ["full"], ["dense_up", "dense_down"], {"mono_dense", "full", "dense"}),
    ],
)
def test_stages_are_those_of_the_kind_of_layer(
    kind: Kind, rows: int, attention: list[str], mlp: list[str], files: set[str]
) -> None:
    arms = Arms(rows, {"LAYER_KIND": KINDS.index(kind)})
    assert list(arms.stages) == ["qkv", *attention, "o", *mlp]
    assert {source.name for source in arms.sources} == {"unfused", *files}
