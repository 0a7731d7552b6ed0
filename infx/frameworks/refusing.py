"""Refusals that several engines share, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from infx.domain.axes import AXES, kebab
from infx.domain.point import Arm
from infx.frameworks.base import Refusal

__all__ = [
    "captured_requests",
    "lacks",
    "offload_bytes_a_rank",
    "refuse_acceptance",
    "refuse_captures",
    "refuse_dtypes",
    "refuse_env",
    "refuse_method",
    "refuse_mono",
    "refuse_offload",
]


def lacks(engine: str, arm: Arm, names: Iterable[str]) -> Iterator[Refusal]:
    """Yield ``unsupported-axis`` for each of the axes ``names`` that the arm sets."""
    for name in names:
        value = getattr(arm.axes, name)
        if value != AXES[name].default:
            sentence = f"{engine} has no {kebab(name)}: {value} cannot be set"
            yield Refusal("unsupported-axis", sentence, name)


def refuse_mono(engine: str, arm: Arm) -> Iterator[Refusal]:
    """Yield the refusal of an engine without mono layers."""
    if arm.axes.mono != "off":
        yield Refusal("unsupported-axis", f"{engine} has no mono layers: set mono: off", "mono")


def refuse_dtypes(engine: str, arm: Arm, known: Mapping[str, Collection[str]]) -> Iterator[Refusal]:
    """Yield ``unsupported-dtype`` for a cache of another type than ``known`` (axis -> types)."""
    for name, kinds in known.items():
        value = getattr(arm.axes, name)
        if value not in ("auto", *kinds):
            expected = ", ".join(("auto", *kinds))
            sentence = f"{engine} has no {kebab(name)} {value}: expected {expected}"
            yield Refusal("unsupported-dtype", sentence, name)


def refuse_method(
    engine: str, arm: Arm, methods: Collection[str], drafted: Mapping[str, bool | None]
) -> Iterator[Refusal]:
    """Yield what is wrong with the speculation. ``drafted`` says of each method whether a draft
    model must be named (True), must not (False: it is part of the target), or may (None)."""
    if arm.method not in methods:
        expected = ", ".join(methods)
        sentence = f"{engine} has no method {arm.method!r}: expected {expected}"
        yield Refusal("unsupported-method", sentence, "k")
    needs = drafted.get(arm.method)
    if needs and not arm.draft:
        sentence = f"{engine}'s {arm.method} needs a draft model: name it in speculation"
        yield Refusal("draft-missing", sentence, "speculation")
    if needs is False and arm.draft:
        sentence = f"{engine}'s {arm.method} drafts with the target, not with {arm.draft}"
        yield Refusal("option-conflict", sentence, "speculation")


def refuse_acceptance(engine: str, arm: Arm, laws: Collection[str]) -> Iterator[Refusal]:
    """Yield what is wrong with the synthetic acceptance: its law, or a length that no step has."""
    told = arm.acceptance
    if told.mode == "real":
        return
    if told.law not in laws:
        sentence = f"{engine} cannot draw by {told.law}: it has {', '.join(laws) or 'no law'}"
        yield Refusal("unsupported-law", sentence, "k")
    if told.length is None or not 1 <= told.length <= arm.axes.k + 1:
        sentence = f"acceptance length {told.length} is outside [1, {arm.axes.k + 1}] for K"
        yield Refusal("acceptance-range", f"{sentence}={arm.axes.k}", "k")


def refuse_env(arm: Arm, owned: Mapping[str, str]) -> Iterator[Refusal]:
    """Yield ``option-conflict`` for each variable of the recipe that infx sets itself; ``owned``
    maps its name to what says it instead."""
    for name in arm.env:
        if name in owned:
            sentence = f"the recipe's env sets {name}, which {owned[name]} says"
            yield Refusal("option-conflict", sentence)


def captured_requests(arm: Arm) -> tuple[int, ...]:
    """Return the capture sizes as requests a step, for engines that count so: a request has K+1
    rows. Sizes that are no multiple are left out: `refuse_captures` says so."""
    width = arm.axes.k + 1
    return tuple(size // width for size in arm.axes.capture_sizes if size % width == 0)


def refuse_captures(engine: str, arm: Arm) -> Iterator[Refusal]:
    """Yield the refusal of capture sizes that hold no whole number of requests."""
    width = arm.axes.k + 1
    odd = [size for size in arm.axes.capture_sizes if size % width]
    if odd:
        sentence = (
            f"{engine} captures whole requests of {width} rows (K+1): {odd[0]} is no multiple"
        )
        yield Refusal("unsupported-axis", sentence, "capture_sizes")


def refuse_offload(engine: str, arm: Arm, backends: Collection[str]) -> Iterator[Refusal]:
    """Yield why the cache cannot be offloaded so; ``backends`` are those that infx can start."""
    axes = arm.axes
    if axes.kv_offload == "none":
        return
    if axes.kv_offload_backend not in ("auto", *backends):
        expected = ", ".join(("auto", *backends))
        sentence = f"{engine} has no {axes.kv_offload_backend} offload here: expected {expected}"
        yield Refusal("unsupported-axis", sentence, "kv_offload_backend")
    if axes.prefix_caching is False:
        sentence = f"{engine} offloads what its prefix cache keeps: prefix-caching is false"
        yield Refusal("option-conflict", sentence, "kv_offload")


def offload_bytes_a_rank(arm: Arm) -> int:
    """Return the bytes of host memory that one of the tp x pp ranks may fill (0: none)."""
    return (arm.axes.kv_offload_gb or 0) * 10**9 // (arm.axes.tp * arm.axes.pp)
