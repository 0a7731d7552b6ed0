"""Write an engine's flags: ``python -m infx.frameworks.flag_reader ENGINE WHEEL|FOLDER``."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from infx.frameworks.flag_reader import sglang, vllm
from infx.frameworks.flag_reader.hints import Flag
from infx.frameworks.flag_reader.source import Sources, opened
from infx.frameworks.options import FLAGS_FOLDER

__all__ = ["main", "read_engine"]

READERS: dict[str, tuple[Callable[[Sources], list[Flag]], Sequence[str]]] = {
    "vllm": (vllm.read_vllm, vllm.SOURCES),
    "sglang": (sglang.read_sglang, sglang.SOURCES),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the data file. Return 0, or 1 when the source is of a shape that is not known."""
    options = _parser().parse_args(argv)
    package = options.package or _package(options.source)
    if not package:
        print(f"{options.source} names no version: add --package NAME==VERSION", file=sys.stderr)
        return 1
    try:
        content = read_engine(options.engine, options.source, package)
    except LookupError as error:
        print(f"{options.source}: not the {options.engine} that is known: {error}", file=sys.stderr)
        return 1
    options.output = options.output or FLAGS_FOLDER / f"{options.engine}.json"
    options.output.write_text(written(content), encoding="utf-8")
    print(f"{options.output}: {len(content['flags'])} flags of {package}")
    return 0


def read_engine(engine: str, source: Path, package: str) -> dict[str, Any]:
    """Return the content of the data file for ``package`` (``NAME==VERSION``), whose wheel or
    unpacked folder ``source`` is. Raises LookupError where the source is not as it is known."""
    read, files = READERS[engine]
    flags = sorted(_distinct(read(Sources(opened(source)))), key=lambda row: str(row["flag"]))
    name, _, version = package.partition("==")
    made_of = f"{name}: {', '.join(files)}"
    return {"engine": engine, "version": version, "source": made_of, "flags": flags}


def written(content: dict[str, Any]) -> str:
    """Return the file's text: one flag a line, so that a renewal reads as a diff."""
    rows = ",\n".join(f"    {json.dumps(row)}" for row in content["flags"])
    head = {name: value for name, value in content.items() if name != "flags"}
    lines = "".join(f"  {json.dumps(name)}: {json.dumps(value)},\n" for name, value in head.items())
    return f'{{\n{lines}  "flags": [\n{rows}\n  ]\n}}\n'


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="infx.frameworks.flag_reader", description=__doc__)
    parser.add_argument("engine", choices=READERS)
    parser.add_argument("source", type=Path, help="a wheel, or the folder it was unpacked in")
    parser.add_argument("--package", default="", help="NAME==VERSION; a wheel's own by default")
    parser.add_argument("-o", "--output", type=Path, help="default: the file in the package")
    return parser


def _package(source: Path) -> str:
    found = re.fullmatch(r"([^-]+)-([^-]+)-.+\.whl", source.name)
    return f"{found[1].replace('_', '-')}=={found[2]}" if found else ""


def _distinct(flags: Iterable[Flag]) -> list[dict[str, Any]]:
    """Return one row a flag; a flag that is added twice is as it is added last."""
    return list({row["flag"]: row for row in (flag.row() for flag in flags)}.values())


if __name__ == "__main__":
    sys.exit(main())
