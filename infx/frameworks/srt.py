"""A job as a recipe of NVIDIA's srt-slurm (schema 2): one aggregated worker on one node.

Facts of srtctl 2.18 to main, August to October 2026, from the files of github.com/NVIDIA/srt-slurm:
docs/schema-reference.md (keys), docs/topology.md (roles, placement), docs/frontends.md and
docs/engines.md (direct servers, what srtctl sets itself), src/srtctl/backends/*.py (how ``args``
become words of a command), core/runtime.py (``hf:`` paths, mounts). ``tests/launch/srt/facts.json``
holds what is relied on.

``args`` are the engine's own flags: true is a bare flag, false and null say nothing, a list is
several words, anything else one. TensorRT-LLM's are the keys of its YAML file instead.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from infx.domain.findings import Finding
from infx.domain.plan import Job
from infx.domain.point import Agentic, Arm, FixedLengths, Point
from infx.frameworks import get
from infx.frameworks.base import Framework, Launch

__all__ = ["SrtPlace", "SrtRecipe", "expressible", "recipe"]

PORT = 8000
MARGIN_S = 300
"""By so much the scheduler's limit is later than the job's own, as in infx's Slurm jobs."""

HEALTH_INTERVAL_S = 10


@dataclass(frozen=True, slots=True)
class _Engine:
    """``type`` of srt's engine, the ``frontend`` that serves one worker of it, the flags that
    srtctl sets ``itself`` (left out) and those that it ``refuses``; ``underscores`` True where a
    flag keeps its own (elsewhere srtctl writes hyphens)."""

    frontend: str
    itself: frozenset[str]
    options: Mapping[str, Any] = field(default_factory=dict)
    refuses: frozenset[str] = frozenset()
    underscores: bool = False


_PLACE_FLAGS = frozenset({"host", "port", "nnodes", "node-rank"})

ENGINES: Mapping[str, _Engine] = {
    "vllm": _Engine(
        "vllm",
        _PLACE_FLAGS | {"model", "headless", "master-addr"},
        {"connector": None},  # by default srtctl adds a KV connector, which no arm asked for
    ),
    "sglang": _Engine(
        "sglang", _PLACE_FLAGS | {"model", "model-path", "nccl-port", "dist-init-addr", "grpc-port"}
    ),
    "atom": _Engine(
        "atomesh",
        frozenset({"model", "host", "server-port", "tp", "tensor-parallel-size"}),
        refuses=frozenset({"kv-transfer-config"}),
        underscores=True,
    ),
    "trtllm": _Engine(
        "trtllm_serve",
        _PLACE_FLAGS | {"served-model-name", "config", "extra-llm-api-options"},
        underscores=True,
    ),
}

# trtllm-serve's words for keys of its YAML file.
_TRTLLM_KEYS = {
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "ep_size": "moe_expert_parallel_size",
}
# Flags of its HTTP server, which no key of the file reaches.
_TRTLLM_SERVER = frozenset({"tool_parser", "chat_template", "metadata_server_config_file"})


Client = Callable[[Arm, Sequence[Point], Framework, Launch], str]
"""Makes the benchmark's command: of an arm, its points, its engine and its launch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SrtPlace:
    """What a recipe takes from the site: accelerators a node, the scheduler's names ("": those of
    srtslurm.yaml), a recipe's weights to a path or alias there, the image of the client."""

    gpus_per_node: int
    partition: str = ""
    account: str = ""
    models: Mapping[str, str] = field(default_factory=dict)
    client: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SrtRecipe:
    """``content`` is the YAML's; an error among the ``findings`` says that it is not the job."""

    content: Mapping[str, Any]
    points: tuple[Point, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def sound(self) -> bool:
        """True when it measures what the job's throughput points ask."""
        return not any(finding.level == "error" for finding in self.findings)


def expressible(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the points that a client in a container can measure: the throughput ones."""
    return tuple(point for point in points if point.mode == "throughput")


def recipe(job: Job, place: SrtPlace, client: Client, *, name: str, container: str) -> SrtRecipe:
    """Return the recipe of a job's throughput points, as the srt job ``name`` in the image
    ``container`` (a reference as pyxis writes it, a path or an alias there); without content where
    it cannot be said, or where the arm has a recipe of its own."""
    arm, points = _placed(job.arm, place), expressible(job.points)
    faults, remarks = list(_faults(job, arm, points, place)), tuple(_remarks(job, points))
    if any(fault.level == "error" for fault in faults):
        return SrtRecipe(content={}, points=points, findings=tuple(faults))
    if not points or arm.delegated:
        return SrtRecipe(content={}, points=points, findings=(*faults, *remarks))
    engine, framework = ENGINES[arm.framework], get(arm.framework)
    launch = framework.launch(arm, "0.0.0.0", PORT, Path("/logs"))
    args, extra, unsaid = _arguments(arm, engine, launch)
    faults += [_error(f"{job.name}: {sentence}") for sentence in unsaid]
    command = client(arm, points, framework, launch)
    content = _head(job, arm, place, name, container) | {
        "engine": _engine(arm, engine),
        "roles": {"agg": _role(arm, launch, args, extra)},
        "frontend": {
            "type": engine.frontend,
            "enable_multiple_frontends": False,
            "placement": {"node": "head"},
        },
        "health_check": {
            "max_attempts": math.ceil(arm.start_limit_s / HEALTH_INTERVAL_S),
            "interval_seconds": HEALTH_INTERVAL_S,
        },
        "benchmark": _benchmark(points, command, place.client),
    }
    if traces := sorted({t for p in points if (t := _trace(p)).startswith("/")}):
        content["extra_mount"] = [f"{trace}:{trace}" for trace in traces]
    findings = (*faults, *(() if unsaid else remarks))
    return SrtRecipe(content=content, points=points, findings=findings)


def _placed(arm: Arm, place: SrtPlace) -> Arm:
    weights = place.models.get(arm.model.weights, arm.model.weights)
    return replace(arm, model=replace(arm.model, weights=weights))


def _head(job: Job, arm: Arm, place: SrtPlace, name: str, container: str) -> dict[str, Any]:
    limit_s, weights = job.time_limit_s + MARGIN_S, job.arm.model.weights
    precision = arm.model.precision
    model = {"path": arm.model.weights, "container": container, "precision": precision}
    identity: dict[str, Any] = {"container": {"image": arm.image}}
    if weights.startswith("hf:"):
        repo = {"repo": weights.removeprefix("hf:"), "revision": arm.model.revision or None}
        identity["model"] = {key: value for key, value in repo.items() if value}
    slurm = {"account": place.account, "partition": place.partition, "time_limit": _clock(limit_s)}
    return {
        "schema": 2,
        "name": name,
        "model": model,
        "identity": identity,
        "resources": {"gpu_type": arm.hardware, "gpus_per_node": place.gpus_per_node},
        "slurm": {key: value for key, value in slurm.items() if value},
    }


def _role(
    arm: Arm, launch: Launch, args: Mapping[str, Any], extra: Sequence[str]
) -> dict[str, Any]:
    role: dict[str, Any] = {"nodes": 1, "workers": 1, "gpus": arm.gpus}
    role |= {"env": dict(launch.env), "args": dict(args)}
    return role | ({"extra_args": list(extra)} if extra else {})


def _engine(arm: Arm, engine: _Engine) -> Any:
    options = dict(engine.options)
    if arm.framework == "trtllm":
        options["served_model_name"] = arm.model.name
    return {"type": arm.framework, **options} if options else arm.framework


def _trace(point: Point) -> str:
    load = point.workload
    return load.trace if isinstance(load, Agentic) else ""


def _benchmark(points: Sequence[Point], command: str, client: str) -> dict[str, Any]:
    content: dict[str, Any] = {
        "type": "custom",
        "concurrencies": sorted({point.conc for point in points}),
        "placement": {"node": "head"},
        "command": command,
    }
    return content | ({"container_image": client} if client else {})


def _clock(seconds: int) -> str:
    minutes = math.ceil(seconds / 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:00"


# What a recipe cannot say


def _faults(job: Job, arm: Arm, points: Sequence[Point], place: SrtPlace) -> Iterator[Finding]:
    weights = arm.model.weights
    if arm.framework not in ENGINES:
        known = ", ".join(ENGINES)
        yield _error(f"{job.name}: srt-slurm has no engine {arm.framework}: it has {known}")
    elif arm.image.startswith("pypi:"):
        yield _error(f"{job.name}: srt-slurm runs container images, and {arm.image} is a package")
    if not weights.startswith(("hf:", "/", "~")) and weights == job.arm.model.weights:
        yield _error(f"{job.name}: the weights {weights} are no path there, and no hf: model")
    if not arm.accelerators:
        text = "a node of the cluster has no accelerators, which srt-slurm's workers need"
        yield _error(f"{job.name}: {text}")
    elif arm.gpus > place.gpus_per_node and not arm.delegated:
        text = f"{job.name}: it needs {arm.gpus} accelerators of a node, which has"
        yield _error(f"{text} {place.gpus_per_node}")
    left = len(job.points) - len(points)
    if left:
        text = f"{left} of its points are evaluations, which are left out"
        yield Finding("srt-unsupported", "warning", f"{job.name}: {text}")


def _remarks(job: Job, points: Sequence[Point]) -> Iterator[Finding]:
    if any(isinstance(point.workload, FixedLengths) for point in points):
        text = "prompts are aiperf's own: the tokens of the chat template come on top of isl"
        yield Finding("srt-prompts", "info", f"{job.name}: {text}")


def _error(sentence: str) -> Finding:
    return Finding("srt-unsupported", "error", sentence)


# The engine's words as a mapping


def _arguments(
    arm: Arm, engine: _Engine, launch: Launch
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return ``args``, ``extra_args``, and what they cannot say. TensorRT-LLM's file of settings is
    the ground that its flags stand over."""
    texts = launch.files.values() if arm.framework == "trtllm" else ()
    args: dict[str, Any] = {key: v for text in texts for key, v in json.loads(text).items()}
    extra: list[str] = []
    faults: list[str] = []
    seen: set[str] = set()
    for flag, values in _flags(launch.argv):
        if flag.replace("_", "-") in engine.itself:
            continue
        if fault := _unsaid(arm, engine, flag, flag in seen):
            faults.append(fault)
        elif arm.framework == "trtllm" and flag in _TRTLLM_SERVER:
            extra += [f"--{flag}", *values]
        else:
            key = _TRTLLM_KEYS.get(flag, flag) if arm.framework == "trtllm" else flag
            args[key] = _value(values)
        seen.add(flag)
    return args, extra, faults


def _unsaid(arm: Arm, engine: _Engine, flag: str, twice: bool) -> str:
    if flag.replace("_", "-") in engine.refuses:
        return f"srtctl gives {arm.framework} no --{flag}: it writes that itself"
    if "_" in flag and not engine.underscores:
        return f"srtctl would write --{flag} with hyphens"
    return f"--{flag} stands twice, and a mapping has one" if twice else ""


def _flags(argv: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each flag without its hyphens, with the words that follow it; what stands before the
    first is the program."""
    first = next((n for n, word in enumerate(argv) if word.startswith("--")), len(argv))
    flag, values = "", list[str]()
    for word in argv[first:]:
        if re.match(r"--?[A-Za-z]", word):
            if flag:
                yield flag, values
            name, equals, value = word.partition("=")
            flag, values = name.lstrip("-"), [value] if equals else []
        else:
            values.append(word)
    if flag:
        yield flag, values


def _value(words: Sequence[str]) -> Any:
    if not words:
        return True
    read = [_number(word) for word in words]
    return read[0] if len(read) == 1 else read


def _number(word: str) -> Any:
    """Return a number where YAML's would be written as the same word again."""
    for kind in (int, float):
        try:
            number = kind(word)
        except ValueError:
            continue
        if str(number) == word and math.isfinite(number):
            return number
    return word
