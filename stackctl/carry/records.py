"""The stack's own files: a plain series out of it, one entry out, or under another number."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stackctl.carry.by_half import carry_entries
from stackctl.carry.carrying import series_plant
from stackctl.carry.fork import borrowing
from stackctl.carry.series import diff_start, toml_value
from stackctl.model.errors import StackctlError
from stackctl.model.stack import Entry, Stack
from stackctl.plants.judging import judge_plant
from stackctl.plants.view import View
from stackctl.trees.git import FileEntry, Repository
from stackctl.trees.release import release_of
from stackctl.trees.replacing import Held, held, replace_file, rewrite
from stackctl.trees.tree import GitTree

_FROM = "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001"
_SENDER = "From: stackctl <stackctl@localhost>\nDate: Thu, 1 Jan 1970 00:00:00 +0000"
_MARKS = {"candidate": ".CANDIDATE", "superseded": ".SUPERSEDED", "retired": ".RETIRED", "blocked": ".DISABLED"}
_OUTSIDE = ".OUTSIDE"  # every file that it edits is outside the base: `git am` could not apply it


@dataclass(frozen=True)
class Exported:
    """One file of an exported series."""

    name: str
    data: bytes


def export(stack: Stack, repository: Repository, onto: str) -> list[Exported]:
    """The stack as mails that `git am` applies on `onto`, the same bytes from run to run.

    Entries that are not planted keep their recorded patch under a name that `git am *.patch` passes over.
    Raises StackctlError if an entry could not be planted whole: a series with a hole is no series.
    """
    tree = GitTree(repository, onto)
    release = release_of(tree)
    view = View(tree, stack, release, View(tree, stack, release))
    outcomes = carry_entries(stack.entries, view, judge_plant)
    bad = [
        f"{o.entry.number} ({p.id}: {f.message})" for o in outcomes for p, f in o.judged if f.verdict.level == "error"
    ]
    if bad:
        raise StackctlError(f"not whole on {onto}: {', '.join(bad[:5])}", hint="settle it first: stackctl apply")
    files = []
    with tempfile.TemporaryDirectory(prefix="stackctl-export-", ignore_cleanup_errors=True) as folder:
        scratch, tip = borrowing(repository, Path(folder)), repository.resolve(onto, "tree")
        for outcome in outcomes:
            entry = outcome.entry
            if not outcome.changes:
                files += _idle(entry)
                continue
            changes = {
                path: None
                if data is None
                else FileEntry(
                    outcome.modes.get(path) or (tree.mode(path) if path in tree else "100644"), scratch.write_blob(data)
                )
                for path, data in outcome.changes.items()
            }
            new = scratch.write_tree(tip, changes, Path(folder) / "index")
            files.append(Exported(f"{entry.number:04d}-{entry.slug}.patch", _mail(entry) + diff_between(scratch, tip, new)))
            tip = new
    return files


def diff_between(repository: Repository, old: str, new: str) -> bytes:
    """The difference of two trees or commits, the same bytes wherever it is made."""
    return repository.run(
        "diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", old, new
    )


def _mail(entry: Entry) -> bytes:
    """The head of a mail that git am reads and `stackctl import` turns into the same entry."""
    fields: dict[str, object] = {"Title": entry.title, "Disposition": str(entry.disposition), **entry.decision}
    fields |= {"Upstream": list(entry.upstream)} if entry.upstream else {}
    lines = "".join(
        f"Stack-{key.replace('_', '-').title()}: {json.dumps(value, ensure_ascii=True)}\n"
        for key, value in fields.items()
    )
    notes = "\n".join(
        f" {line}" if line.startswith(("diff ", "---", "Index:", "From ")) else line
        for line in entry.notes.strip().split("\n")
    )
    return f"{_FROM}\n{_SENDER}\nSubject: [PATCH] {entry.title}\n\n{notes}\n\n{lines}---\n\n".encode("utf-8", "replace")


def _idle(entry: Entry) -> Iterator[Exported]:
    """The recorded patch of an entry that is not planted, under its mark."""
    plant = series_plant(entry)
    mark = _MARKS.get(str(entry.disposition)) or (_OUTSIDE if plant and plant.options.get("leave_out") else None)
    if plant is not None and mark is not None:
        data = (entry.folder.parent.parent / "patches" / plant.options["patch"]).read_bytes()
        start = diff_start(data)
        yield Exported(f"{entry.number:04d}-{entry.slug}.patch{mark}", _mail(entry) + data[start:])


def write_series(folder: Path, files: Sequence[Exported]) -> None:
    """Write an exported series; a folder with other files in it is refused."""
    names = {file.name for file in files}
    folder.mkdir(parents=True, exist_ok=True)
    others = sorted(path.name for path in folder.iterdir() if path.name not in names)
    if others:
        raise StackctlError(f"there are other files: {', '.join(others[:3])}", str(folder), "name an empty folder")
    for file in files:
        replace_file(folder / file.name, file.data)


def difference(entry: Entry, stack: Stack) -> bytes:
    """The recorded patches of one entry. Raises StackctlError for one that has none."""
    names = dict.fromkeys(plant.options["patch"] for plant in entry.plants if "patch" in plant.options)
    if not names:
        raise StackctlError(
            f"entry {entry.number} has no patch on record",
            str(entry.folder),
            "see what it plants: stackctl show; or: git show, on a branch that apply wrote",
        )
    return b"".join((stack.root / "patches" / name).read_bytes() for name in names)


def remove(stack: Stack, number: int) -> list[str]:
    """Take an entry and the patches that only it uses out of the stack; the names of what was removed."""
    entry = stack.entry(number)
    if entry is None:
        raise StackctlError(f"no entry {number} in stack {stack.name}", str(stack.root), "see: stackctl list")
    needed = [
        other.name
        for other in stack.entries
        if number in (*other.requires, *other.excludes) or other.decision.get("blocked_by") == str(number)
    ]
    if needed:
        raise StackctlError(f"entry {number} is named by {', '.join(needed)}", str(entry.folder), "change those first")
    mine = {plant.options["patch"] for plant in entry.plants if "patch" in plant.options}
    others = {
        plant.options["patch"]
        for other in stack.entries
        if other is not entry
        for plant in other.plants
        if "patch" in plant.options
    }
    gone = [*_files_of(stack, entry), *(f"patches/{name}" for name in mine - others)]
    rewrite(stack.root, dict.fromkeys(gone))
    return [f"entries/{entry.name}", *(f"patches/{name}" for name in sorted(mine - others))]


def renumber(stack: Stack, numbers: Mapping[int, int]) -> list[str]:
    """Give entries other numbers, in their folders, manifests and where others name them; what was renamed."""
    result = [numbers.get(entry.number, entry.number) for entry in stack.entries]
    for number in numbers:
        if stack.entry(number) is None:
            raise StackctlError(f"no entry {number} in stack {stack.name}", str(stack.root), "see: stackctl list")
    if len(set(result)) < len(result):
        raise StackctlError("two entries would have one number", str(stack.root))
    ordered = [entry.number for entry in stack.entries if series_plant(entry)]
    if [numbers.get(n, n) for n in ordered] != sorted(numbers.get(n, n) for n in ordered):
        raise StackctlError(
            "the patches of a series would change their order, and stand on each other", str(stack.root)
        )
    files: dict[str, Held | bytes | None] = {}
    renamed = []
    for entry in stack.entries:
        name = f"{numbers.get(entry.number, entry.number):03d}-{entry.slug}"
        moved = {path: f"entries/{name}/{path.split('/', 2)[2]}" for path in _files_of(stack, entry)}
        if numbers.get(entry.number, entry.number) == entry.number:
            moved = {}
        renamed += [f"{entry.name} -> {name}"] if moved else []
        files = {**dict.fromkeys(moved), **files, **{new: held(stack.root / old) for old, new in moved.items()}}
        manifest = f"entries/{name if moved else entry.folder.name}/entry.toml"
        text = _renumbered((entry.folder / "entry.toml").read_bytes().decode(), entry, numbers)
        files[manifest] = text.encode()
    rewrite(stack.root, files)
    return renamed


def _files_of(stack: Stack, entry: Entry) -> list[str]:
    """The files of an entry's folder, by their paths from the stack's root."""
    found = (path for path in sorted(entry.folder.rglob("*")) if path.is_symlink() or not path.is_dir())
    return [path.relative_to(stack.root).as_posix() for path in found]


def _renumbered(text: str, entry: Entry, numbers: Mapping[int, int]) -> str:
    head, mark, tail = text.partition("[[plant]]")
    head = re.sub(
        r"^number\s*=\s*\d+", f"number = {numbers.get(entry.number, entry.number)}", head, count=1, flags=re.MULTILINE
    )
    for key in ("requires", "excludes"):
        head = re.sub(
            rf"^{key}\s*=\s*\[[^\]]*\]",
            lambda found: re.sub(r"\d+", lambda n: str(numbers.get(int(n[0]), int(n[0]))), found[0]),
            head,
            flags=re.MULTILINE,
        )
    return head + mark + tail


def lay_out(folder: Path, name: str) -> list[str]:
    """The layout of a new fork's repository: stack.toml and the folders that belong to it; what was made."""
    if (folder / "stack.toml").exists():
        raise StackctlError("there is a stack here already", str(folder / "stack.toml"))
    files = {
        "stack.toml": f'name = {toml_value(name)}\nupstream = "sgl-project/sglang"\nsource = "python"\n',
        "entries/.gitkeep": "", "patches/.gitkeep": "", "checks/.gitkeep": "",
    }  # fmt: skip
    made = []
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if not (folder / path).exists():
            (folder / path).write_text(text)
            made.append(path)
    return made
