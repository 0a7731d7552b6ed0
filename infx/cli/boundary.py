"""The edge of the program: every error becomes one text or one JSON object, and an exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infx.domain.errors import InfxError

__all__ = ["INTERRUPTED", "interrupted", "lacking", "needing", "run"]

INTERRUPTED = 130
_RESUMED = ("sweep", "resume", "eval", "repro")
INTERNAL = 70
"""EX_SOFTWARE of sysexits.h: a fault of infx itself, told apart from every planned exit code."""


def run(command: Callable[[], Any], *, as_json: bool) -> int:
    """Run ``command`` and return the exit code; errors are told on stderr, or as JSON on stdout.

    With INFX_DEBUG=1 a traceback is printed for every error.
    """
    _open_streams()
    try:
        code = _run(command, as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output is gone (`infx status | head`); nothing is left to tell it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


@contextmanager
def needing(module: str, what: str, extra: str) -> Iterator[None]:
    """Turn the lack of an optional ``module``, which ``what`` needs, into UsageError
    ``bad-option``; ``extra`` is the part of infx that brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise lacking(module, what, extra) from error


def lacking(module: str, what: str, extra: str) -> InfxError:
    """Return the UsageError ``bad-option`` that `needing` raises."""
    from infx.domain.errors import UsageError

    hint = f"install it: pip install 'infx[{extra}]'"
    return UsageError("bad-option", f"{what} needs {module}", hint=hint)


def _open_streams() -> None:
    """Give /dev/null to standard streams that a caller closed (``infx status >&-``): a store or a
    lock opened later would get their numbers, and be written to by whoever prints."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _run(command: Callable[[], Any], as_json: bool) -> int:
    import typer

    try:
        code = command()
    except typer.Exit as exit_:
        return exit_.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _told(interrupted(), as_json)
    except SystemExit as exit_:
        if isinstance(exit_.__context__, BrokenPipeError):
            # typer exits with 1 here, which would read as findings
            raise exit_.__context__ from None
        raise
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - the process boundary
        # Versions of typer disagree on the class of a wrong command line, not on this method.
        return _usage(error, as_json) if hasattr(error, "format_message") else _told(error, as_json)
    return code if isinstance(code, int) else 0


def _usage(error: Any, as_json: bool) -> int:
    from infx.domain.errors import UsageError

    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help
        print(message)
        return int(error.exit_code)
    context = getattr(error, "ctx", None)
    name = context.command_path if context else "infx"
    return _told(UsageError("bad-option", message, hint=f"see {name} --help"), as_json)


def _told(error: Exception, as_json: bool) -> int:
    _debug()
    known = _known(error)
    if as_json:
        _as_json(known)
    else:
        _as_text(known)
    return known.exit_code


def _known(error: Exception) -> InfxError:
    from infx.domain.errors import InfraError, InfxError

    if isinstance(error, InfxError):
        return error
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return InfraError(
            "disk-full", f"no space is left: {error}", hint="free space, then infx resume"
        )
    return _internal(error)


def _as_json(error: InfxError) -> None:
    from infx.cli.output import emit
    from infx.domain.findings import Finding

    single = (Finding(error.code, "error", error.message, hint=error.hint),)
    emit("error", None, ok=False, diagnostics=getattr(error, "findings", single))


def _as_text(error: InfxError) -> None:
    from infx.cli.output import say

    findings = getattr(error, "findings", ())
    if findings:
        say(_with_sources(findings))
        return
    say(f"infx: {error.code}: {error.message}")
    if error.hint:
        say(f"  {error.hint}")


def _with_sources(findings: Any) -> str:
    from infx.config.diagnostics import format_findings
    from infx.config.project import Project

    return format_findings(findings, Project.find(Path.cwd()).source_line)


def interrupted(command: str = "") -> InfxError:
    """Return the error of a Ctrl-C in ``command``; what leaves a run behind names the way on."""
    from infx.domain.errors import UsageError

    hint = "infx resume continues the run" if command in _RESUMED else ""
    error = UsageError("interrupted", f"infx {command}".rstrip() + " was stopped", hint=hint)
    error.exit_code = INTERRUPTED
    return error


def _internal(error: Exception) -> InfxError:
    import traceback

    from infx.domain.errors import InfxError

    text = "".join(traceback.format_exception(error))
    hint = f"the traceback is in {_keep(text)}; please report it"
    told = InfxError("internal", f"a fault of infx: {type(error).__name__}: {error}", hint=hint)
    told.exit_code = INTERNAL
    return told


def _keep(text: str) -> str:
    """Write a traceback to the user's state folder (XDG) and return where."""
    import tempfile

    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    for folder in (Path(base).expanduser() / "infx", Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"traceback-{os.getpid()}.txt"
            path.write_text(text)
        except OSError:
            continue
        return str(path)
    sys.stderr.write(text)
    return "the lines above"


def _debug() -> None:
    if os.environ.get("INFX_DEBUG") == "1":
        import traceback

        traceback.print_exc()
