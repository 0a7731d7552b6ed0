"""One lm-eval run in a process of its own: ``python -m infx.job.lm_eval_run spec.json``.

Writes into the folder of the specification:

    progress.jsonl   {"total": N} when the requests are known, then {"answered": n} after each
    samples.jsonl    lm-eval's sample of each question and filter: requests, answers, what was read
    results.json     lm-eval's results, and how many answers were cut at the length limit; written
                     last: where it exists, the run is complete

Everything else goes to standard error. Exit 0 with results, 1 without.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

from infx.domain.serial import decode
from infx.job.agreement import REAL_ACCEPTANCE

__all__ = ["PROGRESS", "RESULTS", "SAMPLES", "LmEvalSpec", "choices_of"]

PROGRESS = "progress.jsonl"
RESULTS = "results.json"
SAMPLES = "samples.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class LmEvalSpec:
    """What to run: ``task`` is the path of a task's YAML, ``url`` the full chat endpoint.

    A request is sent ``attempts`` times at most and may take ``request_limit_s`` each time.
    """

    folder: str
    task: str
    url: str
    model: str
    conc: int
    shots: int
    limit: int | None
    seed: int
    max_tokens: int
    attempts: int
    request_limit_s: int


def run(spec: LmEvalSpec) -> None:
    """Evaluate the task and write its files. Raises whatever lm-eval raises."""
    import lm_eval
    from lm_eval import utils
    from lm_eval.tasks import TaskManager

    # A chat client computes no tensor; lm-eval would import torch and transformers only to report
    # their versions, 5 s of CPU.
    utils.is_torch_available = utils.is_transformers_available = lambda: False
    utils.setup_logging()
    folder = Path(spec.folder)
    with (folder / PROGRESS).open("w", encoding="utf-8") as progress:
        model = _model(spec, progress)
        results = lm_eval.simple_evaluate(
            model=model,
            tasks=[spec.task],
            num_fewshot=spec.shots,
            limit=spec.limit,
            apply_chat_template=True,
            fewshot_as_multiturn=True,
            gen_kwargs={"max_gen_toks": spec.max_tokens},
            task_manager=TaskManager(include_defaults=False),
            random_seed=spec.seed,
            numpy_random_seed=spec.seed,
            torch_random_seed=spec.seed,
            fewshot_random_seed=spec.seed,
        )
    _write(folder, results | {"cut": model.cut})


def _model(spec: LmEvalSpec, progress: TextIO) -> Any:
    from lm_eval.models.openai_completions import LocalChatCompletion

    class Chat(LocalChatCompletion):  # type: ignore[misc]
        """lm-eval's chat client, which tells how far it is and lets no bad answer pass."""

        answered = cut = 0

        @property
        def header(self) -> dict[str, str]:
            return {**super().header, **REAL_ACCEPTANCE}

        def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
            _tell(progress, {"total": len(requests)})
            return cast("list[str]", super().generate_until(requests, disable_tqdm=True))

        def parse_generations(self, outputs: Any, **kwargs: Any) -> list[str]:
            choices = choices_of(outputs)
            self.answered += 1
            self.cut += any(choice.get("finish_reason") == "length" for choice in choices)
            _tell(progress, {"answered": self.answered})
            return cast("list[str]", super().parse_generations(outputs, **kwargs))

    return Chat(
        base_url=spec.url,
        model=spec.model,
        num_concurrent=spec.conc,
        max_retries=spec.attempts,
        timeout=spec.request_limit_s,
        seed=spec.seed,
        max_gen_toks=spec.max_tokens,
    )


def choices_of(outputs: Any) -> list[dict[str, Any]]:
    """Return the choices of an answer. Raises ValueError where there are none, as in {"error": …}
    with status 200, or where one has no message: lm-eval scores both as an empty answer."""
    found = []
    for output in outputs if isinstance(outputs, list) else [outputs]:
        choices = output.get("choices") if isinstance(output, dict) else None
        if not choices:
            raise ValueError(f"the server's answer has no choices: {str(output)[:200]}")
        if not all(isinstance(c, dict) and isinstance(c.get("message"), dict) for c in choices):
            raise ValueError(f"the server's answer has a choice without message: {choices!s:.200}")
        found += choices
    return found


def _tell(progress: TextIO, line: dict[str, int]) -> None:
    progress.write(json.dumps(line) + "\n")
    progress.flush()


def _write(folder: Path, results: dict[str, Any]) -> None:
    from lm_eval.utils import handle_non_serializable

    samples = results.pop("samples")
    with (folder / SAMPLES).open("w", encoding="utf-8") as file:
        for task, rows in samples.items():
            for row in rows:
                line = {"task": task} | row
                file.write(json.dumps(line, default=handle_non_serializable) + "\n")
    text = json.dumps(results, default=handle_non_serializable, indent=2)
    partial = folder / f"{RESULTS}.part"
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(folder / RESULTS)


def _main() -> None:
    file = Path(sys.argv[1])
    run(decode(file.read_bytes(), LmEvalSpec, source=str(file)))


if __name__ == "__main__":
    _main()
