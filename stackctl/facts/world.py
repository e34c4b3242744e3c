"""One tree as Python modules: which file a dotted name means, what it exports, what a class inherits.

Nothing is imported or run. What lies outside the tree, or is made at run time, is unknown, and the
answer says so: a rule that reports must never take unknown for missing.
"""

from __future__ import annotations

import posixpath
import sys
from dataclasses import dataclass
from functools import cached_property

from stackctl.facts.cache import FactsCache
from stackctl.facts.names import Class, Function, Import, ModuleNames
from stackctl.trees.tree import Tree

_DEPTH = 12
_PLAIN_BASES = frozenset({
    "object", "ABC", "abc.ABC", "Protocol", "typing.Protocol", "Generic", "typing.Generic", "Enum", "enum.Enum",
    "IntEnum", "enum.IntEnum", "StrEnum", "Exception", "ValueError", "RuntimeError", "nn.Module", "torch.nn.Module",
    "threading.Thread", "Thread", "unittest.TestCase", "TestCase",
})  # fmt: skip


@dataclass(frozen=True)
class Found:
    """What a dotted name means: a module, class, function or other value of one file."""

    kind: str
    path: str
    name: str = ""


class World:
    """The modules of one tree, read one by one when somebody asks."""

    def __init__(self, tree: Tree, cache: FactsCache) -> None:
        self.tree = tree
        self._cache = cache
        self._exports: dict[str, set[str] | None] = {}
        self._found: dict[tuple[str, str], Found | None] = {}
        self._attributes: dict[tuple[str, str], dict[str, set[str]]] = {}
        self._tops: dict[str, list[str]] = {}
        self._modules: dict[tuple[str, str], str] = {}

    def names(self, path: str) -> ModuleNames | None:
        """What a file binds and uses; None if there is none or it cannot be parsed."""
        if not path.endswith(".py") or path not in self.tree or not self.tree.is_file(path):
            return None
        return self._cache.names(self.tree.blob(path), lambda: self.tree.read(path))

    @cached_property
    def files(self) -> set[str]:
        """The paths of all Python files."""
        return {path for path in self.tree.paths() if path.endswith(".py")}

    @cached_property
    def folders(self) -> set[str]:
        """Every folder with a Python file somewhere below it."""
        found: set[str] = set()
        for path in self.files:
            folder = posixpath.dirname(path)
            while folder and folder not in found:
                found.add(folder)
                folder = posixpath.dirname(folder)
        return found

    @cached_property
    def roots(self) -> list[str]:
        """The folders that top-level packages lie in, the repository's own root first."""
        return ["", *sorted({self._root(path) for path in self.files if path.endswith("/__init__.py")} - {""})]

    def _root(self, path: str) -> str:
        folder = posixpath.dirname(path)
        while f"{folder}/__init__.py" in self.files:
            folder = posixpath.dirname(folder)
        return folder

    def module(self, name: str, near: str, level: int = 0) -> str:
        """The file (or, for a namespace package, the folder) of module `name` as seen from file `near`; "" if none."""
        key = (f"{'.' * level}{name}", posixpath.dirname(near))
        if key not in self._modules:
            self._modules[key] = self._find(name, near, level)
        return self._modules[key]

    def _find(self, name: str, near: str, level: int) -> str:
        folder = posixpath.dirname(near)
        if level:
            for _ in range(level - 1):
                folder = posixpath.dirname(folder)
            return self._at(folder, name)
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names:
            return ""
        own = [] if f"{folder}/__init__.py" in self.files and folder else [folder]
        above = [root for root in self.roots if not root or near.startswith(f"{root}/")]
        near_roots = [*own, *sorted(above, key=len, reverse=True)]
        for root in [*near_roots, *self._elsewhere(top)]:
            if found := self._at(root, name):
                return found
        return ""

    def _elsewhere(self, top: str) -> list[str]:
        """A root that is not above the importing file counts only if it alone has the top-level name."""
        if top not in self._tops:
            having = [root for root in self.roots if self._at(root, top)]
            self._tops[top] = having if len(having) == 1 else []
        return self._tops[top]

    def _at(self, root: str, name: str) -> str:
        path = posixpath.join(root, name.replace(".", "/")) if name else root
        for candidate in (f"{path}.py", f"{path}/__init__.py" if path else "__init__.py"):
            if candidate in self.files:
                return candidate
        return path if path in self.folders else ""

    def has_top(self, name: str, near: str) -> bool:
        """Whether the first part of an absolute module name is in this tree."""
        return bool(self.module(name.partition(".")[0], near))

    def submodule(self, module: str, name: str) -> str:
        """The file of `name` directly inside a package's file or folder; "" if none."""
        if module.endswith("/__init__.py") or module == "__init__.py":
            return self._at(posixpath.dirname(module), name)
        return self._at(module, name) if module in self.folders else ""

    def exports(self, module: str, depth: int = 0) -> set[str] | None:
        """The names bound at the top of a module; None where they cannot all be known."""
        if module not in self._exports:
            self._exports[module] = None
            self._exports[module] = self._bound(module, depth)
        return self._exports[module]

    def _bound(self, module: str, depth: int) -> set[str] | None:
        if module in self.folders:
            return set()
        names = self.names(module)
        if names is None or "__getattr__" in names.bound or depth > _DEPTH:
            return None
        bound = set(names.bound)
        for item in names.imports:
            if item.name == "*":
                source = self.module(item.module, module, item.level)
                more = self.exports(source, depth + 1) if source else None
                if more is None:
                    return None
                bound |= more
        return bound

    def state(self, item: Import, near: str) -> str:
        """An import's fate: "ok", "no module", "no name", or "outside" if the tree cannot tell."""
        module = self.module(item.module, near, item.level)
        if not module:
            inside = item.level or self.has_top(item.module, near)
            return "no module" if inside else "outside"
        if item.name in ("", "*") or self.submodule(module, item.name):
            return "ok"
        exports = self.exports(module)
        return "ok" if exports is None or item.name in exports else "no name"

    def resolve(self, path: str, dotted: str, depth: int = 0) -> Found | None:
        """What `dotted` means at the top of file `path`; None if unknown."""
        key = (path, dotted)
        if key not in self._found:
            self._found[key] = None
            self._found[key] = self._resolve(path, dotted, depth)
        return self._found[key]

    def _resolve(self, path: str, dotted: str, depth: int) -> Found | None:
        names = self.names(path)
        if names is None or depth > _DEPTH:
            return None
        root, _, rest = dotted.partition(".")
        if root in names.rebound:
            return None  # which one it is depends on the platform
        if root in names.classes:
            return self._member(path, root, rest)
        if root in names.functions:
            return Found("function", path, root) if not rest else None
        for item in names.imports:
            if item.bound == root or (not item.bound and item.module.partition(".")[0] == root):
                return self._through(item, path, dotted if not item.bound else rest, depth)
        if root in names.bound:
            return Found("value", path, root) if not rest else None
        return self._through_stars(names, path, dotted, depth)

    def _through_stars(self, names: ModuleNames, path: str, dotted: str, depth: int) -> Found | None:
        for item in names.imports:
            module = self.module(item.module, path, item.level) if item.name == "*" else ""
            if module in self.files and (found := self.resolve(module, dotted, depth + 1)):
                return found
        return None

    def _through(self, item: Import, path: str, rest: str, depth: int) -> Found | None:
        """Follow an import to the file that binds the name."""
        if item.name and item.name != "*":
            module = self.module(item.module, path, item.level)
            if not module:
                return None
            if module in self.files and (names := self.names(module)) and item.name in names.bound:
                return self.resolve(module, f"{item.name}.{rest}".rstrip("."), depth + 1)
            if inner := self.submodule(module, item.name):
                return self._inside(inner, rest, depth)
            return self.resolve(module, f"{item.name}.{rest}".rstrip("."), depth + 1) if module in self.files else None
        if not item.bound:
            return self._longest(path, rest, depth)
        module = self.module(item.module, path, item.level)
        return self._inside(module, rest, depth) if module else None

    def _longest(self, path: str, dotted: str, depth: int) -> Found | None:
        """`a.b.c.f` after `import a.b.c`: the longest prefix that is a module, then the name in it."""
        head, rest = dotted, ""
        while head:
            if module := self.module(head, path):
                return self._inside(module, rest, depth)
            head, _, last = head.rpartition(".")
            rest = f"{last}.{rest}".rstrip(".")
        return None

    def _inside(self, module: str, rest: str, depth: int) -> Found | None:
        if not rest:
            return Found("module", module)
        first, _, more = rest.partition(".")
        names = self.names(module) if module in self.files else None
        if (names is None or first not in names.bound) and (inner := self.submodule(module, first)):
            return self._inside(inner, more, depth)
        return self.resolve(module, rest, depth + 1) if module in self.files else None

    def _member(self, path: str, name: str, rest: str) -> Found | None:
        names = self.names(path)
        while rest and names:
            first, _, rest = rest.partition(".")
            inner = f"{name}.{first}"
            if inner not in names.classes:
                owner, function = self.method(path, name, first) or (("", ""), None)
                return Found("method", owner[0], f"{owner[1]}.{first}") if function and not rest else None
            name = inner
        return Found("class", path, name)

    def class_of(self, path: str, name: str) -> Class | None:
        """The class `name` (qualified) of a file."""
        names = self.names(path)
        return names.classes.get(name) if names else None

    def function_of(self, path: str, name: str) -> Function | None:
        """The function or method `name` (qualified) of a file."""
        names = self.names(path)
        return names.functions.get(name) if names else None

    def lineage(self, path: str, name: str) -> tuple[list[tuple[str, str]], bool]:
        """The class and all its ancestors, nearest first, as (path, name); and whether none is unknown."""
        order: list[tuple[str, str]] = []
        complete = self._climb(path, name, order)
        return order, complete

    def _climb(self, path: str, name: str, order: list[tuple[str, str]]) -> bool:
        if (path, name) in order:
            return True
        found = self.class_of(path, name)
        if found is None:
            return False
        order.append((path, name))
        complete = not found.dynamic
        for base in found.bases:
            up = self.resolve(path, base) if base else None
            if up is not None and up.kind == "class":
                complete &= self._climb(up.path, up.name, order)
            else:
                complete &= base in _PLAIN_BASES
        return complete

    def attributes(self, path: str, name: str) -> dict[str, set[str]]:
        """What one class itself gives its instances: attribute to the methods that set it ("" in the body)."""
        if (path, name) not in self._attributes:
            found: dict[str, set[str]] = {}
            names = self.names(path)
            for member in names.classes[name].members if names and name in names.classes else ():
                found.setdefault(member, set()).add("")
            for use in names.self_sets if names else ():
                if use.host.startswith(f"{name}."):
                    method = use.host.removeprefix(f"{name}.").partition(".")[0]
                    found.setdefault(use.text, set()).add(method)
            self._attributes[path, name] = found
        return self._attributes[path, name]

    def method(self, path: str, name: str, method: str) -> tuple[tuple[str, str], Function | None] | None:
        """The nearest definition of a method: ((path, class), function)."""
        for owner in self.lineage(path, name)[0]:
            if found := self.function_of(owner[0], f"{owner[1]}.{method}"):
                return owner, found
        return None
