"""What one Python file binds and uses: the facts that resolution needs.

Everything here is plain tuples, lists and dicts, so that the cache can keep it; dotted expressions
are texts such as `self.runner.step`. A name that is local to a function is never reported.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

FORMAT = 8


class Parameter(NamedTuple):
    """One parameter: `kind` is "positional", "either", "keyword", "*" or "**"."""

    name: str
    kind: str
    required: bool


class Function(NamedTuple):
    """One function or method."""

    line: int
    parameters: tuple[Parameter, ...]
    decorators: tuple[str, ...]
    abstract: bool


class Class(NamedTuple):
    """One class: bases as dotted texts ("" for anything else), members with their kind."""

    line: int
    bases: tuple[str, ...]
    members: dict[str, str]
    dynamic: bool
    decorators: tuple[str, ...]


class Import(NamedTuple):
    """One imported name: `name` is "" for `import module`, "*" for a star import."""

    host: str
    module: str
    level: int
    name: str
    bound: str
    line: int
    guarded: bool


class Call(NamedTuple):
    """One call of a dotted callee: `open` if it unpacks, `bare` if it is a statement of its own.

    `key` is a first argument that is a text; `local` says that the callee's root is a local variable.
    """

    host: str
    callee: str
    positional: int
    keywords: tuple[str, ...]
    open: bool
    line: int
    key: str
    bare: bool
    local: bool


class Use(NamedTuple):
    """A dotted read `text` in `host`."""

    host: str
    text: str
    line: int


class Patch(NamedTuple):
    """A mock target: attribute `name` of `target` (a dotted text, or a module path if `quoted`)."""

    host: str
    target: str
    name: str
    quoted: bool
    line: int


@dataclass
class ModuleNames:
    """The names of one module."""

    bound: dict[str, int] = field(default_factory=dict)
    imports: list[Import] = field(default_factory=list)
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)
    self_sets: list[Use] = field(default_factory=list)
    self_reads: list[Use] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    reads: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    patches: list[Patch] = field(default_factory=list)
    unbound: list[Use] = field(default_factory=list)
    options: list[Use] = field(default_factory=list)
    defined_options: list[str] = field(default_factory=list)
    rebound: list[str] = field(default_factory=list)
    open: bool = False

    def pack(self) -> list[Any]:
        """The content as values that `marshal` can write, what is rarely asked for as bytes of its own."""
        rows = ((item.name, _plain(getattr(self, item.name))) for item in fields(self))
        return [marshal.dumps(value) if name in _LAZY else value for name, value in rows]

    @classmethod
    def unpack(cls, stored: list[Any]) -> ModuleNames:
        """The inverse of `pack`; rows are made into named tuples when somebody asks for them."""
        made = object.__new__(_Stored)
        raw = dict(zip((item.name for item in fields(cls)), stored, strict=True))
        made.__dict__.update({name: value for name, value in raw.items() if name not in _LAZY}, _raw=raw)
        return made


class _Stored(ModuleNames):
    """Names from the cache: most readers of a module want its imports and bound names only."""

    def __getattr__(self, name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(name)
        value = _LAZY[name](marshal.loads(self._raw[name]))
        self.__dict__[name] = value
        return value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ModuleNames):
            return NotImplemented
        return all(getattr(self, item.name) == getattr(other, item.name) for item in fields(self))

    __hash__ = None  # type: ignore[assignment]


_ROWS: dict[str, Any] = {
    "imports": Import, "self_sets": Use, "self_reads": Use, "uses": Use, "calls": Call,
    "patches": Patch, "unbound": Use, "options": Use,
}  # fmt: skip



def _rows(row: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda stored: [row._make(item) for item in stored]


def _functions(stored: dict[str, Any]) -> dict[str, Function]:
    return {
        name: Function(line, tuple(Parameter._make(p) for p in params), decorators, abstract)
        for name, (line, params, decorators, abstract) in stored.items()
    }


def _classes(stored: dict[str, Any]) -> dict[str, Class]:
    return {name: Class._make(item) for name, item in stored.items()}


_LAZY: dict[str, Callable[[Any], Any]] = {
    **{name: _rows(row) for name, row in _ROWS.items()},
    "functions": _functions,
    "classes": _classes,
}


def _plain(value: Any) -> Any:
    """Named tuples as tuples, all the way down."""
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
