"""What may be typed after `infx golden collect` and `check`, and what every request then asks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from infx.golden.curve import Sampling
    from infx.golden.prompts import Prompts

__all__ = [
    "Conc",
    "Count",
    "Framework",
    "Hardware",
    "Ks",
    "KwargsOff",
    "KwargsOn",
    "Matrices",
    "ModelId",
    "OutputLen",
    "PromptFile",
    "Sampled",
    "Seed",
    "Shots",
    "Temperature",
    "Thinking",
    "TopK",
    "TopP",
    "Url",
    "asked_prompts",
    "chosen",
    "k_range",
    "modes",
]

Matrices = Annotated[
    list[str] | None,
    typer.Option("-c", "--config", metavar="MATRIX", help="the matrix that has the entry"),
]
Url = Annotated[
    str | None,
    typer.Option("--url", metavar="http://HOST:PORT", help="a running server, at the K it has"),
]
Ks = Annotated[
    str | None, typer.Option("--k", metavar="RANGE", help="draft tokens: 3, 1-7 or 1,3,5-8")
]
Thinking = Annotated[
    str | None, typer.Option("--thinking", metavar="MODES", help="on, off, or on,off")
]
PromptFile = Annotated[
    Path | None,
    typer.Option("--prompts", metavar="FILE", help="prompts (text lines, or .jsonl) to ask"),
]
Count = Annotated[int | None, typer.Option("--count", min=2, help="prompts to ask")]
Shots = Annotated[int | None, typer.Option("--shots", min=0, help="worked examples before each")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="seed of questions and sampling")]
Conc = Annotated[
    int | None, typer.Option("--conc", min=1, help="prompts at a time: a batch of the interval")
]
Temperature = Annotated[
    float | None, typer.Option("--temperature", min=0, help="sampling temperature; 0: greedy")
]
TopP = Annotated[float | None, typer.Option("--top-p", min=0, max=1, help="nucleus sampling")]
TopK = Annotated[int | None, typer.Option("--top-k", min=0, help="likeliest tokens; 0: all")]
OutputLen = Annotated[
    int | None, typer.Option("--output-len", min=1, help="most tokens of an answer")
]
Framework = Annotated[
    str, typer.Option("--framework", metavar="NAME", help="the engine of --url, as infx calls it")
]
ModelId = Annotated[
    str, typer.Option("--model", metavar="ID", help="the model of --url (default: its only one)")
]
Hardware = Annotated[
    str, typer.Option("--hardware", metavar="TEXT", help="what it runs on (default: this machine)")
]
KwargsOn = Annotated[
    str | None,
    typer.Option(
        "--kwargs-on", metavar="JSON", help="chat_template_kwargs of thinking (MiniMax-M3's)"
    ),
]
KwargsOff = Annotated[
    str | None,
    typer.Option("--kwargs-off", metavar="JSON", help="chat_template_kwargs without thinking"),
]

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_MOST_K = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """The options about prompts and sampling, as typed (None: not given)."""

    prompt_file: Path | None
    count: int | None
    shots: int | None
    seed: int | None
    conc: int | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    output_len: int | None
    kwargs: Mapping[str, str | None]

    def over(self, sampling: Sampling) -> Sampling:
        """Return ``sampling`` with what was typed in its place. Raises UsageError."""
        from infx.domain.errors import UsageError

        thinking = {mode: _kwargs(mode, text) for mode, text in self.kwargs.items() if text}
        typed = {
            "dataset": str(self.prompt_file) if self.prompt_file else None,
            "prompts": self.count,
            "shots": self.shots,
            "seed": self.seed,
            "batch": self.conc,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "output_len": self.output_len,
            "thinking": {**sampling.thinking, **thinking},
        }
        changes: dict[str, Any] = {name: v for name, v in typed.items() if v is not None}
        found = replace(sampling, **changes)
        if found.prompts <= found.batch:
            message = f"--count {found.prompts} is one batch of --conc {found.batch}"
            hint = "an interval needs two batches or more"
            raise UsageError("bad-option", message, hint=hint)
        return found


def asked_prompts(sampling: Sampling) -> tuple[Sampling, Prompts]:
    """Return the prompts of ``sampling``, and it with what identifies them.

    Raises ConfigError for a file that holds other things, or too few.
    """
    from infx.golden.prompts import GSM_MINI, gsm_mini, prompt_file

    if sampling.dataset == GSM_MINI:
        found = gsm_mini(sampling.prompts, sampling.shots, sampling.seed)
    else:
        found = prompt_file(Path(sampling.dataset), sampling.prompts)
    return replace(sampling, content=found.content), found


def k_range(text: str) -> tuple[int, ...]:
    """Return the K of ``1-3,5``, ascending. Raises UsageError ``bad-option``."""
    from infx.domain.errors import UsageError

    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= _MOST_K:
            message = f"--k {text}: {part.strip()!r} is no K"
            raise UsageError("bad-option", message, hint="write 3, 1-7 or 1,3,5-8")
        found |= set(range(first, last + 1))
    return tuple(sorted(found))


def modes(text: str) -> tuple[str, ...]:
    """Return the thinking modes of ``on,off``. Raises UsageError ``bad-option``."""
    from infx.domain.errors import UsageError
    from infx.domain.vocabulary import THINKING

    found = [part.strip() for part in text.split(",")]
    for mode in found:
        if mode not in THINKING:
            message = f"--thinking {text}: {mode!r} is no mode"
            raise UsageError("bad-option", message, hint=f"expected {' or '.join(THINKING)}")
    return tuple(dict.fromkeys(found))


def chosen(
    lengths: Mapping[str, Mapping[int, float]], name: str, k: str | None, thinking: str | None
) -> list[tuple[str, int]]:
    """Return the pairs of thinking mode and K that were asked of a golden file (all: None).

    Raises UsageError (``golden-k-missing``) for one that it does not hold.
    """
    from infx.domain.errors import UsageError

    asked = modes(thinking) if thinking else tuple(lengths)
    pairs = [(m, one) for m in asked for one in (k_range(k) if k else lengths.get(m, ()))]
    missing = [f"K={one} thinking {m}" for m, one in pairs if one not in lengths.get(m, {})]
    if missing or not pairs:
        held = "; ".join(f"{m}: {', '.join(map(str, found))}" for m, found in lengths.items())
        message = f"{name} holds no {', '.join(missing) or f'length with thinking {thinking}'}"
        raise UsageError("golden-k-missing", message, hint=f"it holds {held or 'nothing'}")
    return pairs


def _kwargs(mode: str, text: str) -> dict[str, Any]:
    from infx.domain.errors import UsageError

    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        message = f"--kwargs-{mode} {text}: expected a JSON object"
        hint = """like '{"enable_thinking": true}'"""
        raise UsageError("bad-option", message, hint=hint)
    return found
