"""Find what a dotted target is in an environment's source files, following imports, aliases and base classes.

Nothing is imported: `ast` reads the files. Where a file cannot tell (a compiled module, a module-level
`__getattr__`, a base class that is not there, `**kwargs`) that is said, and never taken for a no.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stackctl.probes.environment import Environment, NotThere, Unsure

Function = ast.FunctionDef | ast.AsyncFunctionDef
_DEPTH = 24  # imports and aliases followed from one name


@dataclass(frozen=True)
class Module:
    """One parsed module."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def short(self) -> str:
        """Its path below the folder that modules are found in: the environment is named once, not in every line."""
        depth = self.name.count(".") + (2 if self.path.name == "__init__.py" else 1)
        return "/".join(self.path.parts[-depth:])

    @property
    def package(self) -> str:
        """What a relative import in it starts from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Found:
    """What a target is: the node that defines it (None: a module itself), and where."""

    module: Module
    node: ast.AST | None

    @property
    def where(self) -> str:
        """Path (from the folder that modules are found in) and line, as evidence."""
        line = getattr(self.node, "lineno", 0)
        return f"{self.module.short}:{line}" if line else self.module.short


class Sources:
    """The modules of one environment, each parsed once."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._modules: dict[str, Module] = {}

    def find(self, target: str) -> list[Found]:
        """Every definition of "module:Class.name" (branches may define it twice). Raises NotThere or Unsure."""
        module, _, symbol = target.partition(":")
        found = [Found(self.module(module), None)]
        for name in symbol.split("."):
            found = [each for owner in _owners(found) for each in self.member(owner, name)]
        return found

    def module(self, name: str) -> Module:
        """A module by its dotted name."""
        if name not in self._modules:
            try:
                path = self._path(name)
            except NotThere:
                return self._bound_module(name)
            try:
                self._modules[name] = Module(name, path, ast.parse(path.read_bytes()))
            except OSError as error:
                raise Unsure(f"{path} cannot be read: {error.strerror}") from None
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                raise Unsure(f"{path} does not parse: {error}") from None
        return self._modules[name]

    def _bound_module(self, name: str) -> Module:
        """A module that another one hands out under a name of its own, as os does os.path. Raises NotThere."""
        parent, _, leaf = name.rpartition(".")
        if parent and bindings(self.module(parent).tree.body, leaf):
            for found in self.member(Found(self.module(parent), None), leaf):
                if found.node is None:
                    return found.module
            raise Unsure(f"{self.module(parent).short} makes {name} when it runs")
        raise NotThere(f"there is no module {name}")

    def member(self, owner: Found, name: str, depth: int = 0) -> list[Found]:
        """What `name` is in a module or class, itself or inherited."""
        if depth > _DEPTH:
            raise Unsure(f"{name} is imported in a circle")
        if owner.node is None:
            return self._global(owner.module, name, depth)
        if isinstance(owner.node, ast.ClassDef):
            return self._of_class(owner.module, owner.node, name, depth)
        raise Unsure(f"{owner.where} is neither a module nor a class, so its {name} cannot be read")

    def _global(self, module: Module, name: str, depth: int) -> list[Found]:
        bound = [
            each
            for node in bindings(module.tree.body, name)
            for each in self._follow(module, module.tree.body, node, name, depth)
        ]
        if bound:
            return bound
        for star in _stars(module):
            try:
                return self.member(Found(self.module(star), None), name, depth + 1)
            except NotThere:
                continue
        if any(bindings(module.tree.body, "__getattr__")):
            raise Unsure(f"{module.short} makes its names when they are asked for (__getattr__)")
        if module.path.name == "__init__.py":
            try:
                return [Found(self.module(f"{module.name}.{name}"), None)]
            except NotThere:
                pass
        raise NotThere(f"{module.short} defines no {name}")

    def _of_class(self, module: Module, node: ast.ClassDef, name: str, depth: int) -> list[Found]:
        bound = [
            each
            for binding in bindings(node.body, name)
            for each in self._follow(module, node.body, binding, name, depth)
        ]
        if bound or (bound := [Found(module, each) for each in _set_on_self(node, name)]):
            return bound
        unsure = ""
        for base in node.bases:
            try:
                return self._of_base(module, base, name, depth)
            except NotThere:
                continue
            except Unsure as error:
                unsure = str(error)
        if unsure:
            raise Unsure(unsure)
        raise NotThere(f"class {node.name} ({module.short}:{node.lineno}) has no {name}")

    def _of_base(self, module: Module, base: ast.expr, name: str, depth: int) -> list[Found]:
        base = base.value if isinstance(base, ast.Subscript) else base  # Generic[T]
        if (
            isinstance(base, ast.Name)
            and isinstance(made := getattr(builtins, base.id, None), type)
            and not any(bindings(module.tree.body, base.id))
        ):
            if name in vars(made) or any(name in vars(each) for each in made.__mro__[:-1]):
                raise Unsure(f"{name} is the builtin {base.id}'s own")
            raise NotThere(f"the builtin {base.id} has no {name}")
        try:
            owners = self._expression(module, base, depth + 1)
        except NotThere as error:
            raise Unsure(f"base class {ast.unparse(base)} is not found: {error}") from None
        return [each for owner in _owners(owners) for each in self.member(owner, name, depth + 1)]

    def _expression(self, module: Module, node: ast.expr, depth: int) -> list[Found]:
        """What a dotted name stands for in a module."""
        if isinstance(node, ast.Name):
            return self.member(Found(module, None), node.id, depth)
        if isinstance(node, ast.Attribute):
            return [
                each
                for owner in self._expression(module, node.value, depth)
                for each in self.member(owner, node.attr, depth)
            ]
        raise Unsure(f"{module.short}:{getattr(node, 'lineno', 0)} makes {ast.unparse(node)} when it runs")

    def _follow(self, module: Module, scope: list[ast.stmt], node: ast.AST, name: str, depth: int) -> list[Found]:
        """The definition behind one binding: an import or an alias is followed."""
        if isinstance(node, ast.ImportFrom):
            return self._imported(module, node, name, depth)
        if isinstance(node, ast.Import):
            alias = next(each for each in node.names if (each.asname or each.name.split(".")[0]) == name)
            return [Found(self.module(alias.name if alias.asname else name), None)]
        value = getattr(node, "value", None) if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if isinstance(value, ast.Name) and value.id != name and any(bindings(scope, value.id)):
            return [
                each
                for other in bindings(scope, value.id)
                for each in self._follow(module, scope, other, value.id, depth + 1)
            ]
        return [Found(module, node)]

    def _imported(self, module: Module, node: ast.ImportFrom, name: str, depth: int) -> list[Found]:
        alias = next(each for each in node.names if (each.asname or each.name) == name)
        source = _absolute(module, node)
        if source == module.name and alias.name == name:  # `from . import submodule`
            return [Found(self.module(f"{source}.{name}"), None)]
        return self.member(Found(self.module(source), None), alias.name, depth + 1)

    def _path(self, name: str) -> Path:
        """The file of a module. Raises NotThere, or Unsure for a compiled one and for one that should be there."""
        first, *rest = name.split(".")
        if first in sys.builtin_module_names:
            raise Unsure(f"{first} is compiled into the interpreter")
        roots = (
            [self.environment.packages[first]]
            if first in self.environment.packages
            else [f / first for f in self.environment.folders]
        )
        compiled = ""
        for root in roots:
            stem = root.joinpath(*rest)
            for path in (
                stem / "__init__.py",
                stem.with_name(f"{stem.name}.py"),
                stem if stem.suffix == ".py" else None,
            ):
                if path is not None and path.is_file():
                    return path
            compiled = (
                compiled or next((str(path) for path in stem.parent.glob(f"{stem.name}*.so")), "")
                if stem.parent.is_dir()
                else compiled
            )
        if compiled:
            raise Unsure(f"{compiled} is compiled: its source does not tell")
        for listed in (f"{'/'.join([first, *rest])}/__init__.py", f"{'/'.join([first, *rest])}.py"):
            if owner := self.environment.claims(listed):
                raise Unsure(f"{owner} is damaged: {listed} is listed and not there")
        raise NotThere(f"there is no module {name}")


def _owners(found: list[Found]) -> list[Found]:
    """Those that can have members: `Enum = None` before `class Enum` is only a placeholder."""
    return [each for each in found if each.node is None or isinstance(each.node, ast.ClassDef)] or found


def bindings(body: Iterable[ast.stmt], name: str) -> list[ast.AST]:
    """Every statement of a scope that binds `name`, in branches too; overloads only where nothing else does."""
    found = [node for node in _visible(body) if name in _bound(node)]
    real = [node for node in found if not _is_overload(node)]
    return list(real or found)


def parameters(function: Function) -> list[str]:
    """The names that a call may give by keyword, and those that are positional only."""
    spec = function.args
    return [each.arg for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]


def _visible(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.While, ast.Match)):
            for part in ("body", "orelse", "finalbody"):
                yield from _visible(getattr(node, part, []))
            for handler in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
                yield from _visible(handler.body)


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.Import):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    targets = (
        getattr(node, "targets", [])
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    return {
        each.id
        for target in targets
        for each in ast.walk(target)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }


def _is_overload(node: ast.AST) -> bool:
    return any(ast.unparse(each).rpartition(".")[2] == "overload" for each in getattr(node, "decorator_list", ()))


def _set_on_self(node: ast.ClassDef, name: str) -> Iterator[ast.AST]:
    """Assignments to self.name in the methods of a class."""
    for method in _visible(node.body):
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for each in ast.walk(method):
                stored = isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and each.attr == name
                if stored and isinstance(each.value, ast.Name) and each.value.id == "self":  # type: ignore[attr-defined]
                    yield each


def _stars(module: Module) -> Iterator[str]:
    for node in _visible(module.tree.body):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            yield _absolute(module, node)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.package.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, *filter(None, [node.module])])
