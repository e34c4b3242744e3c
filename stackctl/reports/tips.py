"""What the commits of a fork say of the stack at a tip, and what the stack's own history declared."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass

from stackctl.model.errors import StackctlError
from stackctl.model.stack import Stack, digest
from stackctl.trees.git import Repository
from stackctl.trees.tree import FolderTree, GitTree, Tree, read_all

_FIELDS = ("Stack", "Stack-Entry", "Stack-Digest", "Stack-Disposition")
_ENTRY = re.compile(r"entries/([0-9]+)-[^/]+/")


@dataclass(frozen=True)
class Tip:
    """One commit: its id, the date it was committed (ISO 8601) and its subject."""

    ref: str
    commit: str
    date: str
    subject: str


@dataclass(frozen=True)
class Carried:
    """The newest commit of one entry at a tip, as its trailers have it."""

    number: int
    commit: str
    date: str
    digest: str
    disposition: str


@dataclass(frozen=True)
class Declared:
    """One entry as a manifest at some commit has it."""

    number: int
    title: str
    disposition: str
    default: str
    digest: str


def tip_of(repository: Repository, ref: str) -> Tip:
    """The commit that `ref` names."""
    commit = repository.resolve(ref)
    date, _, subject = repository.text("log", "-1", "--no-show-signature", "--format=%cI%x00%s", commit).partition("\0")
    return Tip(ref, commit, date, subject)


def carried_at(repository: Repository, ref: str, stack: str) -> dict[int, Carried]:
    """The entries that commits at or before `ref` planted, by number. Commits of another stack are left aside."""
    trailers = "%x00".join(f"%(trailers:key={field},valueonly,separator=%x2C)" for field in _FIELDS)
    words = [
        "log",
        "-z",
        "--no-show-signature",
        "--topo-order",
        "--grep=^Stack-Entry:",
        f"--format=%H%x00%cI%x00{trailers}",
        repository.resolve(ref),
    ]
    fields = repository.run(*words).decode(errors="replace").split("\0")
    found: dict[int, Carried] = {}
    for start in range(0, len(fields) - 5, 6):
        commit, date, name, number, made, disposition = (field.strip() for field in fields[start : start + 6])
        if number.isdecimal() and number.isascii() and name in ("", stack):
            found.setdefault(int(number), Carried(int(number), commit, date, made, disposition))
    return found


def declared_now(stack: Stack) -> dict[int, Declared]:
    """The entries as the manifests on disk have them."""
    return _declared(FolderTree(stack.root), "")


def declared_at(
    stack: Stack, repository: Repository, since: str, stack_since: str | None
) -> dict[int, Declared] | None:
    """The entries as the manifests had them at the deployed tip. None where the stack's history does not tell.

    `stack_since` names a commit of the stack's own repository; without it the stack must live in the fork itself.
    """
    try:
        home = Repository(stack.root)
    except StackctlError:  # the stack is in no repository at all
        if stack_since:
            raise
        return None
    if stack_since is None and home.git_dir.resolve() != repository.git_dir.resolve():
        return None
    prefix = stack.root.resolve().relative_to(home.path.resolve()).as_posix()
    return _declared(GitTree(home, stack_since or since), "" if prefix == "." else f"{prefix}/")


def _declared(tree: Tree, prefix: str) -> dict[int, Declared]:
    """Manifests read as data: an entry's rewrite.py is not run, whatever commit it is from."""
    files: dict[int, list[str]] = {}
    for path in tree.paths():
        if path.startswith(prefix) and (match := _ENTRY.match(path.removeprefix(prefix))) and "__pycache__" not in path:
            files.setdefault(int(match[1]), []).append(path)
    return {number: found for number, paths in files.items() if (found := _declaration(tree, number, sorted(paths)))}


def _declaration(tree: Tree, number: int, paths: list[str]) -> Declared | None:
    contents = {
        path.split("/entries/")[-1].removeprefix("entries/"): data
        for path, data in read_all(tree, [p for p in paths if tree.is_file(p)])
    }
    manifest = next(
        (data for path, data in contents.items() if path.endswith("/entry.toml") and path.count("/") == 1), None
    )
    try:
        table = tomllib.loads((manifest or b"").decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return None
    made = digest({path.partition("/")[2]: data.hex() for path, data in contents.items()})
    title, disposition, default = (str(table.get(key, "")) for key in ("title", "disposition", "default"))
    return Declared(number, title, disposition, default, made) if manifest is not None else None
