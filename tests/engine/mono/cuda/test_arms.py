"""Which kernels a layer is, and how several layers are launched."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from infx.engine.mono.cuda.arguments import layer_args
from infx.engine.mono.cuda.arms import Arms
from infx.engine.mono.shape import KINDS


class Recorder:
    """A kernel that keeps what it was launched with."""

    def __init__(self) -> None:
        self.launched: list[list[int]] = []
        self.how: list[tuple[bool, bool]] = []

    def launch(self, stream: int, blocks: int, threads: int, given: Any, **how: bool) -> None:
        (layers,) = given
        several = layers if isinstance(layers, ctypes.Array) else [layers]
        self.launched.append([one.page_stride for one in several])
        self.how.append((how["cooperative"], how["dependent"]))


@pytest.mark.parametrize("dependent", [False, True])
def test_layers_go_together_as_far_as_they_make_a_launch(
    monkeypatch: pytest.MonkeyPatch, dependent: bool
) -> None:
    kernel, arms = Recorder(), Arms(2, {"LAYERS": 3})
    monkeypatch.setattr(arms, "kernel", lambda *_: kernel)
    arms.mono_together(0, [layer_args({"page_stride": n}) for n in range(8)], dependent)
    assert kernel.launched == [[0, 1, 2], [3, 4, 5], [6], [7]]
    assert set(kernel.how) == {(not dependent, dependent)}
    assert {source.name for source in arms.sources} == {"mono", "mono_layers", "unfused", "attn"}
    assert Arms(2, {"LAYERS": 3, "LAYER_KIND": KINDS.index("dense")}).together == 1


def test_the_output_projection_may_do_the_routers_work() -> None:
    assert Arms(2).stages == ("qkv", "scores", "attend", "o", "router", "up", "down")
    assert Arms(2, {"LOGITS_IN_O": 1}).stages == ("qkv", "scores", "attend", "o", "up", "down")
