"""``python -m infx.engine.train``: make the `mini` checkpoint.

    target    train the target, write OUT/mini/, score it
    drafts    train EAGLE3 and DSpark on a checkpoint's target, write them beside it, measure
    all       both, one after the other

Exit codes: 0 done, 2 a bad option, 3 no space left, 130 interrupted (continue with --resume).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from infx.domain.errors import InfxError, UsageError

if TYPE_CHECKING:
    from infx.engine.train.pretraining import Place

__all__ = ["main"]

MOST_WORKERS = 14
LEAST_STEPS = 10


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    options = _parser().parse_args(argv)
    try:
        options.run(options, _place(options))
    except InfxError as error:
        print(f"{error.code} {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted: go on with --resume", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m infx.engine.train",
        description="Make the mini checkpoint: a target trained on generated word problems, and its"
        " EAGLE3 and DSpark drafts. A quarter of an hour on one H200; on a CPU only small runs make"
        " sense. State is saved every minute: --resume continues.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    target = commands.add_parser("target", help="train the target and score it")
    drafts = commands.add_parser("drafts", help="train both drafts of a target and measure them")
    both = commands.add_parser("all", help="target, then drafts")
    for command, run in ((target, _target), (drafts, _drafts), (both, _all)):
        command.set_defaults(run=run)
        _add_shared(command)
    for command in (target, both):
        _add_target(command)
    for command in (drafts, both):
        _add_drafts(command)
    drafts.add_argument(
        "--target",
        metavar="SOURCE",
        help="the target: a checkpoint's folder, or shipped (default: OUT/mini)",
    )
    return parser


def _add_shared(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--out", type=Path, default=Path("mini-run"), help="folder of the run (%(default)s)")
    add("--resume", action="store_true", help="continue the run that --out holds")
    add("--seed", type=_natural, default=1, help="of weights and conversations (%(default)s)")
    add("--device", default="auto", help="auto, cpu or cuda[:N] (%(default)s)")
    add(
        "--workers",
        type=_natural,
        default=max(0, min(MOST_WORKERS, (os.cpu_count() or 1) - 2)),
        help="processes that write conversations (%(default)s here)",
    )
    add(
        "--questions",
        type=_natural,
        default=500,
        help="of each evaluation; 0: none (%(default)s)",
    )


def _add_target(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    least = f"at least {LEAST_STEPS}"
    add("--steps", type=_steps, default=7500, help=f"of the target, {least} (%(default)s)")
    add("--length", type=_length, default=3456, help="tokens a conversation (%(default)s)")
    add("--batch", type=_positive, default=21, help="conversations a step (%(default)s)")


def _add_drafts(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--eagle3-steps", type=_steps, default=600, help="of the EAGLE3 draft (%(default)s)")
    add("--dspark-steps", type=_steps, default=1000, help="of the DSpark draft (%(default)s)")
    add("--draft-length", type=_length, default=2304, help="tokens a conversation (%(default)s)")
    add("--draft-batch", type=_positive, default=16, help="conversations a step (%(default)s)")


def _number(least: int, multiple: int = 1) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or len(text) > 9 or int(text) < least or int(text) % multiple:
            wanted = f"a whole number of at least {least}"
            wanted += f" and a multiple of {multiple}" if multiple > 1 else ""
            raise argparse.ArgumentTypeError(f"{text!r}: expected {wanted}")
        return int(text)

    return parse


_natural, _positive, _steps = _number(0), _number(1), _number(LEAST_STEPS)
# A third of it is the short phase's length, and blocks have 16 tokens. Flex attention wants 128.
_length = _number(384, 384)


def _place(options: argparse.Namespace) -> Place:
    import torch

    from infx.engine.train.pretraining import Place
    from infx.engine.train.state import Folder

    name = options.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        sentence = f"--device {name}: {reason}; expected auto, cpu or cuda[:N] of this machine"
        raise UsageError("bad-option", sentence) from error
    return Place(device, Folder(options.out, options.resume), options.workers)


def _target(options: argparse.Namespace, place: Place) -> None:
    from infx.engine.train.commands import make_target
    from infx.engine.train.pretraining import Recipe

    recipe = Recipe(options.steps, options.length, options.batch, options.seed)
    make_target(recipe, place, options.questions)


def _drafts(options: argparse.Namespace, place: Place) -> None:
    if not options.target and not (options.out / "mini").is_dir():
        sentence = f"--out {options.out}: holds no target; train one first, or name --target"
        raise UsageError("bad-option", sentence)
    _make_drafts(options, place, options.target or str(options.out / "mini"))


def _all(options: argparse.Namespace, place: Place) -> None:
    _target(options, place)
    _make_drafts(options, place, str(options.out / "mini"))


def _make_drafts(options: argparse.Namespace, place: Place, source: str) -> None:
    from infx.engine.train.commands import make_draft
    from infx.engine.train.draft_training import DraftRecipe

    size = (options.draft_length, options.draft_batch)
    eagle3 = DraftRecipe("eagle3", options.eagle3_steps, *size, bases=384, seed=options.seed)
    dspark = DraftRecipe("dspark", options.dspark_steps, *size, bases=128, seed=options.seed)
    for recipe in (eagle3, dspark):
        make_draft(recipe, place, source, options.questions)


if __name__ == "__main__":
    sys.exit(main())
