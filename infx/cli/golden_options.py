"""The options that `infx golden collect` and `infx golden check` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    "Seed",
    "Shots",
    "Temperature",
    "Thinking",
    "TopK",
    "TopP",
    "Url",
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
