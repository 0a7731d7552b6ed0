"""The acceptance a server is told, looked up in a golden curve; never interpolated."""

from __future__ import annotations

from infx.config.matrix import SpeculationSpec
from infx.domain.acceptance import Acceptance, Law
from infx.domain.errors import ConfigError
from infx.domain.findings import Finding

__all__ = ["acceptance"]


def acceptance(spec: SpeculationSpec, k: int, law: Law) -> Acceptance:
    """Return the acceptance for K draft tokens in a throughput run.

    It is synthetic at the golden length, drawn by ``law`` if ``spec`` names none; real without
    drafts (K = 0) and without a golden file. Raises ConfigError (``golden-k-missing``) when the
    curve has no length for this K.
    """
    if k == 0 or not spec.golden:
        return Acceptance(k=k)
    if k not in spec.lengths:
        raise ConfigError([_missing(spec, k)])
    return Acceptance(
        mode="synthetic",
        length=spec.lengths[k],
        law=spec.law or law,  # type: ignore[arg-type]
        golden=spec.golden,
        thinking=spec.thinking,
        k=k,
    )


def _missing(spec: SpeculationSpec, k: int) -> Finding:
    held = ", ".join(map(str, sorted(spec.lengths))) or "none"
    sentence = f"{spec.golden} has no length for K={k} with thinking {spec.thinking}"
    return Finding("golden-k-missing", "error", sentence, spec.where, f"it holds K = {held}")
