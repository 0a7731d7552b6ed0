"""From what was typed after `infx golden` to what every request asks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infx.golden.curve import Sampling
    from infx.golden.prompts import Prompts

__all__ = ["Sampled", "asked_prompts", "chosen", "k_range", "modes"]

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
