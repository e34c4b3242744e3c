"""Git behind one module: a scrubbed environment, no hooks, no filters, no checkout.

Only plumbing is used. A repository under audit is untrusted: its hooks, filters, fsmonitor and
diff drivers never run.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from stackctl.model.errors import StackctlError

# What `git rev-parse --local-env-vars` lists, left in place by a hook or an alias, would point our
# Git at somebody else's repository (pre-commit met exactly that). Identities and -c settings may stay.
_KEPT = ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_SSL_", "GIT_TRACE")
for _name in [name for name in os.environ if name.startswith("GIT_") and not name.startswith(_KEPT)]:
    del os.environ[_name]

_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",  # a promisor remote's upload-pack is a command of the repository's choice
    "LC_ALL": "C.UTF-8",
}
_SAFE = [
    "-c", f"core.hooksPath={os.devnull}",
    "-c", "core.fsmonitor=false",
    "-c", f"core.attributesFile={os.devnull}",
    "-c", "core.quotePath=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "commit.gpgSign=false",
]  # fmt: skip


class GitError(StackctlError):
    """Git failed. `fatal` is False where it only said no: no such ref, no such setting."""

    def __init__(self, message: str, where: str | None = None, hint: str | None = None, *, fatal: bool = True) -> None:
        super().__init__(message, where, hint)
        self.fatal = fatal


@dataclass(frozen=True)
class Identity:
    """Author and committer of a commit; `date` as Git takes it ("<seconds> +0000"), now if empty."""

    name: str
    email: str
    date: str = ""

    def environment(self) -> dict[str, str]:
        """The six variables that `git commit-tree` reads."""
        values = {}
        for role in ("AUTHOR", "COMMITTER"):
            values |= {f"GIT_{role}_NAME": self.name, f"GIT_{role}_EMAIL": self.email}
            if self.date:
                values[f"GIT_{role}_DATE"] = self.date
        return values


class FileEntry(NamedTuple):
    """One file of a tree: its mode ("100644", "100755", "120000" symlink, "160000" submodule) and blob id."""

    mode: str
    blob: str


class _Reader:
    """One `git cat-file --batch`. GitPython has one too, which knows no SHA-256 repositories."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            ["git", *_SAFE, "cat-file", "--batch"], cwd=folder, env={**os.environ, **_ENVIRONMENT},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def read(self, name: str) -> bytes:
        """The bytes of one object. Raises StackctlError if it is not there."""
        return next(self.read_many([name]))

    def read_many(self, names: Iterable[str]) -> Iterator[bytes]:
        """The bytes of many objects, asked for some at a time: waiting for each answer takes as long as reading it."""
        rest = iter(names)
        while some := list(itertools.islice(rest, 100)):  # their names fit a pipe's buffer, so that neither side waits
            self._ask(some)
            found = [self._answer() for _ in some]
            if None in found:
                raise StackctlError(
                    f"object {some[found.index(None)]} is missing", str(self._folder),
                    "the clone is partial or damaged: git fsck; git fetch --refetch",
                )  # fmt: skip
            yield from found  # type: ignore[misc]

    def _ask(self, names: list[str]) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):
            pipe.write("".join(f"{name}\n" for name in names).encode())
            pipe.flush()

    def _answer(self) -> bytes | None:
        answer = self._process.stdout
        assert answer is not None
        head = answer.readline().split()
        return answer.read(int(head[2]) + 1)[:-1] if len(head) == 3 else None

    def __del__(self) -> None:
        process = self.__dict__.get("_process")
        if process is not None:
            process.stdin.close()
            process.stdout.close()
            process.wait()


class Repository:
    """One Git repository, opened at `path` or a folder above it."""

    def __init__(self, path: Path) -> None:
        # The work tree's root (of a bare repository: its Git directory), and the common Git directory.
        self.path, self.git_dir = _located(path)

    @classmethod
    def create(cls, path: Path) -> Repository:
        """A new repository at `path`, with `main` unborn and no templates (so no sample hooks)."""
        path.mkdir(parents=True, exist_ok=True)
        _execute(path, ["init", "-q", "--template=", "-b", "main", "."])
        return cls(path)

    def run(self, *arguments: str, stdin: bytes | None = None, identity: Identity | None = None) -> bytes:
        """Run one Git command and return its raw output. Raises StackctlError with Git's own words."""
        return _execute(self.path, list(arguments), stdin, identity)

    def text(self, *arguments: str) -> str:
        """Run one Git command and return its output decoded and stripped."""
        return os.fsdecode(self.run(*arguments)).strip()

    def resolve(self, ref: str, kind: str = "commit") -> str:
        """The object id of `ref` as a commit (or tree). Raises StackctlError if there is none."""
        if ref.startswith("-"):
            raise StackctlError(f"{ref!r} is not a Git reference", str(self.path))
        try:
            return self.text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{{kind}}}")
        except GitError as error:
            if error.fatal:  # a broken configuration or somebody else's folder is not a missing ref
                raise
            raise StackctlError(
                f"no {kind} named {ref!r}", str(self.path), "list what there is: git tag; git branch -a"
            ) from None

    def exists(self, ref: str) -> bool:
        """Whether `ref` names a commit here."""
        try:
            self.resolve(ref)
        except StackctlError:
            return False
        return True

    @cached_property
    def nothing(self) -> str:
        """The id of no object: forty zeros, sixty-four in a SHA-256 repository."""
        return "0" * (64 if self.text("rev-parse", "--show-object-format") == "sha256" else 40)

    def files(self, ref: str) -> dict[str, FileEntry]:
        """Every file of the tree at `ref`, by path. Names that are not UTF-8 carry surrogate escapes."""
        output = self.run("ls-tree", "-r", "-z", "--full-tree", self.resolve(ref, "tree"))
        files = {}
        for record in os.fsdecode(output).split("\0"):
            if record:
                head, _, name = record.partition("\t")
                files[name] = FileEntry(head[:6], head.rpartition(" ")[2])
        return files

    def blob(self, blob: str) -> bytes:
        """The bytes of one blob, through one long-lived `git cat-file --batch`."""
        return self._reader.read(blob)

    @cached_property
    def _reader(self) -> _Reader:
        return _Reader(self.path)

    def blobs(self, ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """The bytes of many blobs, in the order asked for."""
        names = list(ids)
        yield from zip(names, self._reader.read_many(names), strict=True)

    def write_blob(self, data: bytes) -> str:
        """Store bytes as they are (no filter, no newline conversion) and return their blob id."""
        return self.run("hash-object", "-w", "--no-filters", "--stdin", stdin=data).decode().strip()

    def write_tree(self, base: str | None, changes: Mapping[str, FileEntry | None], index: Path) -> str:
        """The tree of `base` with `changes` (None removes), built in the scratch index file `index`."""
        environment = {"GIT_INDEX_FILE": str(index)}
        _execute(self.path, ["read-tree", self.resolve(base, "tree") if base else "--empty"], extra=environment)
        lines = []
        for path, entry in changes.items():
            mode, blob = (entry.mode, entry.blob) if entry else ("0", self.nothing)
            lines.append(f"{mode} {blob}\t".encode() + os.fsencode(path) + b"\0")
        if lines:
            self.update_index(b"".join(lines), index)
        return _execute(self.path, ["write-tree"], extra=environment).decode().strip()

    def update_index(self, lines: bytes, index: Path) -> None:
        """Change an index file by lines of `git update-index -z --index-info`."""
        _execute(self.path, ["update-index", "-z", "--index-info"], lines, extra={"GIT_INDEX_FILE": str(index)})

    def commit(self, tree: str, parents: Iterable[str], message: str, identity: Identity | None = None) -> str:
        """Write a commit object (no ref moves) and return its id."""
        arguments = ["commit-tree", tree, *(word for parent in parents for word in ("-p", parent)), "-F", "-"]
        return self.run(*arguments, stdin=message.encode(), identity=identity or self.identity).decode().strip()

    def update_ref(self, ref: str, new: str, old: str) -> None:
        """Move one ref from `old` (`nothing`: it must not exist) to `new`, atomically."""
        self.update_refs([(ref, new, old)])

    def update_refs(self, updates: Iterable[tuple[str, str, str]]) -> None:
        """Move several refs (ref, new, old) in one transaction: all of them or none."""
        lines = "".join(f"update {ref}\0{new}\0{old}\0" for ref, new, old in updates)
        self.run("update-ref", "-z", "--stdin", stdin=os.fsencode(lines))

    def merge_bases(self, ours: str, theirs: str) -> list[str]:
        """Every best common ancestor: more than one in a criss-cross history, none if unrelated."""
        try:
            return self.text("merge-base", "--all", self.resolve(ours), self.resolve(theirs)).split()
        except StackctlError:
            return []

    def parents(self, commit: str) -> list[str]:
        """The ids of a commit's parents."""
        return self.text("rev-list", "--parents", "-n", "1", self.resolve(commit)).split()[1:]

    def tags(self) -> list[str]:
        """The names of all tags."""
        return self.text("tag", "--list").split("\n") if self.text("tag", "--list") else []

    def branch_checkouts(self) -> dict[str, Path]:
        """Full branch name to the worktree that has it checked out."""
        found, folder = {}, Path()
        for line in os.fsdecode(self.run("worktree", "list", "--porcelain", "-z")).split("\0"):
            word, _, value = line.partition(" ")
            if word == "worktree":
                folder = Path(value)
            elif word == "branch":
                found[value] = folder
        return found

    def changed_files(self) -> list[str]:
        """Tracked files that differ from HEAD, staged or not. No clean filter of the repository runs."""
        words = ["status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all", "--no-renames"]
        output = _execute(self.path, words, extra=self._without_filters())
        return [os.fsdecode(record[3:]) for record in output.split(b"\0") if record]

    def _without_filters(self) -> dict[str, str]:
        """Settings that switch every filter of the repository off, whatever spaces or "=" its name holds."""
        try:
            output = self.run("config", "-z", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process|required)$")
        except StackctlError:  # there is none
            return {}
        names = sorted({os.fsdecode(name) for name in output.split(b"\0") if name})
        settings = {"GIT_CONFIG_COUNT": str(len(names))}
        for index, name in enumerate(names):
            settings |= {f"GIT_CONFIG_KEY_{index}": name, f"GIT_CONFIG_VALUE_{index}": "false" if name.endswith("required") else ""}
        return settings

    @cached_property
    def identity(self) -> Identity:
        """The user's own name and address from Git's configuration, else stackctl's."""
        values = []
        for key, variable in (("user.name", "GIT_AUTHOR_NAME"), ("user.email", "GIT_AUTHOR_EMAIL")):
            try:
                values.append(os.environ.get(variable) or self.text("config", "--get", key))
            except StackctlError:
                values.append("")
        return Identity(values[0] or "stackctl", values[1] or "stackctl@localhost")


def _located(path: Path) -> tuple[Path, Path]:
    """(work tree or bare Git directory, common Git directory) of the repository at `path` or a folder above it."""
    plain = path.absolute() / ".git"
    if (plain / "HEAD").is_file() and (plain / "objects").is_dir() and not (plain / "commondir").exists():
        return plain.parent, plain
    # Only for what is not plain: its import takes as long as half a verify.
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # a machine without Git is told so below, in our words
    import git

    try:
        found = git.Repo(path, search_parent_directories=True)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError):
        raise StackctlError("not a Git repository", str(path), "name one with --repo DIR") from None
    with contextlib.closing(found):
        return Path(found.working_tree_dir or found.git_dir), Path(found.common_dir)


def _execute(
    folder: Path,
    arguments: list[str],
    stdin: bytes | None = None,
    identity: Identity | None = None,
    extra: Mapping[str, str] | None = None,
) -> bytes:
    """Run Git and return its output; StackctlError carries the command and Git's last words."""
    try:
        process = subprocess.run(
            ["git", *_SAFE, *arguments],
            cwd=folder,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            env={**os.environ, **_ENVIRONMENT, **(identity.environment() if identity else {}), **(extra or {})},
            check=False,
        )
    except FileNotFoundError:
        raise GitError("Git is not installed, or this folder is gone", str(folder), "install Git 2.36 or later") from None
    if process.returncode:
        words = process.stderr.decode(errors="replace").strip() or f"exit {process.returncode}"
        raise GitError(f"git {arguments[0]} failed: {_complaint(words)}", str(folder), fatal=process.returncode != 1)
    return process.stdout


def _complaint(words: str) -> str:
    """The line that names what is wrong. The last one is often advice ("remove the file manually to continue.")."""
    lines = words.splitlines()
    return next((line for line in reversed(lines) if line.startswith(("fatal:", "error:"))), lines[-1])
