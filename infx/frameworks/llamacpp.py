"""llama.cpp through the `xllamacpp` wheel: a real engine for a CPU.

Its own words: a *slot* is what a step may hold of one request (``--parallel`` of them), and
``--ctx-size`` is the context of all slots together.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from infx.domain.acceptance import Acceptance, Law
from infx.domain.axes import AXES, Axes, kebab
from infx.domain.point import Arm
from infx.domain.record import EngineCounters
from infx.frameworks.base import Launch, Option, Paths, Refusal
from infx.frameworks.gguf_tokenizer import gguf_file, write_tokenizer
from infx.frameworks.prometheus import parse

__all__ = ["LlamaCpp"]

CAPACITY_AXES = ("max_num_seqs", "max_model_len", "prefix_caching")
"""The axes that this engine has beside the load."""


class LlamaCpp:
    """SmolLM2 and other GGUF models on llama.cpp's own OpenAI server."""

    name = "llamacpp"
    methods: tuple[str, ...] = ("none",)
    laws: tuple[Law, ...] = ()
    paths = Paths()
    pages: tuple[str, ...] = ("/props", "/slots", "/v1/models")
    options: Mapping[str, Option] = {
        option.name: option
        for option in (
            Option("parallel", int, "--parallel", "slots: requests a step may hold", capacity=True),
            Option("ctx-size", int, "--ctx-size", "tokens of context, all slots", capacity=True),
            Option("threads", int, "--threads", "CPU threads", capacity=True),
        )
    }
    gauges: Mapping[str, str] = {
        "peak_running": "llamacpp:requests_processing",
        "peak_waiting": "llamacpp:requests_deferred",
    }

    def refusals(self, arm: Arm) -> Sequence[Refusal]:
        """Return the axes that llama.cpp lacks, where the arm sets them."""
        found = [_lacks(name, arm.axes) for name in AXES if _is_foreign(name, arm.axes)]
        if arm.acceptance.mode != "real" or arm.method != "none":
            found.append(
                Refusal("unsupported-method", "llamacpp runs without speculation here", "k")
            )
        slots = arm.options.get("parallel")
        if slots is not None and arm.axes.max_num_seqs not in (None, slots):
            sentence = f"max-num-seqs {arm.axes.max_num_seqs} and parallel {slots} are one thing"
            found.append(Refusal("option-conflict", sentence, "max_num_seqs"))
        return found

    def launch(self, arm: Arm, host: str, port: int, folder: Path, nonce: str = "") -> Launch:
        """Return the command of `infx.frameworks.serve_llamacpp`. It repeats no nonce."""
        argv = [sys.executable, "-P", "-m", "infx.frameworks.serve_llamacpp"]
        argv += ["--model", str(gguf_file(arm.model.weights)), "--alias", arm.model.name]
        argv += ["--host", host, "--port", str(port)]
        for name, value in self._flags(arm).items():
            argv += [self.options[name].flag, str(value)]
        if arm.axes.prefix_caching is not None:
            argv.append("--cache-prompt" if arm.axes.prefix_caching else "--no-cache-prompt")
        return Launch(argv=tuple(argv), env=arm.env)

    def tokenizer(self, arm: Arm, folder: Path) -> str:
        """Return ``folder`` with the tokenizer of the GGUF file, or what the recipe names."""
        if arm.model.tokenizer != "gguf":
            return arm.model.tokenizer
        return str(write_tokenizer(gguf_file(arm.model.weights), folder))

    def resolved(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return slots and context of /props (a slot's context is rounded up to 256 tokens)."""
        props = answers.get("/props", {})
        settings = props.get("default_generation_settings", {})
        slots = props.get("total_slots")
        return {
            "parallel": slots,
            "max_num_seqs": slots,
            "slot_context": settings.get("n_ctx"),
            "weights_file": props.get("model_path"),
            "weights_type": props.get("model_ftype"),
            "build": props.get("build_info"),
        }

    def acceptance(self, answers: Mapping[str, Any]) -> Acceptance | None:
        """Return real acceptance: this engine knows no other."""
        return Acceptance()

    def nonce(self, answers: Mapping[str, Any]) -> str | None:
        """Return None: the server repeats nothing."""
        return None

    def counters(self, before: str, after: str) -> EngineCounters:
        """Return the share of prompt tokens that came from the cache of earlier prompts."""
        start, end = parse(before), parse(after)
        computed = end.since(start, "llamacpp:prompt_tokens_total")
        cached = end.since(start, "llamacpp:prompt_tokens_cached_total")
        if computed is None or cached is None or not computed + cached:
            return EngineCounters()
        return EngineCounters(prefix_cache_hit_share=cached / (computed + cached))

    def _flags(self, arm: Arm) -> dict[str, Any]:
        flags = {name: value for name, value in arm.options.items() if value is not None}
        slots = flags.setdefault("parallel", arm.axes.max_num_seqs or 1)
        if arm.axes.max_model_len:
            flags.setdefault("ctx-size", arm.axes.max_model_len * int(str(slots)))
        return flags


def _is_foreign(name: str, axes: Axes) -> bool:
    axis = AXES[name]
    if axis.metadata["kind"] == "load" or name in CAPACITY_AXES:
        return False
    return bool(getattr(axes, name) != axis.default)


def _lacks(name: str, axes: Axes) -> Refusal:
    value = getattr(axes, name)
    sentence = f"llamacpp has no {kebab(name)}: {value} cannot be set"
    return Refusal("unsupported-axis", sentence, name)
