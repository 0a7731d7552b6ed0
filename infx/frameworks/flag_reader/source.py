"""The Python source of a package, as far as its definitions can be followed without running it."""

from __future__ import annotations

import ast
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Module", "NotLiteralError", "Place", "Sources", "opened"]

Read = Callable[[str], bytes | None]
"""From a path inside the package's parent (``vllm/config/cache.py``) to its bytes, or None."""


class NotLiteralError(ValueError):
    """An expression whose value only a running program knows."""


@dataclass(slots=True)
class Module:
    """What one file defines at its top, and where its other names come from."""

    name: str
    definitions: dict[str, ast.AST] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """A node and the module in which its names mean something."""

    module: Module
    node: ast.AST

    def at(self, node: ast.AST) -> Place:
        """Return another node of the same module."""
        return Place(self.module, node)


class Sources:
    """All modules of a package, each parsed when it is first needed."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._modules: dict[str, Module | None] = {}

    def module(self, name: str) -> Module | None:
        """Return the module with this dotted name; None when it is not of the package."""
        if name not in self._modules:
            self._modules[name] = self._parsed(name)
        return self._modules[name]

    def definition(self, module: str, name: str) -> Place:
        """Return where ``name`` of ``module`` is defined, through imports.

        Raises LookupError when it is not: the package is of another shape than the reader knows.
        """
        found = self.module(module)
        place = self._find(found, name) if found else None
        if place is None:
            raise LookupError(f"{module} has no {name}")
        return place

    def resolve(self, place: Place) -> Place | None:
        """Return what the name at ``place`` stands for; None for what is outside the package."""
        if isinstance(place.node, ast.Name):
            return self._find(place.module, place.node.id)
        return None

    def members(self, name: Place) -> Iterator[Place]:
        """Yield the statements of a class and of its bases, the bases' first."""
        assert isinstance(name.node, ast.ClassDef)
        for base in name.node.bases:
            found = self.resolve(name.at(base))
            if found and isinstance(found.node, ast.ClassDef):
                yield from self.members(found)
        yield from (name.at(statement) for statement in name.node.body)

    def literal(self, place: Place) -> Any:
        """Return the value of constants, lists of them, sums, and names of such.

        Raises NotLiteralError.
        """
        node = place.node
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return [item for element in node.elts for item in self._items(place.at(element))]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self.literal(place.at(node.left)) + self.literal(place.at(node.right))
        found = self.resolve(place)
        if found is None or isinstance(found.node, ast.ClassDef | ast.FunctionDef):
            raise NotLiteralError(ast.unparse(node))
        return self.literal(found)

    def _items(self, element: Place) -> Iterable[Any]:
        if isinstance(element.node, ast.Starred):
            return list(self.literal(element.at(element.node.value)))
        return [self.literal(element)]

    def _find(self, module: Module, name: str) -> Place | None:
        if name in module.definitions:
            return Place(module, module.definitions[name])
        if name not in module.imports:
            return None
        source, original = module.imports[name]
        origin = self.module(source)
        return self._find(origin, original) if origin else None

    def _parsed(self, name: str) -> Module | None:
        stem = name.replace(".", "/")
        for path, package in (
            (f"{stem}.py", name.rpartition(".")[0]),
            (f"{stem}/__init__.py", name),
        ):
            text = self._read(path)
            if text is not None:
                module = Module(name)
                _collect(ast.parse(text).body, module, package)
                return module
        return None


def opened(path: Path) -> Read:
    """Return the reader of a wheel, or of a folder that the package's folder lies in."""
    if path.is_dir():
        return lambda name: (path / name).read_bytes() if (path / name).is_file() else None
    archive = zipfile.ZipFile(path)
    names = frozenset(archive.namelist())
    return lambda name: archive.read(name) if name in names else None


def _collect(body: Iterable[ast.stmt], module: Module, package: str) -> None:
    for statement in body:
        match statement:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                module.definitions[name] = statement
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ) if not isinstance(module.definitions.get(name), ast.ClassDef):
                module.definitions[name] = value  # a class that is wrapped later stays itself
            case ast.ImportFrom():
                source = _absolute(statement, package)
                for alias in statement.names:
                    module.imports[alias.asname or alias.name] = (source, alias.name)
            case ast.If(test=test):
                seen = statement.orelse if _only_for_types(test) else statement.body
                _collect(seen, module, package)
            case ast.Try(body=tried):
                _collect(tried, module, package)


def _absolute(statement: ast.ImportFrom, package: str) -> str:
    if not statement.level:
        return statement.module or ""
    above = package.split(".")[: len(package.split(".")) - statement.level + 1]
    return ".".join([*above, *([statement.module] if statement.module else [])])


def _only_for_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
