"""One function for each probe kind: it returns what it met and where, or raises NotThere or Unsure."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stackctl.model.probe import Answer, Probe, Told
from stackctl.probes.environment import Environment, NotThere, Unsure
from stackctl.probes.launch import Launch
from stackctl.probes.source import Found, Function, Sources, parameters


@dataclass(frozen=True)
class Asked:
    """Whom the questions go to. `launch` is None where no launch command was given."""

    environment: Environment
    launch: Launch | None = None
    variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    sources: Sources = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", Sources(self.environment))


Met = tuple[str, str]  # what was found, and where it was read


def ask(probe: Probe, asked: Asked) -> Answer:
    """The answer to one probe. Whatever cannot be told is not judged, with the reason."""
    try:
        if probe.kind in _INSTALLED and asked.environment.problem:
            raise Unsure(asked.environment.problem)
        found, evidence = _KINDS[probe.kind](probe, asked)
    except NotThere as error:
        return Answer(probe.name, Told.ABSENT, evidence=str(error))
    except Unsure as error:
        return Answer(probe.name, Told.NOT_JUDGED, evidence=str(error))
    return Answer(probe.name, Told.PRESENT, found, evidence)


def _distribution(probe: Probe, asked: Asked) -> Met:
    from packaging.version import InvalidVersion, Version

    from stackctl.trees.ranges import parse_range

    name, versions = probe.options["name"], probe.options.get("versions", "")
    version = asked.environment.version(name)
    try:
        fits = parse_range(versions).contains(Version(version), prereleases=True)
    except InvalidVersion:
        raise Unsure(f"{name} has the version {version!r}, which does not compare") from None
    if not fits:
        raise NotThere(f"{name} {version} is installed, which is not {versions}")
    return version, f"{name} {version}"


def _symbol(probe: Probe, asked: Asked) -> Met:
    found = asked.sources.find(probe.options["target"])
    return type(found[0].node).__name__ if found[0].node else "module", found[0].where


def _parameter(probe: Probe, asked: Asked) -> Met:
    target, name = probe.options["target"], probe.options["parameter"]
    answers = [_takes(each, name, asked.sources) for each in asked.sources.find(target)]
    if any(taken != answers[0][0] for taken, _ in answers):
        raise Unsure(f"{target} is defined in more than one way: {', '.join(where for _, where in answers)}")
    if not answers[0][0]:
        raise NotThere(f"{target} at {answers[0][1]} takes no {name}")
    return name, answers[0][1]


def _takes(found: Found, name: str, sources: Sources) -> tuple[bool, str]:
    """Whether a function, or the construction of a class, takes a parameter."""
    node = found.node
    if isinstance(node, ast.ClassDef):
        if _is_dataclass(node):
            return _has_field(found, name, sources), found.where
        return _takes(sources.member(found, "__init__")[-1], name, sources)
    if not isinstance(node, Function):
        raise Unsure(f"{found.where} is no function: its parameters cannot be read")
    if name not in parameters(node) and node.args.kwarg:
        raise Unsure(f"{found.where} takes **{node.args.kwarg.arg}, so {name} may be taken or thrown away")
    wrapped = f" (under @{', @'.join(map(ast.unparse, node.decorator_list))})" if node.decorator_list else ""
    return name in parameters(node), found.where + wrapped


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(each) for each in node.decorator_list)


def _has_field(found: Found, name: str, sources: Sources) -> bool:
    try:
        return any(isinstance(each.node, ast.AnnAssign) for each in sources.member(found, name))
    except NotThere:
        return False


def _attribute(probe: Probe, asked: Asked) -> Met:
    found = asked.sources.find(probe.options["target"])
    value = getattr(found[0].node, "value", None)
    plain = isinstance(found[0].node, (ast.Assign, ast.AnnAssign)) and isinstance(value, ast.expr)
    return (ast.unparse(value)[:80] if plain else type(found[0].node).__name__), found[0].where  # type: ignore[arg-type]


def _file(probe: Probe, asked: Asked) -> Met:
    path = Path(probe.options["path"])
    tried = (
        [path]
        if path.is_absolute()
        else [folder / path for folder in (*asked.environment.folders, asked.environment.prefix)]
    )
    found = next((each for each in tried if each.exists()), None)
    if found is not None:
        return str(found), str(found)
    if owner := asked.environment.claims(path.as_posix()):
        raise Unsure(f"{owner} is damaged: {path} is listed and not there")
    raise NotThere(f"there is no {path}")


def _variable(probe: Probe, asked: Asked) -> Met:
    name = probe.options["name"]
    given = {**asked.variables, **(asked.launch.variables if asked.launch else {})}
    if name not in given:
        raise NotThere(f"{name} is not set")
    where = (
        "in front of the launch command" if asked.launch and name in asked.launch.variables else "in the environment"
    )
    return _equal(probe, given[name], f"{name} is {given[name]!r} {where}")


def _flag(probe: Probe, asked: Asked) -> Met:
    flag = probe.options["flag"]
    if asked.launch is None:
        raise Unsure("no launch command was given: --launch CMD")
    value = asked.launch.flag(flag)
    return _equal(probe, value, f"{flag} {value}".rstrip() + " is passed")


def _equal(probe: Probe, value: str, evidence: str) -> Met:
    wanted = probe.options.get("equals")
    if wanted is not None and value != wanted:
        raise NotThere(f"{evidence}, not {wanted!r}")
    return value, evidence


_KINDS: Mapping[str, Callable[[Probe, Asked], Met]] = {
    "distribution": _distribution,
    "symbol": _symbol,
    "parameter": _parameter,
    "attribute": _attribute,
    "file": _file,
    "variable": _variable,
    "flag": _flag,
}
_INSTALLED = frozenset({"distribution", "symbol", "parameter", "attribute", "file"})
