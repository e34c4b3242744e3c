"""Stand-ins for modules that have no CPU form: importable, decorating, never computing.

Copied into the environment that `stackctl smoke prepare` makes and imported there by a .pth file, which
spawned children see too. The finder goes last, so a module that is really installed always wins. What is
asked of a stand-in at import (a decorator, a base class, an annotation) works; a kernel that somebody
launches does not (`kernel[grid]` on a plain function is a TypeError), so nothing can look computed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# triton on x86-64 is a gigabyte of compiler; PyPI's torchvision does not load beside a CPU torch.
NAMES = frozenset({"triton", "torchvision"})
# Real triton raises RuntimeError for this on a machine without a GPU, and its users choose "cpu" then.
NO_DEVICE = "triton.runtime.driver.active"


def attribute(owner: str, name: str) -> Any:
    """What `owner.name` stands for: a class where the name is spelled as one, anything at all elsewhere.

    torch._inductor puts triton's classes into a TypeVar and compares the result, so a class must be one.
    """
    if name.startswith("__"):
        raise AttributeError(f"the stand-in for {owner} has no {name}")
    if f"{owner}.{name}" == NO_DEVICE:
        raise RuntimeError("no active driver: this is a stand-in for triton")
    if not name[0].isupper():
        return StandIn(f"{owner}.{name}")
    bases = (StandInClass, Exception) if name.endswith("Error") else (StandInClass,)
    return StandInType(name, bases, {"__module__": owner})


class StandIn:
    """A function, decorator, constant or submodule of a missing module."""

    __iter__ = None  # else Python would iterate through __getitem__ for ever

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, name: str) -> Any:
        return attribute(self.__name__, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if is_bare_decoration(args, kwargs) else StandIn(f"{self.__name__}()")

    def __getitem__(self, key: object) -> StandIn:
        return self

    def __contains__(self, item: object) -> bool:
        return False

    def __or__(self, other: object) -> StandIn:
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return ()

    def __instancecheck__(self, instance: object) -> bool:
        return False

    def __subclasscheck__(self, subclass: type) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<stand-in for {self.__name__}>"


class StandInType(type):
    """A class whose attributes are stand-ins as well: an enumeration's members, say."""

    def __getattr__(cls, name: str) -> Any:
        return attribute(cls.__name__, name)


class StandInClass(metaclass=StandInType):
    """A class of a missing module: any constructor call and any attribute will do."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return attribute(type(self).__name__, name)


class StandInModule(ModuleType):
    """A module, and a package of any depth, of stand-ins."""

    __version__ = "0.0.0"

    def __getattr__(self, name: str) -> Any:
        value = attribute(self.__name__, name)
        setattr(self, name, value)  # the next import gets the same class
        return value


class Finder:
    """Finds the stand-ins, and makes them."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name.partition(".")[0] not in NAMES:
            return None
        return ModuleSpec(name, self, origin="stackctl stand-in", is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def is_bare_decoration(args: Sequence[object], kwargs: dict[str, object]) -> bool:
    """Is this `@decorator` over a function or class, and not a call with settings?"""
    return len(args) == 1 and not kwargs and callable(args[0]) and not isinstance(args[0], StandIn)


def install() -> None:
    """Put the finder last, once: importing this module is what installs it."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder())


install()
