"""Read stack.toml and the entries' manifests; report every error at once, with file and line."""

from __future__ import annotations

import ast
import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from stackctl.model.errors import StackctlError
from stackctl.model.stack import Disposition, Entry, Plant, Stack, digest
from stackctl.plants.kind import Kind, Option
from stackctl.plants.registry import kinds
from stackctl.plants.stacks import STACK_FILE

_FOLDER = re.compile(r"([0-9]+)-([a-z0-9][a-z0-9.-]*)\Z")
_HOST = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:([A-Za-z_]\w*(\.[A-Za-z_]\w*)*)?\Z")
_ID = re.compile(r"[a-z0-9][a-z0-9-]*\Z")

_STACK_KEYS: dict[str, type] = {"name": str, "upstream": str, "base": str, "source": str, "markers": dict}
_ENTRY_KEYS: dict[str, type] = {
    "number": int, "title": str, "upstream": list, "disposition": str, "default": str, "switch": str,
    "requires": list, "excludes": list, "watch": list, "notes": str, "plant": list, "adopted_by": dict,
    "probes": dict,
}  # fmt: skip
_DECISION_KEYS: dict[str, type] = {
    "reason": str, "remove_when": str, "url": str, "commit": str, "partial": bool,
    "blocked_by": str, "superseded_by": str, "evidence": str,
}  # fmt: skip
_ITEMS: dict[str, type] = {"upstream": str, "requires": int, "excludes": int, "watch": str, "adopted_by": list, "probes": list}
_PROBE_ROLES = ("active", "inert", "due_again")
_PLANT_KEYS: dict[str, type] = {"id": str, "kind": str, "host": str, "releases": str, "unit": str, "adopted_with": str}


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a declaration."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class ManifestError(StackctlError):
    """Every problem of a stack's declarations together."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: (str(problem.path), problem.line))
        count = len(problems)
        text = "\n".join(map(str, self.problems))
        super().__init__(f"{count} problem{'s' if count > 1 else ''} in the stack's declarations\n{text}")


def load_stack(root: Path) -> Stack:
    """The whole stack below `root`. Raises ManifestError with every problem there is."""
    problems: list[Problem] = []
    table, lines = _read(root / STACK_FILE, problems)
    _check_keys(table, _STACK_KEYS, root / STACK_FILE, lines, problems)
    if table and not table.get("name"):
        problems.append(Problem(root / STACK_FILE, 1, "a stack needs a name"))
    if not isinstance(source := table.get("source", ""), str) or _leaves_root(source):
        problems.append(Problem(root / STACK_FILE, lines.of("source"), f"source {source!r} is not a folder below the tree's root"))
    problems += _check_markers(table.get("markers", {}), root / STACK_FILE, lines)
    entries = [entry for folder in _entry_folders(root, problems) if (entry := _entry(folder, problems))]
    stack = Stack(
        name=table.get("name", ""), root=root, entries=tuple(sorted(entries, key=lambda entry: entry.number)),
        upstream=table.get("upstream", ""), base=table.get("base", ""), source=table.get("source", "python"),
        marker_pattern="" if problems else table.get("markers", {}).get("pattern", ""),
    )  # fmt: skip
    problems += _check_numbers(stack)
    problems += _check_patches(stack, _mentioned(root) if problems else b"")
    if problems:
        raise ManifestError(problems)
    return stack


def _check_markers(table: Any, path: Path, lines: Lines) -> Iterator[Problem]:
    """The syntax of merge markers: [markers] pattern, a regular expression that says which group the batch is."""
    for key in table if isinstance(table, dict) else ():
        if key != "pattern":
            yield Problem(path, lines.of("markers"), f"markers has no key {key!r}{_near(key, ['pattern'])}")
    pattern = table.get("pattern") if isinstance(table, dict) else None
    if pattern is None:
        return
    try:
        groups = re.compile(pattern).groupindex
    except (re.error, TypeError) as error:
        yield Problem(path, lines.of("markers"), f"markers.pattern is not a regular expression: {error}")
    else:
        for name in {"batch", "text"} - set(groups):
            yield Problem(path, lines.of("markers"), f"markers.pattern has no group (?P<{name}>...)")


def _leaves_root(folder: str) -> bool:
    parts = folder.split("/") if folder else []
    return "\\" in folder or "\0" in folder or any(part in ("", ".", "..") or part.lower() == ".git" for part in parts)


def _entry_folders(root: Path, problems: list[Problem]) -> Iterator[Path]:
    folder = root / "entries"
    for child in sorted(folder.iterdir()) if folder.is_dir() else []:
        if child.name.startswith(".") or child.name == "__pycache__":
            continue
        if not child.is_dir():
            problems.append(Problem(child, 1, "only folders belong in entries/"))
        elif not _FOLDER.match(child.name):
            problems.append(Problem(child, 1, "an entry's folder is named NNN-slug, as 201-preprocess-executor"))
        elif not (child / "entry.toml").is_file():
            problems.append(Problem(child / "entry.toml", 1, "the entry has no manifest"))
        else:
            yield child


def _entry(folder: Path, problems: list[Problem]) -> Entry | None:
    path = folder / "entry.toml"
    table, lines = _read(path, problems)
    if not table:
        return None
    before = len(problems)
    known = {**_ENTRY_KEYS, **_DECISION_KEYS}
    _check_keys(table, known, path, lines, problems)
    match = _FOLDER.match(folder.name)
    number = table.get("number")
    if match and number != int(match[1]):
        problems.append(Problem(path, lines.of("number"), f"number is {number!r}, the folder says {int(match[1])}"))
    title = table.get("title")
    if not title:
        problems.append(Problem(path, 1, "an entry needs a title"))
    elif isinstance(title, str) and len(title.splitlines()) > 1:  # it is a commit's subject
        problems.append(Problem(path, lines.of("title"), "the title must be one line"))
    disposition = _disposition(table, path, lines, problems)
    problems += _check_probes(table, folder.parent.parent, path, lines)
    if len(problems) > before or match is None or disposition is None:
        return None
    entry = Entry(
        number=table["number"], slug=match[2], title=table["title"], folder=folder, disposition=disposition,
        upstream=tuple(table.get("upstream", ())), default=table.get("default", ""), switch=table.get("switch", ""),
        requires=tuple(table.get("requires", ())), excludes=tuple(table.get("excludes", ())),
        watch=tuple(table.get("watch", ())), notes=table.get("notes", ""),
        decision={key: table[key] for key in _DECISION_KEYS if key in table},
        adopted_by={unit: tuple(symbols) for unit, symbols in table.get("adopted_by", {}).items()},
        probes={role: tuple(names) for role, names in table.get("probes", {}).items()},
    )  # fmt: skip
    if not table.get("plant"):
        problems.append(Problem(path, 1, "an entry without a [[plant]] can be neither planted nor missed"))
    plants = tuple(_plants(table.get("plant", []), entry, lines, problems))
    entry = replace(entry, plants=plants)
    problems += _check_files(entry, lines, sound=len(plants) == len(table.get("plant", [])))
    return replace(entry, digest=_digest(table, entry))


def _plants(tables: list[Any], entry: Entry, lines: Lines, problems: list[Problem]) -> Iterator[Plant]:
    path, seen = entry.folder / "entry.toml", set()
    for index, table in enumerate(tables):
        line = lines.of_plant(index)
        if not isinstance(table, dict):
            problems.append(Problem(path, line, "a plant is a table: [[plant]]"))
            continue
        name = table.get("id")
        if not isinstance(name, str) or not _ID.match(name):
            problems.append(Problem(path, line, f"a plant needs an id of small letters, digits and dashes, not {name!r}"))
        elif name in seen:
            problems.append(Problem(path, line, f"two plants have the id {name!r}"))
        seen.add(str(name))
        options = {key: value for key, value in table.items() if key not in _PLANT_KEYS}
        plant = Plant(*(table.get(key, "") for key in _PLANT_KEYS), options=options, line=line)
        found = list(_check_plant(plant, table, entry))
        problems += [Problem(path, lines.of_plant(index, key), f"plant {name}: {message}") for key, message in found]
        if not found:
            yield plant


def _check_plant(plant: Plant, table: Mapping[str, Any], entry: Entry) -> Iterator[tuple[str, str]]:
    """(key, what is wrong with it) for every problem of one plant."""
    from stackctl.trees.ranges import check_range

    for key, wanted in _PLANT_KEYS.items():
        if key in table and not isinstance(table[key], wanted):
            yield key, f"{key} must be {_TYPES[wanted]}"
            return
    try:
        kind = kinds().get(plant.kind) or _own_kind(plant.kind, entry)
    except Exception as error:  # the stack's own code: whatever it raises is a problem of the stack
        yield "kind", f"rewrite.py fails: {type(error).__name__}: {error}"
        return
    if kind is None:
        yield "kind", f"no plant kind {plant.kind!r}{_near(plant.kind, kinds())}" if plant.kind else "a plant needs a kind"
        return
    yield from _check_options(plant, kind)
    if kind.host == "module" and not _HOST.match(plant.host):
        yield "host", f"host {plant.host!r} is not module:Class.function (module: for the module itself)"
    if plant.adopted_with and plant.adopted_with not in entry.adopted_by:
        yield "adopted_with", f"the entry's adopted_by has no key {plant.adopted_with!r}"
    if kind.host == "none" and plant.host:
        yield "host", f"a plant of kind {plant.kind} has no host"
    if plant.releases and (problem := check_range(plant.releases)):
        yield "releases", problem
    if not list(_check_options(plant, kind)):
        yield from (("kind", message) for message in kind.check(plant, entry))


def _check_options(plant: Plant, kind: Kind) -> Iterator[tuple[str, str]]:
    for key, value in plant.options.items():
        option = kind.options.get(key)
        if option is None:
            yield key, f"kind {plant.kind} has no key {key!r}{_near(key, kind.options)}"
        elif not isinstance(value, option.type) or (option.type is int and isinstance(value, bool)):
            yield key, f"{key} must be {_TYPES[option.type]}"
        elif message := _check_code(option, value):
            yield key, f"{key} {message}"
    for key, option in kind.options.items():
        if option.required and not plant.options.get(key) and plant.options.get(key) != 0:
            yield key, f"kind {plant.kind} needs {key}: {option.says}"


def _check_code(option: Option, value: Any) -> str | None:
    if not option.code:
        return None
    try:
        body = ast.parse(_dedent(value)).body
    except (SyntaxError, ValueError) as error:
        return f"is not Python: {error}"
    if option.code == "expression" and (len(body) != 1 or not isinstance(body[0], ast.Expr)):
        return "is not one expression"
    return None if body else "matches nothing: it holds no code"


def _dedent(text: str) -> str:
    import textwrap

    return textwrap.dedent(text).strip("\n")


_TYPES: dict[type, str] = {
    str: "text", int: "a whole number", bool: "true or false", list: "a list", dict: "a table",
}  # fmt: skip


def _own_kind(name: str, entry: Entry) -> Kind | None:
    """The kind that an entry's rewrite.py defines. It is the stack's own code, trusted as its tests are."""
    path = entry.folder / "rewrite.py"
    return _own_kinds(path, path.stat().st_mtime_ns).get(name) if path.is_file() else None


@cache
def _own_kinds(path: Path, stamp: int) -> Mapping[str, Kind]:
    """The kinds of one rewrite.py as it was at `stamp`, run once."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(f"stackctl_{path.parent.name}_{stamp}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {kind.name: kind for kind in getattr(module, "KINDS", ())}


def kind_of(plant: Plant, entry: Entry) -> Kind:
    """The kind of a plant that was loaded, hence checked."""
    kind = kinds().get(plant.kind) or _own_kind(plant.kind, entry)
    assert kind is not None
    return kind


def _disposition(table: Mapping[str, Any], path: Path, lines: Lines, problems: list[Problem]) -> Disposition | None:
    word = table.get("disposition", "")
    try:
        disposition = Disposition(word)
    except ValueError:
        said = f"{word!r} is not a disposition{_near(str(word), list(Disposition))}" if word else "an entry needs a disposition"
        problems.append(Problem(path, lines.of("disposition"), said))
        return None
    problems += [
        Problem(path, lines.of("disposition"), f"disposition {word} requires {key}")
        for key in disposition.requires
        if not table.get(key)
    ]
    return disposition


def _check_keys(table: Mapping[str, Any], known: Mapping[str, type], path: Path, lines: Lines, problems: list[Problem]) -> None:
    for key, value in table.items():
        if key not in known:
            problems.append(Problem(path, lines.of(key), f"unknown key {key!r}{_near(key, known)}"))
        elif not isinstance(value, known[key]) or (known[key] is int and isinstance(value, bool)):
            problems.append(Problem(path, lines.of(key), f"{key} must be {_TYPES[known[key]]}"))
        elif (item := _ITEMS.get(key)) and (bad := [each for each in _items(value) if not isinstance(each, item) or isinstance(each, bool)]):
            problems.append(Problem(path, lines.of(key), f"{key} holds {bad[0]!r}, where {_TYPES[item]} is wanted"))
        elif key == "adopted_by" and (bad := [each for each in sum(value.values(), []) if not _is_symbol(each)]):
            problems.append(Problem(path, lines.of(key), f"adopted_by names {bad[0]!r}, which is not module:Class.function"))


def _check_probes(table: Mapping[str, Any], root: Path, path: Path, lines: Lines) -> Iterator[Problem]:
    """Roles that there are not, and probes that are not in checks/probes."""
    roles, blocked_by = table.get("probes", {}), table.get("blocked_by", "")
    if not isinstance(roles, dict) or not isinstance(blocked_by, str):
        return  # said already
    known = sorted(file.stem for file in (root / "checks" / "probes").glob("*.toml"))
    for role, names in roles.items():
        if role not in _PROBE_ROLES:
            yield Problem(path, lines.of("probes"), f"probes has no role {role!r}{_near(role, _PROBE_ROLES)}")
        for name in names if isinstance(names, list) else ():
            if not isinstance(name, str):
                yield Problem(path, lines.of("probes"), f"probes.{role} holds {name!r}, where text is wanted")
            elif name not in known:
                yield Problem(path, lines.of("probes"), f"no probe {name!r} in checks/probes{_near(name, known)}")
    if blocked_by.startswith("probe ") and (name := blocked_by.removeprefix("probe ").strip()) not in known:
        yield Problem(path, lines.of("blocked_by"), f"no probe {name!r} in checks/probes{_near(name, known)}")


def _items(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value


def _is_symbol(value: Any) -> bool:
    return isinstance(value, str) and bool(_HOST.match(value)) and not value.endswith(":")


def _near(word: str, known: Any) -> str:
    """A hint with the right word for a misspelt one."""
    close = difflib.get_close_matches(word, [str(name) for name in known], 1, 0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def _check_numbers(stack: Stack) -> Iterator[Problem]:
    seen: dict[int, Entry] = {}
    for entry in stack.entries:
        path = entry.folder / "entry.toml"
        if entry.number in seen:
            yield Problem(path, 1, f"number {entry.number} is taken by {seen[entry.number].name}")
        seen[entry.number] = entry
    for entry in stack.entries:
        path = entry.folder / "entry.toml"
        for key, numbers in (("requires", entry.requires), ("excludes", entry.excludes)):
            for number in numbers:
                if number not in seen:
                    yield Problem(path, 1, f"{key} names entry {number!r}, which is not in the stack")
        both = [number for number in entry.excludes if number in seen and not seen[number].disposition.tombstone]
        if entry.default == "on" and any(seen[number].default == "on" for number in both):
            yield Problem(path, 1, f"on by default together with entries it excludes: {both}")


def _check_files(entry: Entry, lines: Lines, *, sound: bool) -> Iterator[Problem]:
    """Files that a plant names and that are not there, and, if all plants are in order, files that none uses."""
    used = {"entry.toml", "rewrite.py", "README.md"}
    for index, plant in enumerate(entry.plants):
        for name in kind_of(plant, entry).files(plant):
            used.add(name)
            if "\0" in name:
                yield Problem(entry.folder / "entry.toml", lines.of_plant(index), f"plant {plant.id}: {name!r} is not a file name")
                continue
            inside = (entry.folder / name).resolve().is_relative_to(entry.folder.resolve())
            if not inside or not (entry.folder / name).is_file():
                message = f"plant {plant.id}: {name} {'is not there' if inside else 'is outside the entry'}"
                yield Problem(entry.folder / "entry.toml", lines.of_plant(index), message)
    for path in sorted(entry.folder.rglob("*")) if sound else []:
        name = path.relative_to(entry.folder).as_posix()
        if path.is_file() and name not in used and "__pycache__" not in name:
            yield Problem(path, 1, "no plant uses this file")


def _mentioned(root: Path) -> bytes:
    """The text of every manifest: what a plant that is not in order names is not called unused as well."""
    return b"\n".join(path.read_bytes() for path in (root / "entries").glob("*/entry.toml") if path.is_file())


def _check_patches(stack: Stack, mentioned: bytes) -> Iterator[Problem]:
    """Patches that no plant uses."""
    used = {plant.options.get("patch") for entry in stack.entries for plant in entry.plants if "patch" in plant.options}
    folder = stack.root / "patches"
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.is_file() and not path.name.startswith(".") and path.name not in {*used, "README.md"} and os.fsencode(path.name) not in mentioned:
            yield Problem(path, 1, "no plant uses this file")


def _digest(table: Mapping[str, Any], entry: Entry) -> str:
    """What an entry is made of: its manifest and the bytes of its files."""
    import hashlib

    contents = {}
    for plant in entry.plants:
        names = [entry.folder / name for name in (*kind_of(plant, entry).files(plant), "rewrite.py") if "\0" not in name]
        if "patch" in plant.options:
            names.append(entry.folder.parent.parent / "patches" / plant.options["patch"])
        contents |= {
            os.path.relpath(path, entry.folder): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in names
            if path.is_file()
        }
    return digest([table, contents])


def _read(path: Path, problems: list[Problem]) -> tuple[dict[str, Any], Lines]:
    try:
        text = path.read_bytes().decode()
        return tomllib.loads(text), Lines(text)
    except OSError as error:
        problems.append(Problem(path, 1, f"cannot be read: {error.strerror}"))
    except UnicodeDecodeError as error:
        problems.append(Problem(path, 1, f"is not UTF-8: {error.reason} at byte {error.start}"))
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        problems.append(Problem(path, int(line[1]) if line else 1, f"is not TOML: {error}"))
    return {}, Lines("")


class Lines:
    """On which line a key stands; tomllib does not say."""

    _KEY = re.compile(r'^\s*"?([A-Za-z0-9_-]+)"?\s*=')
    _TABLE = re.compile(r"^\s*\[+\s*([A-Za-z0-9_.-]+)\s*\]+")

    def __init__(self, text: str) -> None:
        self._keys: dict[tuple[int, str], int] = {}
        self._plants: list[int] = []
        for number, line in enumerate(text.split("\n"), 1):
            if table := self._TABLE.match(line):
                if table[1] == "plant":
                    self._plants.append(number)
                self._keys.setdefault((-1, table[1].split(".")[0]), number)
            elif key := self._KEY.match(line):
                self._keys.setdefault((len(self._plants) - 1, key[1]), number)

    def of(self, key: str) -> int:
        """The line of a top-level key, 1 if it is not there."""
        return self._keys.get((-1, key), 1)

    def of_plant(self, index: int, key: str = "") -> int:
        """The line of a key of the plant at `index`, else of its header."""
        header = self._plants[index] if index < len(self._plants) else 1
        return self._keys.get((index, key), header)
