"""SGLang's flags: annotated fields of its argument groups, and a few of a function's own."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from infx.frameworks.flag_reader.hints import Flag, Kind, Term, kind_of, literal_choices, terms
from infx.frameworks.flag_reader.source import Place, Sources

__all__ = ["SOURCES", "read_sglang"]

ARGUMENTS = "sglang.srt.server_args"
SOURCES = ("sglang/srt/arg_groups/fields/", "sglang/srt/server_args.py")

GROUP = "_NS_PATH"
"""The name that a class of fields defines; the server's arguments are all such classes."""

_VALUED = ("LoRAPathAction", "DeprecatedStoreConstAction", "DeprecatedAliasStoreAction")
"""The actions that take a word; all others switch something on."""


def read_sglang(sources: Sources) -> list[Flag]:
    """Return every flag of ``sglang.launch_server``.

    Raises LookupError when the source is of another shape than this reader knows.
    """
    found = [flag for group in _groups(sources) for flag in _fields(sources, group)]
    owner = sources.definition(ARGUMENTS, "ServerArgs")
    for place in sources.members(owner):
        if isinstance(place.node, ast.FunctionDef) and place.node.name == "add_cli_args":
            found += _added(sources, place)
    return found


def _groups(sources: Sources) -> Iterator[Place]:
    """Yield the classes of fields that the module of the server's arguments imports."""
    module = sources.module(ARGUMENTS)
    if module is None:
        raise LookupError(f"no module {ARGUMENTS}")
    for name, (source, _) in module.imports.items():
        if ".arg_groups.fields." in source:
            group = sources.definition(ARGUMENTS, name)
            if isinstance(group.node, ast.ClassDef) and GROUP in ast.unparse(group.node):
                yield group


def _fields(sources: Sources, group: Place) -> Iterator[Flag]:
    for place in sources.members(group):
        match place.node:
            case ast.AnnAssign(
                target=ast.Name(id=name),
                annotation=ast.Subscript(value=ast.Name(id="A"), slice=ast.Tuple(elts=parts)),
            ):
                meta = next((p for p in parts[1:] if _is_meta(p)), None)
                settings = _settings(meta)
                if meta is not None and not _true(settings.get("no_cli")):
                    yield _flag(sources, name, place.at(parts[0]), settings)


def _flag(sources: Sources, name: str, hint: Place, settings: Mapping[str, ast.expr]) -> Flag:
    flag = _typed(sources, hint, settings)
    spelled = settings.get("cli_name")
    first = (
        "--" + name.replace("_", "-") if spelled is None else str(_constant(sources, hint, spelled))
    )
    aliases = settings.get("aliases")
    others = _constant(sources, hint, aliases) if aliases is not None else []
    flag.spellings = [first, *others]
    choices = settings.get("choices")
    if choices is not None and not _none(choices):
        flag.choices = literal_choices(sources, hint.at(choices))
    return flag


def _typed(sources: Sources, hint: Place, settings: Mapping[str, ast.expr]) -> Flag:
    """Return the flag that the field's type and settings make, without choices of its own."""
    if "action" in settings:
        return _acted(ast.unparse(settings["action"]), settings)
    found = [term for term in terms(sources, hint) if term.name != "None"]
    parser = settings.get("type_parser")
    only = found[0] if len(found) == 1 else Term("other")
    if only.name == "Literal":
        return Flag(kind_of(type(only.values[0]).__name__), list(only.values))
    if parser is not None:
        return Flag(kind_of(ast.unparse(parser)))
    if only.name == "list" or _many(settings):
        return Flag("tuple")
    return Flag("bool" if only.name == "bool" else kind_of(only.name))


def _acted(action: str, settings: Mapping[str, ast.expr]) -> Flag:
    name = action.strip("'\"").rpartition(".")[2]
    if name == "BooleanOptionalAction":
        return Flag("bool", negatable=True)
    kind: Kind = "tuple" if name == "LoRAPathAction" else "str" if name in _VALUED else "bool"
    return Flag(kind)


def _added(sources: Sources, function: Place) -> Iterator[Flag]:
    """Yield the flags of the function's own ``add_argument`` calls."""
    for node in ast.walk(function.node):
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith(".add_argument"):
            continue
        settings = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        flag = Flag(kind_of(ast.unparse(settings["type"]))) if "type" in settings else Flag()
        if "action" in settings:
            flag = _acted(ast.unparse(settings["action"]), settings)
        if "choices" in settings:
            flag.choices = literal_choices(sources, function.at(settings["choices"]))
        flag.spellings = [str(word.value) for word in node.args if isinstance(word, ast.Constant)]
        yield flag


def _is_meta(node: ast.expr) -> bool:
    """Return True for what makes a field a flag: a text, or a call of Arg."""
    called = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Arg")
    return called or not isinstance(node, ast.Call)


def _settings(meta: ast.expr | None) -> dict[str, ast.expr]:
    if not isinstance(meta, ast.Call):
        return {}
    return {keyword.arg: keyword.value for keyword in meta.keywords if keyword.arg}


def _constant(sources: Sources, place: Place, node: ast.expr) -> Any:
    return sources.literal(place.at(node))


def _true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _many(settings: Mapping[str, ast.expr]) -> bool:
    nargs = settings.get("nargs")
    return isinstance(nargs, ast.Constant) and nargs.value in ("+", "*")
