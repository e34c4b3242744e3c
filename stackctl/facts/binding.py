"""Read one module: which names each scope binds, and what it does with them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from stackctl.facts.names import Call, Class, Function, Import, ModuleNames, Parameter, Patch, Use
from stackctl.facts.statements import parameters
from stackctl.trees.source import Source

_PATCHERS = {"patch", "setattr", "delattr", "patch.object", "patch.dict", "patch.multiple"}


def read_names(source: Source) -> ModuleNames:
    """Read one module. Raises SourceError where Python cannot parse it."""
    reader = _Reader()
    reader.module(source.module)
    return reader.names


def dotted(node: ast.AST) -> str:
    """`a.b.c` for a chain of attributes on a name, else ""."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


@dataclass
class _Scope:
    """One function, class or module being read."""

    host: str
    kind: str
    bound: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    imported: set[str] = field(default_factory=set)
    loads: list[tuple[str, int]] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    patches: list[Patch] = field(default_factory=list)
    parameters: tuple[str, ...] = ()
    owner: str = ""
    receiver: str = ""


class _Reader:
    """One pass over one module, with the scopes kept as a stack."""

    def __init__(self) -> None:
        self.names = ModuleNames()
        self._scopes: list[_Scope] = [_Scope("", "module")]
        self._guards = 0
        self._finished: list[tuple[_Scope, tuple[_Scope, ...]]] = []

    def module(self, node: ast.Module) -> None:
        """Read the whole module, then settle which loads no scope binds."""
        self._visit_all(node.body)
        top = self._scopes[0]
        self._finished.append((top, ()))
        stars = any(item.name == "*" for item in self.names.imports)
        self.names.open |= stars or "__getattr__" in top.bound
        seen: set[tuple[str, str]] = set()
        for scope, outer in self._finished:
            self._settle(scope, outer, top, seen)

    def _settle(self, scope: _Scope, outer: tuple[_Scope, ...], top: _Scope, seen: set[tuple[str, str]]) -> None:
        visible = [item.bound for item in outer if item.kind != "class"]
        self._publish(scope, outer)
        for name, line in scope.loads:
            known = name in top.bound or (name in scope.bound and name not in scope.globals)
            if known or (scope.host, name) in seen or any(name in bound for bound in visible):
                continue
            seen.add((scope.host, name))
            self.names.unbound.append(Use(scope.host, name, line))

    def _publish(self, scope: _Scope, outer: tuple[_Scope, ...]) -> None:
        """Keep what is not about a local variable: that says nothing without types."""
        chain = [item for item in (*outer, scope) if item.kind in ("function", "lambda")]
        local = set().union(*(item.bound - item.imported - item.globals for item in chain))
        self.names.uses.extend(use for use in scope.uses if use.text.partition(".")[0] not in local)
        self.names.patches.extend(p for p in scope.patches if p.quoted or p.target.partition(".")[0] not in local)
        for call in scope.calls:
            self.names.calls.append(call._replace(local=call.callee.partition(".")[0] in local))

    @property
    def _here(self) -> _Scope:
        return self._scopes[-1]

    @property
    def _host(self) -> str:
        return self._here.host

    def _bind(self, name: str, line: int) -> None:
        scope = self._here
        if name in scope.globals:
            scope = self._scopes[0]
        scope.bound.add(name)
        if scope.kind == "module":
            if self.names.bound.setdefault(name, line) != line and name not in self.names.rebound:
                self.names.rebound.append(name)
        elif scope.kind == "class":
            self.names.classes[scope.host].members.setdefault(name, "value")

    def _visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self._visit(node)

    def _visit(self, node: ast.AST) -> None:
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            handler(self, node)
        else:
            self._visit_children(node)

    def _visit_children(self, node: ast.AST) -> None:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                self._visit(value)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        self._visit(item)

    def _name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._here.loads.append((node.id, node.lineno))
        else:
            self._bind(node.id, node.lineno)

    def _attribute(self, node: ast.Attribute) -> None:
        text = dotted(node)
        if not text:
            self._visit(node.value)
            return
        root = text.partition(".")[0]
        self._here.loads.append((root, node.lineno))
        function = self._function()
        if function is not None and root in function.parameters:
            self._parameter(node, text, root, function)
        elif isinstance(node.ctx, ast.Load):
            self._here.uses.append(Use(self._host, text, node.lineno))
        elif text.count("."):
            target, _, name = text.rpartition(".")
            self._here.patches.append(Patch(self._host, target, name, False, node.lineno))

    def _parameter(self, node: ast.Attribute, text: str, root: str, function: _Scope) -> None:
        """An attribute of a parameter: of `self` it belongs to the class, of others to the contract."""
        path = text.partition(".")[2]
        if root == function.receiver:
            first = path.partition(".")[0]
            store = not isinstance(node.ctx, ast.Load) and "." not in path
            into = self.names.self_sets if store else self.names.self_reads
            into.append(Use(function.host, first if store else path, node.lineno))
        if isinstance(node.ctx, ast.Load):
            paths = self.names.reads.setdefault(function.host, {}).setdefault(root, [])
            if path not in paths:
                paths.append(path)

    def _function(self) -> _Scope | None:
        for scope in reversed(self._scopes):
            if scope.kind == "function":
                return scope
        return None

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._visit_all(node.decorator_list)
        self._visit_all([*node.args.defaults, *node.args.kw_defaults, node.returns])
        self._visit_all(argument.annotation for _, argument, _ in parameters(node.args))
        self._bind(node.name, node.lineno)
        outer = self._here
        host = f"{outer.host}.{node.name}" if outer.host else node.name
        decorators = tuple(dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list)
        if host in self.names.functions:
            decorators += ("defined again",)
        self.names.functions[host] = Function(node.lineno, _signature(node.args), decorators, _is_abstract(node))
        receiver = ""
        if outer.kind == "class":
            self.names.classes[outer.host].members[node.name] = "method"
            if "staticmethod" not in decorators and node.args.args:
                receiver = node.args.args[0].arg
        self._enter(node, host, receiver)

    def _enter(self, node: ast.FunctionDef | ast.AsyncFunctionDef, host: str, receiver: str) -> None:
        named = tuple(argument.arg for _, argument, _ in parameters(node.args))
        scope = _Scope(host, "function", set(named), parameters=named, receiver=receiver)
        enclosing = self._function()
        if enclosing is not None and not receiver and enclosing.receiver not in named:
            scope.receiver = enclosing.receiver
            scope.parameters += (enclosing.receiver,) if enclosing.receiver else ()
        self._scopes.append(scope)
        self._visit_all(node.body)
        self._leave()

    def _leave(self) -> None:
        scope = self._scopes.pop()
        self._finished.append((scope, tuple(self._scopes[1:])))

    def _lambda(self, node: ast.Lambda) -> None:
        self._visit_all([*node.args.defaults, *node.args.kw_defaults])
        named = {argument.arg for _, argument, _ in parameters(node.args)}
        self._scopes.append(_Scope(self._host, "lambda", named))
        self._visit(node.body)
        self._leave()

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        self._scopes.append(_Scope(self._host, "lambda"))
        for generator in node.generators:
            self._visit(generator.target)
        for generator in node.generators:
            self._visit_all([generator.iter, *generator.ifs])
        self._visit_all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        self._leave()

    def _walrus(self, node: ast.NamedExpr) -> None:
        self._visit(node.value)
        held = []
        while self._here.kind == "lambda":
            held.append(self._scopes.pop())
        self._bind(node.target.id, node.lineno)
        self._scopes.extend(reversed(held))

    def _class(self, node: ast.ClassDef) -> None:
        self._visit_all([*node.decorator_list, *node.bases, *(item.value for item in node.keywords)])
        self._bind(node.name, node.lineno)
        host = f"{self._host}.{node.name}" if self._host else node.name
        bases = tuple(dotted(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases)
        decorators = tuple(dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list)
        self.names.classes[host] = Class(node.lineno, bases, {}, bool(node.keywords), decorators)
        self._scopes.append(_Scope(host, "class"))
        self._visit_all(node.body)
        members = self.names.classes[host].members
        if any(name in members for name in ("__getattr__", "__getattribute__", "__slots__")):
            self.names.classes[host] = self.names.classes[host]._replace(dynamic=True)
        self._leave()

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            self._bind(bound, node.lineno)
            self._imported(alias.name, 0, "", alias.asname or "", node.lineno)

    def _from(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if alias.name != "*":
                self._bind(alias.asname or alias.name, node.lineno)
            self._imported(node.module or "", node.level, alias.name, alias.asname or alias.name, alias.lineno)

    def _imported(self, module: str, level: int, name: str, bound: str, line: int) -> None:
        self._here.imported.add(bound or module.partition(".")[0])
        self.names.imports.append(Import(self._host, module, level, name, bound, line, self._guards > 0))

    def _try(self, node: ast.Try) -> None:
        caught = " ".join(ast.unparse(item.type) if item.type else "Exception" for item in node.handlers)
        guard = any(word in caught for word in ("ImportError", "ModuleNotFoundError", "Exception"))
        self._guards += guard
        self._visit_all(node.body)
        self._guards -= guard
        self._visit_all([*node.handlers, *node.orelse, *node.finalbody])

    def _handler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bind(node.name, node.lineno)
        self._visit_children(node)

    def _global(self, node: ast.Global) -> None:
        self._here.globals.update(node.names)

    def _nonlocal(self, node: ast.Nonlocal) -> None:
        """An outer function binds these; assigning to them here is not a new local name."""

    def _capture(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self._bind(node.name, node.lineno)
        self._visit_children(node)

    def _mapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self._bind(node.rest, node.lineno)
        self._visit_children(node)

    def _constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, str) and value.startswith("--") and len(value) > 3 and value[2:].replace("-", "").isalnum():
            self.names.options.append(Use(self._host, value, node.lineno))

    def _call(self, node: ast.Call) -> None:
        callee = dotted(node.func) or _super_call(node.func)
        if callee:
            self._record_call(node, callee)
        self._visit_children(node)

    def _record_call(self, node: ast.Call, callee: str) -> None:
        unpacks = any(isinstance(item, ast.Starred) for item in node.args) or any(k.arg is None for k in node.keywords)
        words = tuple(item.arg for item in node.keywords if item.arg)
        key = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
        key = key if isinstance(key, str) else ""
        bare = getattr(node, "bare", False)
        self._here.calls.append(
            Call(self._host, callee, len(node.args), words, unpacks, node.lineno, key, bare, False)
        )
        last = callee.rpartition(".")[2]
        if last == "add_argument":
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    self.names.defined_options.append(argument.value)
        if callee in ("setattr", "object.__setattr__") and node.args and dotted(node.args[0]) == "self":
            self._mark_dynamic()
        if last in _PATCHERS or callee.endswith("patch.object"):
            self._patch(node, callee)

    def _expression(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            node.value.bare = True  # type: ignore[attr-defined]
        self._visit(node.value)

    def _mark_dynamic(self) -> None:
        for scope in reversed(self._scopes):
            if scope.kind == "class":
                self.names.classes[scope.host] = self.names.classes[scope.host]._replace(dynamic=True)
                return

    def _patch(self, node: ast.Call, callee: str) -> None:
        texts = [item.value if isinstance(item, ast.Constant) else None for item in node.args[:2]]
        first = texts[0] if texts else None
        if isinstance(first, str) and "." in first and " " not in first and not callee.endswith("patch.dict"):
            target, _, name = first.rpartition(".")
            self._here.patches.append(Patch(self._host, target, name, True, node.lineno))
        elif len(texts) == 2 and isinstance(texts[1], str) and (target := dotted(node.args[0])):
            allowed = any(k.arg in ("create", "raising") for k in node.keywords)
            if not allowed and (callee.endswith("patch.object") or "monkeypatch" in callee or callee == "setattr"):
                self._here.patches.append(Patch(self._host, target, texts[1], False, node.lineno))


def _super_call(node: ast.AST) -> str:
    """`super().name` for a call through super, else ""."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call) and dotted(node.value.func) == "super":
        return f"super().{node.attr}"
    return ""


def _signature(arguments: ast.arguments) -> tuple[Parameter, ...]:
    positional = {item.arg for item in arguments.posonlyargs}
    keyword = {item.arg for item in arguments.kwonlyargs}
    optional = {item.arg for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default}
    found = []
    for name, argument, default in parameters(arguments):
        stars = name[: len(name) - len(name.lstrip("*"))]
        plain = argument.arg
        kind = stars or ("positional" if plain in positional else "keyword" if plain in keyword else "either")
        required = not stars and default is None and plain not in optional
        found.append(Parameter(plain, kind, required))
    return tuple(found)


def _is_abstract(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the body is nothing but a docstring, `pass`, `...` or `raise NotImplementedError`."""
    return all(
        isinstance(item, ast.Pass)
        or (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))
        or (isinstance(item, ast.Raise) and "NotImplementedError" in ast.unparse(item))
        for item in node.body
    )


_HANDLERS: dict[type, Any] = {
    ast.Name: _Reader._name,
    ast.Attribute: _Reader._attribute,
    ast.FunctionDef: _Reader._definition,
    ast.AsyncFunctionDef: _Reader._definition,
    ast.Lambda: _Reader._lambda,
    ast.ListComp: _Reader._comprehension,
    ast.SetComp: _Reader._comprehension,
    ast.GeneratorExp: _Reader._comprehension,
    ast.DictComp: _Reader._comprehension,
    ast.NamedExpr: _Reader._walrus,
    ast.ClassDef: _Reader._class,
    ast.Import: _Reader._import,
    ast.ImportFrom: _Reader._from,
    ast.Try: _Reader._try,
    ast.TryStar: _Reader._try,
    ast.ExceptHandler: _Reader._handler,
    ast.Global: _Reader._global,
    ast.Nonlocal: _Reader._nonlocal,
    ast.MatchAs: _Reader._capture,
    ast.MatchStar: _Reader._capture,
    ast.MatchMapping: _Reader._mapping,
    ast.Constant: _Reader._constant,
    ast.Call: _Reader._call,
    ast.Expr: _Reader._expression,
}
