"""What a server is, and in what two of them differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from infx.domain.axes import kebab
from infx.domain.identity import content_id
from infx.domain.point import SERVER_AXES, Point, short
from infx.domain.record import PointRecord

__all__ = ["Difference", "differences", "made_of", "server_of", "text_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing in which two servers differ."""

    name: str
    a: str
    b: str

    def __str__(self) -> str:
        return f"{self.name} {self.a} → {self.b}"


def server_of(point: Point) -> dict[str, str]:
    """Return what a server is, one text a name."""
    arm, model, law = point.arm, point.arm.model, point.arm.acceptance
    parts: Mapping[str, object] = {
        "framework": arm.framework,
        "image": arm.image_digest or arm.image,
        "weights": model.revision or model.weights,
        "precision": model.precision,
        "tokenizer": model.tokenizer,
        "hardware": arm.hardware,
        **{kebab(name): getattr(arm.axes, name) for name in SERVER_AXES},
        "method": arm.method,
        "draft": arm.draft or None,
        "srt recipe": short(content_id(arm.delegated)) if arm.delegated else None,
        "acceptance": [law.mode, law.length, law.law, law.k, *law.curve],
        **{f"option {name}": value for name, value in arm.options.items()},
        **{f"env {name}": value for name, value in arm.env.items()},
        "aiperf": point.harness.aiperf,
        "lm-eval": point.harness.lm_eval,
    }
    return {name: text_of(value) for name, value in parts.items()}


def made_of(record: PointRecord | None) -> dict[str, str]:
    """Return what the record knows of its making that the plan does not."""
    if record is None:
        return {}
    made = record.provenance
    revision = f"{made.git_revision}{'+' if made.git_dirty else ''}"
    return {"revision": revision or "-", "host": str(made.host.get("name", "-"))}


def text_of(value: object) -> str:
    """Return a setting as text: ``1,2,4`` for a list, ``-`` for nothing."""
    if isinstance(value, list | tuple):
        return ",".join(map(text_of, value)) or "none"
    return "-" if value is None else str(value)


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Difference, ...]:
    """Return in what two descriptions differ, in their order."""
    return tuple(
        Difference(name=name, a=before.get(name, "-"), b=after.get(name, "-"))
        for name in dict.fromkeys([*before, *after])
        if before.get(name, "-") != after.get(name, "-")
    )
