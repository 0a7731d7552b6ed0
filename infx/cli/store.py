"""infx store: runs and live curves to a place that machines share, and from there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infx.cli.options import Json, Results

if TYPE_CHECKING:
    from infx.domain.findings import Finding
    from infx.domain.point import Point
    from infx.store.exchange import Guard, Incoming, Place, Pulled, Pushed, Sent
    from infx.store.live import Live

__all__ = ["register"]

PlaceArgument = Annotated[
    str,
    typer.Argument(
        metavar="PLACE", help="a folder, a .tar.gz file, git:BRANCH or git:REMOTE/BRANCH"
    ),
]

_SAID = {
    "new": "is there now",
    "newer": "is there as it is now",
    "more files": "is there with more files",
    "kept": "was there already",
    "older": "is there in a newer state, which stays",
}
_CAME = {
    "new": "is here now",
    "newer": "is here as it is there",
    "more files": "is here with more files",
    "kept": "was here already",
    "older": "is here in a newer state, which stays",
}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    commands = typer.Typer(help="Runs and live curves to a place that machines share, and back.")
    commands.command("push", help="Bring runs to a place; --live: publish what they measured.")(
        _push
    )
    commands.command("pull", help="Bring runs and the live curves from a place.")(_pull)
    app.add_typer(commands, name="store", no_args_is_help=True)


def _push(
    place: PlaceArgument,
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="names of runs, or last")],
    live: Annotated[
        bool, typer.Option("--live", help="their entries' live curves are what they measured")
    ] = False,
    drop_points: Annotated[
        bool, typer.Option("--drop-points", help="with --live: points may leave the live curves")
    ] = False,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE", help="with --live: publish what infx ci plan -o wrote"
        ),
    ] = None,
    light: Annotated[
        bool, typer.Option("--light", help="leave heavy exports behind: judged records stand")
    ] = False,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.analysis.validity import judge
    from infx.cli.options import existing_store, results_dir
    from infx.cli.transfer import meter
    from infx.plan.saved import read_plan
    from infx.store import find_run
    from infx.store.exchange import push

    _need_live(live, "--drop-points" if drop_points else "--plan" if plan else "")
    shown = read_plan(plan) if plan else None
    there = _place(place)
    with existing_store(results_dir(results)) as store, meter() as progress:
        rows = {run.run_id: run for run in (find_run(store, name) for name in runs)}
        guard = _guard(drop_points) if live else None
        sent = push(
            store,
            there,
            [*rows.values()],
            judge,
            light=light,
            guard=guard,
            plan=shown,
            progress=progress,
        )
    return _tell_sent(there, sent, as_json)


def _need_live(live: bool, option: str) -> None:
    from infx.domain.errors import UsageError

    if option and not live:
        hint = "see infx store push --help"
        raise UsageError("bad-option", f"{option} needs --live", hint=hint)


def _guard(drop_points: bool) -> Guard:
    from infx.ci.reuse import dropped

    def anything(live: Sequence[Point], published: Sequence[Point]) -> tuple[Finding, ...]:
        return ()

    return anything if drop_points else dropped


def _place(text: str) -> Place:
    """Return the place. Raises UsageError."""
    from infx.cli.options import working_folder
    from infx.forge.revisions import git
    from infx.store.exchange import place_of

    here = working_folder()
    remotes = git(here, "remote").stdout.decode().split() if text.startswith("git:") else []
    return place_of(text, here, remotes)


def _tell_sent(place: Place, sent: Sent, as_json: bool) -> int:
    from infx.cli.output import emit, say

    if as_json:
        runs = [_sent_data(one) for one in sent.pushed]
        data = {"place": place.shown, "runs": runs, "live": _live_data(sent.live)}
        emit("store-push", data, ok=not sent.refused, diagnostics=sent.refused)
        return 1 if sent.refused else 0
    for one in sent.pushed:
        stands = f"{_how_far(one)}, {_size(one.size_bytes)} in {place.shown}"
        print(f"run {one.run_id} {_SAID[one.what]}: {stands}")
        if one.left:
            say(f"left behind: {_named_sizes(one.left)}")
    _tell_live(sent.live)
    for finding in sent.refused:
        say(f"infx: {finding}")
    if sent.refused:
        say(f"nothing was pushed to {place.shown}; --drop-points publishes without these points")
    return 1 if sent.refused else 0


def _tell_live(live: Live | None) -> None:
    for name, points in (live.entries if live else {}).items():
        runs = ", ".join(sorted({one.run_id for one in points}))
        print(f"live: {name}, {len(points)} points of {runs}")


def _how_far(one: Pushed | Pulled) -> str:
    from infx.store.exchange import Pushed

    done, whole = one.state.done if isinstance(one, Pushed) else one.done
    under_way = one.state.under_way if isinstance(one, Pushed) else one.under_way
    return f"{done} of {whole} points done" + (", under way" if under_way else "")


def _sent_data(one: Pushed) -> dict[str, Any]:
    done, whole = one.state.done
    return {
        "run_id": one.run_id,
        "what": one.what,
        "points_done": done,
        "points": whole,
        "under_way": one.state.under_way,
        "size_bytes": one.size_bytes,
        "left": dict(one.left),
    }


def _live_data(live: Live | None) -> dict[str, Any] | None:
    if live is None:
        return None
    return {
        name: {
            "runs": sorted({one.run_id for one in points}),
            "points": [one.point.label for one in points],
        }
        for name, points in live.entries.items()
    }


def _pull(
    place: PlaceArgument,
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN…]", help="names of runs there (default: all)"),
    ] = None,
    results: Results = None,
    as_json: Json = False,
) -> int:
    from infx.cli.options import project, results_dir
    from infx.cli.transfer import meter
    from infx.launch.runs import open_store
    from infx.store.exchange import pull

    there = _place(place)
    with open_store(results_dir(results)) as store, meter() as progress:
        incoming = pull(store, there, runs or (), project().root, progress)
    return _tell_incoming(there, incoming, as_json)


def _tell_incoming(place: Place, incoming: Incoming, as_json: bool) -> int:
    from infx.cli.output import emit, say

    first, *more = incoming.refused or (None,)
    if as_json:
        if first:
            raise first
        data = {"place": place.shown, "runs": incoming.pulled, "live": _live_data(incoming.live)}
        emit("store-pull", data)
        return 0
    for one in incoming.pulled:
        print(f"run {one.run_id} {_CAME[one.what]}: {_how_far(one)}")
        if one.elsewhere:
            say(f"its jobs write to {one.elsewhere}: it goes on there")
        elif one.under_way and one.executor == "local":
            say("its jobs run on the machine that it came from: wait for it there")
    _tell_live(incoming.live)
    for error in more:
        say(f"infx: {error.code}: {error}")
    if first:
        raise first
    if not incoming.pulled:
        say(f"{place.shown} holds no run")
    return 0


def _named_sizes(left: Any) -> str:
    shown = sorted(left.items(), key=lambda pair: -pair[1])
    first = ", ".join(f"{Path(name).name} {_size(size)}" for name, size in shown[:3])
    return f"{len(shown)} files, {_size(sum(left.values()))}: {first}" + (" …" if shown[3:] else "")


def _size(size_bytes: int) -> str:
    if size_bytes < 1 << 20:
        return f"{size_bytes / 1024:.0f} KiB"
    return f"{size_bytes / (1 << 20):.1f} MiB"
