"""vLLM's flags: fields of its configuration classes, handed to `add_argument` by name.

Its parser is built by a few functions. They are walked here statement by statement, as far as they
say which flag is made from which field and what of the field they change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import deepcopy

from infx.frameworks.flag_reader.hints import Flag, kind_of, literal_choices, terms
from infx.frameworks.flag_reader.source import Place, Sources

__all__ = ["SOURCES", "read_vllm"]

ARGUMENTS = "vllm.engine.arg_utils"
FRONTEND = "vllm.entrypoints.launchers.cli_args"
SOURCES = ("vllm/engine/arg_utils.py", "vllm/entrypoints/launchers/cli_args.py")

FROM_CLASS = ("get_kwargs", "_compute_kwargs")
"""The functions that make the table field -> keywords of `add_argument` from a class."""

Table = dict[str, Flag]


def read_vllm(sources: Sources) -> list[Flag]:
    """Return every flag of ``vllm serve``.

    Raises LookupError when the source is of another shape than this reader knows.
    """
    frontend = sources.definition(FRONTEND, "FrontendArgs")
    found = [*_frontend(sources, frontend)]
    walks = [_Walk(sources, sources.definition(FRONTEND, "make_arg_parser"))]
    for name in ("AsyncEngineArgs", "EngineArgs"):
        owner = sources.definition(ARGUMENTS, name)
        walks += [
            _Walk(sources, method) for method in _methods(sources, owner, "add_cli_args")[-1:]
        ]
    return [*found, *(flag for walk in walks for flag in walk.flags)]


def _frontend(sources: Sources, owner: Place) -> Iterator[Flag]:
    """Yield one flag a field, after what each class of the chain changes in its own method."""
    table = _fields(sources, owner)
    for method in _methods(sources, owner, "_customize_cli_kwargs"):
        _Walk(sources, method, {"frontend_kwargs": table})
    for name, flag in table.items():
        flag.spellings = [_spelled(name)]
        yield flag


def _fields(sources: Sources, owner: Place) -> Table:
    """Return the fields of a dataclass as the flags that vLLM makes of them."""
    return {
        place.node.target.id: _flag(sources, place.at(place.node.annotation))
        for place in sources.members(owner)
        if isinstance(place.node, ast.AnnAssign) and isinstance(place.node.target, ast.Name)
    }


def _flag(sources: Sources, hint: Place) -> Flag:
    found = {term.name: term for term in terms(sources, hint)}
    if "record" in found or found.keys() == {"bool", "str", "None"}:
        return Flag("str")
    if "bool" in found:
        return Flag("bool", negatable=True)
    unset = ["None"] if "None" in found else []
    if "Literal" in found:
        values = found["Literal"].values
        kind = kind_of(type(values[0]).__name__)
        return Flag(kind, [] if "str" in found else [*sorted(values), *unset])
    if "list" in found:
        values = found["list"].values
        return Flag("tuple", [*sorted(values), *unset] if values else [])
    return Flag(next((kind_of(name) for name in ("int", "float") if name in found), "str"))


def _methods(sources: Sources, owner: Place, name: str) -> list[Place]:
    """Return the methods called ``name`` of a class and its bases, the bases' first."""
    return [
        place
        for place in sources.members(owner)
        if isinstance(place.node, ast.FunctionDef) and place.node.name == name
    ]


class _Walk:
    """One function, walked: ``flags`` are those that it adds to the parser."""

    def __init__(
        self, sources: Sources, function: Place, tables: dict[str, Table] | None = None
    ) -> None:
        self._sources, self._here = sources, function
        self._tables = dict(tables or {})
        self._single: dict[str, Flag] = {}
        self.flags: list[Flag] = []
        assert isinstance(function.node, ast.FunctionDef)
        self._body(function.node.body)

    def _body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._named(name, value)
                case ast.Assign(targets=[ast.Subscript(value=of, slice=key)], value=value):
                    self._change(of, key, value)
                case ast.Delete(targets=targets):
                    self._delete(targets)
                case ast.If(body=body, orelse=orelse):
                    self._body([*body, *orelse])
                case ast.Expr(value=ast.Call() as call):
                    self._call(call)

    def _named(self, name: str, value: ast.expr) -> None:
        if owner := self._class_of(value):
            self._tables[name] = _fields(self._sources, owner)
        elif flag := self._field(value):
            self._single[name] = flag

    def _change(self, of: ast.expr, key: ast.expr, value: ast.expr) -> None:
        """``kwargs["field"]["type"] = …``: what is not text after it is said by its name."""
        flag, word = self._field(of), getattr(key, "value", "")
        if flag and word == "type" and not isinstance(value, ast.Lambda):
            flag.kind = kind_of(ast.unparse(value)) if flag.kind != "tuple" else flag.kind
        if flag and word == "choices":
            flag.choices = literal_choices(self._sources, self._here.at(value))

    def _delete(self, targets: list[ast.expr]) -> None:
        for target in targets:
            flag = self._field(target.value) if isinstance(target, ast.Subscript) else None
            if flag and flag.kind == "tuple":  # without nargs it takes one word
                flag.kind = "str"

    def _call(self, call: ast.Call) -> None:
        match call.func:
            case ast.Attribute(attr="add_argument"):
                self._add(call)
            case ast.Attribute(value=ast.Subscript(value=of), attr="remove"):
                flag = self._field(of)
                if flag:
                    gone = self._sources.literal(self._here.at(call.args[0]))
                    flag.choices = [choice for choice in flag.choices if choice != gone]

    def _add(self, call: ast.Call) -> None:
        words = [word.value for word in call.args if isinstance(word, ast.Constant)]
        spellings = [str(word) for word in words if str(word).startswith("-")]
        if not spellings:
            return
        flag = next((self._base(k.value) for k in call.keywords if k.arg is None), Flag())
        for keyword in call.keywords:
            if keyword.arg:
                self._keyword(flag, keyword.arg, keyword.value)
        flag.spellings = spellings
        self.flags.append(flag)

    def _base(self, value: ast.expr) -> Flag:
        """Return a copy of the flag behind ``**kwargs["field"]``, in a dict or not."""
        if isinstance(value, ast.Dict):
            value = next(v for k, v in zip(value.keys, value.values, strict=True) if k is None)
        flag = self._field(value)
        if flag is None:
            raise LookupError(f"no field behind {ast.unparse(value)}")
        return deepcopy(flag)

    def _keyword(self, flag: Flag, name: str, value: ast.expr) -> None:
        text = ast.unparse(value)
        if name == "action":
            flag.negatable = text.endswith("BooleanOptionalAction")
            flag.kind = "bool" if flag.negatable or "store_true" in text else flag.kind
        elif name == "type":
            flag.kind = kind_of(text)
        elif name == "choices":
            flag.choices = literal_choices(self._sources, self._here.at(value))
        elif name == "nargs" and text.strip("'") in ("+", "*"):
            flag.kind = "tuple"

    def _field(self, value: ast.expr) -> Flag | None:
        """Return the flag of ``kwargs["field"]``, of ``get_kwargs(C)["field"]``, or of a name."""
        if isinstance(value, ast.Name):
            return self._single.get(value.id)
        if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Constant):
            return None
        table = self._table(value.value)
        return table.get(str(value.slice.value)) if table is not None else None

    def _table(self, value: ast.expr) -> Table | None:
        if isinstance(value, ast.Name):
            return self._tables.get(value.id)
        owner = self._class_of(value)
        return _fields(self._sources, owner) if owner else None

    def _class_of(self, value: ast.expr) -> Place | None:
        if not isinstance(value, ast.Call) or ast.unparse(value.func) not in FROM_CLASS:
            return None
        found = self._sources.resolve(self._here.at(value.args[0]))
        return found if found and isinstance(found.node, ast.ClassDef) else None


def _spelled(name: str) -> str:
    return "--" + name.replace("_", "-")
