"""Runs lm-eval: ``lm_eval_main.py RUNS``, RUNS a JSON list of [model, arguments, task files].

Prints a JSON list: for each run its results by task, and each sample's responses.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def run(model: str, arguments: dict[str, Any], tasks: list[str]) -> dict[str, Any]:
    import lm_eval
    from lm_eval.tasks import TaskManager

    found = lm_eval.simple_evaluate(
        model=model,
        model_args=arguments,
        tasks=tasks,
        task_manager=TaskManager(include_defaults=False),
        apply_chat_template=model == "local-chat-completions",
        bootstrap_iters=0,
    )
    responses = {
        task: [sample["resps"] for sample in sorted(samples, key=lambda one: one["doc_id"])]
        for task, samples in found["samples"].items()
    }
    return {"results": found["results"], "responses": responses}


def main() -> None:
    from lm_eval import utils

    # They are imported only to report their versions, 5 s of CPU.
    utils.is_torch_available = utils.is_transformers_available = lambda: False
    print(json.dumps([run(*one) for one in json.loads(sys.argv[1])], default=str))


if __name__ == "__main__":
    main()
