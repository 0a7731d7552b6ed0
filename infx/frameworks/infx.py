"""infx's own engine (`infx.engine`), launched as a program like any other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from infx.domain.acceptance import Acceptance, Law
from infx.domain.axes import AXES, kebab
from infx.domain.errors import EngineError
from infx.domain.point import Arm
from infx.domain.record import EngineCounters
from infx.frameworks.base import MONO_ROWS, Launch, Option, Paths, Refusal
from infx.frameworks.counting import acceptance_length, share, whole
from infx.frameworks.prometheus import Page, parse

__all__ = ["Infx"]

INFO = "/server_info"

# Axis -> flag, for the axes that are numbers with the engine's own default.
FLAGS = {
    "max_num_seqs": "--max-num-seqs",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "max_model_len": "--max-model-len",
    "block_size": "--block-size",
}

# What the engine does not have, so that a plan can say no.
MOST_DRAFTS = {"eagle3": 16, "dspark": 7}
SERVED_RANKS = (1, 2, 4)
FOREIGN = ("pp", "ep", "dp_attention", "kv_offload")


class Infx:
    """The engine of this repository: MiniMax-M3's architecture on a CPU."""

    name = "infx"
    methods: tuple[str, ...] = ("none", "eagle3", "dspark")
    laws: tuple[Law, ...] = ("min-variance", "geometric", "from-curve")
    paths = Paths()
    pages: tuple[str, ...] = (INFO, "/v1/models")
    options: Mapping[str, Option] = {
        option.name: option
        for option in (
            Option("shape", str, "--model", "shape of the model"),
            Option("dtype", str, "--dtype", "type of weights and activations"),
            Option("router-dtype", str, "--router-dtype", "type of the routers' weights"),
            Option("expert-dtype", str, "--expert-dtype", "what experts are rounded to"),
            Option(
                "projection-dtype", str, "--projection-dtype", "what projections are rounded to"
            ),
            Option("layers", str, "--layers", "what computes the layers: compiled or reference"),
            Option("threads", int, "--threads", "torch threads", capacity=True),
            Option("num-blocks", int, "--num-blocks", "cache pages", capacity=True),
            Option("queue-limit", int, "--queue-limit", "requests that may wait", capacity=True),
        )
    }
    gauges: Mapping[str, str] = {
        "peak_running": "infx:num_requests_running",
        "peak_waiting": "infx:num_requests_waiting",
        "kv_cache_usage_peak": "infx:kv_cache_usage",
    }

    def refusals(self, arm: Arm) -> Sequence[Refusal]:
        """Return what this build lacks: other numbers of ranks, other types, other drafts."""
        return list(_refusals(arm, self.methods))

    def launch(self, arm: Arm, host: str, port: int, folder: Path, nonce: str = "") -> Launch:
        """Return the engine's command; every axis that the arm sets stands in it."""
        argv = [sys.executable, "-P", "-m", "infx.engine", "--host", host, "--port", str(port)]
        argv += ["--served-model-name", arm.model.name, "--weights", arm.model.weights]
        for name, value in arm.options.items():
            argv += [self.options[name].flag, str(value)] if value is not None else []
        argv += [*_axis_flags(arm), *_speculation_flags(arm)]
        return Launch(argv=(*argv, *(("--nonce", nonce) if nonce else ())), env=arm.env)

    def tokenizer(self, arm: Arm, folder: Path) -> str:
        """Return ``folder`` with the engine's tokenizer, or what the recipe names.

        Raises EngineError (``tokenizer-unknown``) when the engine cannot write it.
        """
        if arm.model.tokenizer != "engine":
            return arm.model.tokenizer
        command = [sys.executable, "-P", "-m", "infx.engine.tokenizer", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise EngineError("tokenizer-unknown", f"{' '.join(command)} failed: {last}")
        return str(folder)

    def resolved(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the configuration that /server_info answers; it uses our names already."""
        info = answers.get(INFO, {})
        return dict(info.get("config", info))

    def acceptance(self, answers: Mapping[str, Any]) -> Acceptance | None:
        """Return the acceptance in /server_info; None when it is not there."""
        told = self.resolved(answers).get("acceptance")
        if not isinstance(told, Mapping) or "mode" not in told:
            return None
        known = ("mode", "length", "law", "k")
        curve = tuple(told.get("curve", ()))
        return Acceptance(**{name: told[name] for name in known if name in told}, curve=curve)

    def nonce(self, answers: Mapping[str, Any]) -> str | None:
        """Return the nonce in /server_info; None when the page is not there."""
        info = answers.get(INFO, {})
        told = info.get("nonce", self.resolved(answers).get("nonce"))
        return None if told is None else str(told)

    def counters(self, before: str, after: str) -> EngineCounters:
        """Return the realised acceptance length, preemptions, cache hits and mono's coverage."""
        start, end = parse(before), parse(after)
        steps = end.since(start, "infx:spec_verify_steps_total")
        accepted = end.since(start, "infx:spec_accepted_tokens_total")
        return EngineCounters(
            acceptance_length=acceptance_length(accepted, steps),
            verify_steps=whole(steps),
            preemptions=whole(end.since(start, "infx:num_preemptions_total")),
            prefix_cache_hit_share=_ratio(start, end, "prefix_cache_hits", "prefix_cache_queries"),
            mono_coverage=_ratio(start, end, "mono_steps", "mono_eligible_steps"),
            mono_share=_ratio(start, end, "mono_steps", "decode_steps"),
            mono_refusals=_growth(start, end, "infx:mono_refusals_total", "code"),
            refusals=_growth(start, end, "infx:refusals_total", "code"),
        )


def _refusals(arm: Arm, methods: Sequence[str]) -> Iterator[Refusal]:
    axes = arm.axes
    if axes.mono == "on":
        yield from _mono_refusals(arm)
    if axes.tp not in SERVED_RANKS:
        expected = ", ".join(map(str, SERVED_RANKS))
        yield Refusal("unsupported-tp", f"tp {axes.tp}: expected one of {expected}", "tp")
    for name in FOREIGN:
        if getattr(axes, name) != AXES[name].default:
            sentence = f"infx has no {kebab(name)}: {getattr(axes, name)}"
            yield Refusal("unsupported-axis", sentence, name)
    if axes.chunked_prefill is False:
        sentence = "infx computes every prompt in pieces: chunked-prefill cannot be false"
        yield Refusal("unsupported-axis", sentence, "chunked_prefill")
    if arm.options.get("dtype", "float32") != "float32":
        sentence = f"dtype {arm.options['dtype']}: expected float32"
        yield Refusal("unsupported-dtype", sentence, "dtype")
    if arm.axes.k > MOST_DRAFTS.get(arm.method, arm.axes.k):
        most = MOST_DRAFTS[arm.method]
        yield Refusal("too-many-drafts", f"{arm.method} makes at most {most} drafts a step", "k")
    if arm.method not in methods:
        yield Refusal("unsupported-method", f"method {arm.method!r}: expected {', '.join(methods)}")


def _mono_refusals(arm: Arm) -> Iterator[Refusal]:
    """Yield what the engine would say at its start, and then serve without mono."""
    axes, projections = arm.axes, arm.options.get("projection-dtype", "fp32")
    if axes.tp != 1:
        yield Refusal("mono-tp", f"mono: on with tp {axes.tp}: expected 1 on the CPU", "mono")
    if projections != "fp32":
        sentence = f"mono: on with projection-dtype {projections}: expected fp32 on the CPU"
        yield Refusal("mono-projections", sentence, "mono")
    if axes.k + 1 > MONO_ROWS:
        sentence = f"mono: on with {axes.k + 1} rows a request (K+1): expected {MONO_ROWS} at most"
        yield Refusal("mono-rows-per-request", sentence, "mono")
    if arm.options.get("layers", "compiled") != "compiled":
        sentence = f"mono: on with layers {arm.options['layers']}: mono is compiled layers"
        yield Refusal("option-conflict", sentence, "mono")


def _axis_flags(arm: Arm) -> Iterator[str]:
    axes = arm.axes
    for name, flag in FLAGS.items():
        if getattr(axes, name) is not None:
            yield from (flag, str(getattr(axes, name)))
    if axes.capture_sizes:
        yield from ("--capture-sizes", ",".join(map(str, axes.capture_sizes)))
    for name in ("kv_cache_dtype", "index_cache_dtype"):
        value = getattr(axes, name)
        yield from (f"--{kebab(name)}", "fp32" if value == "auto" else value)
    yield from ("--mono", axes.mono, "--tensor-parallel-size", str(axes.tp))
    if axes.prefix_caching is False:
        yield "--no-prefix-caching"


def _speculation_flags(arm: Arm) -> Iterator[str]:
    if arm.method == "none" or not arm.axes.k:
        return
    yield from ("--speculative-method", arm.method)
    yield from ("--num-speculative-tokens", str(arm.axes.k))
    acceptance = arm.acceptance
    if acceptance.curve:
        yield from ("--acceptance-curve", ",".join(map(str, acceptance.curve)))
    elif acceptance.mode == "synthetic":
        yield from ("--synthetic-acceptance-length", str(acceptance.length))
    if acceptance.mode == "synthetic":
        yield from ("--acceptance-law", acceptance.law)


def _ratio(start: Page, end: Page, part: str, of: str) -> float | None:
    names = (f"infx:{part}_total", f"infx:{of}_total")
    return share(*(end.since(start, name) for name in names))


def _growth(start: Page, end: Page, name: str, label: str) -> dict[str, int]:
    before = start.by_label(name, label)
    grown = {key: int(v - before.get(key, 0)) for key, v in end.by_label(name, label).items()}
    return {key: value for key, value in grown.items() if value}
