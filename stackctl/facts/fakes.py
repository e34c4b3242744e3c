"""Hand-made stand-ins in tests, and the code under test that each is given to.

A fake is a SimpleNamespace, an instance of a small class of the test file, or a real class's
instance made by `__new__` without its constructor. Its attributes are a tree: a value that is not
itself a fake may have anything below it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from stackctl.facts.binding import dotted
from stackctl.trees.source import Source

FORMAT = 1
HINTS = (b"SimpleNamespace", b".__new__(", b"class Fake", b"class _Fake", b"class Dummy", b"class Stub", b"class Mock")
_CONTAINERS = frozenset({"list", "tuple", "dict", "set", "iter", "next", "enumerate", "zip", "deepcopy", "copy"})
_BINDERS = frozenset({"MethodType", "partial"})


@dataclass
class Fake:
    """One stand-in: `attributes` by name (None: any value), `made_of` the real class under `__new__`."""

    line: int
    attributes: dict[str, Fake | None] = field(default_factory=dict)
    made_of: str = ""
    open: bool = False

    def missing(self, path: str) -> str:
        """The part of `path` that the fake lacks, or ""."""
        node: Fake | None = self
        seen = []
        for name in path.split("."):
            seen.append(name)
            if node is None or node.open or (name.startswith("__") and name.endswith("__")):
                return ""
            if name not in node.attributes:
                return ".".join(seen)
            node = node.attributes[name]
        return ""


    def pack(self) -> tuple:
        """The fake as values that `marshal` can write."""
        inner = {name: value and value.pack() for name, value in self.attributes.items()}
        return self.line, inner, self.made_of, self.open

    @classmethod
    def unpack(cls, stored: tuple) -> Fake:
        """The inverse of `pack`."""
        line, inner, made_of, opened = stored
        return cls(line, {name: value and cls.unpack(value) for name, value in inner.items()}, made_of, opened)


@dataclass(frozen=True)
class Given:
    """A fake given to code under test: `slot` is an argument's position or name, "self" for the receiver."""

    host: str
    fake: Fake
    callee: str
    slot: int | str
    line: int


def pack_fakes(found: list[Given]) -> list[tuple]:
    """What `read_fakes` found, as values that `marshal` can write."""
    return [(item.host, item.fake.pack(), item.callee, item.slot, item.line) for item in found]


def unpack_fakes(stored: list[tuple]) -> list[Given]:
    """The inverse of `pack_fakes`."""
    return [Given(host, Fake.unpack(fake), callee, slot, line) for host, fake, callee, slot, line in stored]


def read_fakes(source: Source) -> list[Given]:
    """Every place in a file where a fake reaches code under test. Raises SourceError."""
    module = source.module
    reader = _Reader(module)
    return list(reader.module(module))


class _Reader:
    def __init__(self, module: ast.Module) -> None:
        self._makers = {"SimpleNamespace", "types.SimpleNamespace"}
        self._classes: dict[str, ast.ClassDef] = {}
        for node in ast.walk(module):
            if isinstance(node, ast.ImportFrom):
                self._makers |= {a.asname for a in node.names if a.name == "SimpleNamespace" and a.asname}
            elif isinstance(node, ast.ClassDef) and _is_small(node):
                self._classes[node.name] = node
        self._fakes: dict[str, list[Fake]] = {}
        self._instances: dict[str, str] = {}

    def module(self, module: ast.Module) -> Iterator[Given]:
        yield from self._body(module.body, "")

    def _body(self, body: list[ast.stmt], host: str) -> Iterator[Given]:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = f"{host}.{node.name}" if host else node.name
                outer = dict(self._fakes), dict(self._instances)
                yield from self._body(node.body, inner)
                kept = {k: v for k, v in self._fakes.items() if k.startswith("self.")}
                self._fakes, self._instances = {**outer[0], **kept}, outer[1]
            else:
                yield from self._statement(node, host)

    def _statement(self, node: ast.stmt, host: str) -> Iterator[Given]:
        for call in _own_calls(node):
            yield from self._call(call, host)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            self._assign(targets, node.value)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._assign([node.target], node.iter)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    self._assign([item.optional_vars], item.context_expr)
        for name in ("body", "orelse", "finalbody"):
            yield from self._body(getattr(node, name, []), host)
        for handler in getattr(node, "handlers", []):
            yield from self._body(handler.body, host)

    def _assign(self, targets: list[ast.expr], value: ast.expr) -> None:
        fakes = list(self._of(value))
        for target in targets:
            name = dotted(target)
            owner, _, attribute = name.rpartition(".")
            if owner in self._fakes:
                for fake in self._fakes[owner]:
                    fake.attributes[attribute] = fakes[0] if len(fakes) == 1 else None
            if name:
                self._fakes.pop(name, None)
                if fakes:
                    self._fakes[name] = fakes
                if isinstance(value, ast.Call) and (made := dotted(value.func)):
                    self._instances[name] = made

    def _of(self, node: ast.AST) -> Iterator[Fake]:
        """The fakes an expression may be or hold."""
        if isinstance(node, ast.Call):
            if made := self._make(node):
                yield made
            elif dotted(node.func).rpartition(".")[2] in _CONTAINERS:
                for argument in node.args:
                    yield from self._of(argument)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            yield from self._read(node)
        elif isinstance(node, ast.Subscript):
            yield from self._of(node.value)
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            for element in node.elts:
                yield from self._of(element)
        elif isinstance(node, ast.Dict):
            for value in node.values:
                yield from self._of(value)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            yield from self._of(node.elt)
        elif isinstance(node, ast.DictComp):
            yield from self._of(node.value)

    def _read(self, node: ast.Name | ast.Attribute) -> Iterator[Fake]:
        name = dotted(node)
        if name in self._fakes:
            yield from self._fakes[name]
            return
        head, _, last = name.rpartition(".")
        for fake in self._fakes.get(head, []):
            inner = fake.attributes.get(last)
            if inner is not None:
                yield inner

    def _make(self, node: ast.Call) -> Fake | None:
        callee = dotted(node.func)
        if callee in self._makers:
            fake = Fake(node.lineno, open=bool(node.args) or any(k.arg is None for k in node.keywords))
            for keyword in node.keywords:
                inner = list(self._of(keyword.value)) if not isinstance(keyword.value, (ast.List, ast.Dict)) else []
                fake.attributes[keyword.arg or ""] = inner[0] if len(inner) == 1 else None
            return fake
        if callee.endswith(".__new__") and node.args and (made := dotted(node.args[0])):
            return Fake(node.lineno, made_of=made)
        if callee in self._classes:
            return _instance(self._classes[callee])
        return None

    def _call(self, node: ast.Call, host: str) -> Iterator[Given]:
        callee = self._callee(node.func)
        if not callee or self._make(node) is not None:
            return
        if callee.rpartition(".")[2] in _BINDERS and len(node.args) > 1 and (method := dotted(node.args[0])):
            for fake in self._of(node.args[1]):
                yield Given(host, fake, method, 0, node.lineno)
            return
        receiver, _, method = callee.rpartition(".")
        for fake in self._fakes.get(receiver, []):
            if fake.made_of:
                yield Given(host, fake, f"{fake.made_of}.{method}", "self", node.lineno)
        slots: list[tuple[int | str, ast.expr]] = list(enumerate(node.args))
        slots += [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg]
        for slot, argument in slots:
            for fake in self._of(argument):
                if fake.line and isinstance(argument, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
                    yield Given(host, fake, callee, slot, node.lineno)

    def _callee(self, node: ast.expr) -> str:
        """The called name; a method of an instance made here or before is named through its class."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
            made = dotted(node.value.func)
            return f"{made}.{node.attr}()" if made else ""
        name = dotted(node)
        receiver, _, method = name.rpartition(".")
        if receiver in self._instances and receiver not in self._fakes:
            return f"{self._instances[receiver]}.{method}()"
        return name


def _own_calls(node: ast.stmt) -> Iterator[ast.Call]:
    """The calls of one statement, without those of the statements inside it."""
    stack: list[ast.AST] = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, ast.Call):
            yield current
        for child in ast.iter_child_nodes(current):
            if not isinstance(child, (ast.stmt, ast.ExceptHandler)):
                stack.append(child)


def _is_small(node: ast.ClassDef) -> bool:
    """Whether a class stands for itself: no base that could bring attributes along."""
    return all(dotted(base) == "object" for base in node.bases) and not node.keywords and not node.decorator_list


def _instance(node: ast.ClassDef) -> Fake:
    fake = Fake(node.lineno)
    for item in ast.walk(node):
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            fake.attributes[item.name] = None
            fake.open |= item.name in ("__getattr__", "__getattribute__")
        elif isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
            fake.attributes[item.id] = None
        elif isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store) and dotted(item.value) == "self":
            fake.attributes[item.attr] = None
        elif isinstance(item, ast.Call) and dotted(item.func) == "setattr":
            fake.open = True
    return fake
