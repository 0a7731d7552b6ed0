"""Run by vLLM's own interpreter: what its parser holds, and whether it takes command lines.

``python vllm_parser.py < LINES > ANSWER``: LINES is a JSON list of command lines after
``vllm serve``; the answer holds the parser's flags, the words that ended each parse ("": it was
taken), and the fields and methods of its speculative configuration.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields
from io import StringIO
from typing import Any, get_args


def main() -> None:
    lines = json.load(sys.stdin)
    with redirect_stdout(sys.stderr):
        answer = answered(lines)
    json.dump(answer, sys.stdout)


def answered(lines: list[list[str]]) -> dict[str, Any]:
    from vllm.config.speculative import SpeculativeConfig, SpeculativeMethod
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = make_arg_parser(FlexibleArgumentParser(prog="vllm serve"))
    named = [action for action in parser._actions if action.option_strings]
    return {
        "flags": [described(action) for action in named if "--help" not in action.option_strings],
        "refused": [refused(parser, line) for line in lines],
        "speculation": [field.name for field in fields(SpeculativeConfig)],
        "methods": list(flat(SpeculativeMethod)),
    }


def described(action: argparse.Action) -> dict[str, Any]:
    choices = [str(choice) for choice in action.choices or ()]
    return {"spellings": action.option_strings, "kind": kind(action), "choices": sorted(choices)}


def kind(action: argparse.Action) -> str:
    """The kind of the data file, by what the action takes for a number; JSON is text for us."""
    if action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction):
        return "bool"
    if action.nargs in ("+", "*"):
        return "tuple"
    if takes(action, "{}") or not takes(action, "1"):
        return "str"
    return "float" if takes(action, "1.5") else "int"


def takes(action: argparse.Action, word: str) -> bool:
    try:
        return callable(action.type) and not isinstance(action.type(word), str)
    except (ValueError, TypeError, argparse.ArgumentTypeError):
        return False


def refused(parser: argparse.ArgumentParser, line: list[str]) -> str:
    said = StringIO()
    try:
        with redirect_stderr(said):
            parser.parse_args(line)
    except SystemExit:
        return said.getvalue().strip() or "ended"
    return ""


def flat(literal: Any) -> Any:
    for item in get_args(literal):
        yield from flat(item) if get_args(item) else [item]


main()
