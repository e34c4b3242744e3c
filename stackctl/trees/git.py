"""Git behind one module: a scrubbed environment, no hooks, no filters, no checkout.

Only plumbing is used. A repository under audit is untrusted: its hooks, filters, fsmonitor and
diff drivers never run.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import git
from git.cmd import Git

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


@dataclass(frozen=True)
class FileEntry:
    """One file of a tree: its mode ("100644", "100755", "120000" symlink, "160000" submodule) and blob id."""

    mode: str
    blob: str


class Repository:
    """One Git repository, opened at `path` or a folder above it."""

    def __init__(self, path: Path) -> None:
        try:
            self._repo = git.Repo(path, search_parent_directories=True)
        except (git.InvalidGitRepositoryError, git.NoSuchPathError):
            raise StackctlError("not a Git repository", str(path), "name one with --repo DIR") from None
        self._runner = Git(self._repo.working_tree_dir or self._repo.git_dir)
        self._runner.update_environment(**_ENVIRONMENT)

    @classmethod
    def create(cls, path: Path) -> Repository:
        """A new repository at `path`, with `main` unborn and no templates (so no sample hooks)."""
        path.mkdir(parents=True, exist_ok=True)
        _execute(Git(path), ["init", "-q", "--template=", "-b", "main", "."])
        return cls(path)

    @property
    def path(self) -> Path:
        """The work tree's root, or the Git directory of a bare repository."""
        return Path(self._repo.working_tree_dir or self._repo.git_dir)

    @property
    def git_dir(self) -> Path:
        """The repository's own (for a linked worktree: the common) Git directory."""
        return Path(self._repo.common_dir)

    def run(self, *arguments: str, stdin: bytes | None = None, identity: Identity | None = None) -> bytes:
        """Run one Git command and return its raw output. Raises StackctlError with Git's own words."""
        return _execute(self._runner, list(arguments), stdin, identity)

    def text(self, *arguments: str) -> str:
        """Run one Git command and return its output decoded and stripped."""
        return os.fsdecode(self.run(*arguments)).strip()

    def resolve(self, ref: str, kind: str = "commit") -> str:
        """The object id of `ref` as a commit (or tree). Raises StackctlError if there is none."""
        if ref.startswith("-"):
            raise StackctlError(f"{ref!r} is not a Git reference", str(self.path))
        try:
            return self.text("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{{kind}}}")
        except StackctlError:
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

    def files(self, ref: str) -> dict[str, FileEntry]:
        """Every file of the tree at `ref`, by path. Names that are not UTF-8 carry surrogate escapes."""
        output = self.run("ls-tree", "-r", "-z", "--full-tree", self.resolve(ref, "tree"))
        files = {}
        for record in output.split(b"\0"):
            if record:
                head, _, name = record.partition(b"\t")
                mode, _, blob = head.split()
                files[os.fsdecode(name)] = FileEntry(mode.decode(), blob.decode())
        return files

    def blob(self, blob: str) -> bytes:
        """The bytes of one blob, through one long-lived `git cat-file --batch`."""
        return self._runner.get_object_data(blob)[3]

    def blobs(self, ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """The bytes of many blobs, in the order asked for."""
        for blob in ids:
            yield blob, self.blob(blob)

    def write_blob(self, data: bytes) -> str:
        """Store bytes as they are (no filter, no newline conversion) and return their blob id."""
        return self.run("hash-object", "-w", "--no-filters", "--stdin", stdin=data).decode().strip()

    def write_tree(self, base: str | None, changes: Mapping[str, FileEntry | None], index: Path) -> str:
        """The tree of `base` with `changes` (None removes), built in the scratch index file `index`."""
        environment = {"GIT_INDEX_FILE": str(index)}
        _execute(self._runner, ["read-tree", self.resolve(base, "tree") if base else "--empty"], extra=environment)
        lines = []
        for path, entry in changes.items():
            mode, blob = (entry.mode, entry.blob) if entry else ("0", "0" * 40)
            lines.append(f"{mode} {blob}\t".encode() + os.fsencode(path) + b"\0")
        if lines:
            _execute(self._runner, ["update-index", "-z", "--index-info"], b"".join(lines), extra=environment)
        return _execute(self._runner, ["write-tree"], extra=environment).decode().strip()

    def commit(self, tree: str, parents: Iterable[str], message: str, identity: Identity | None = None) -> str:
        """Write a commit object (no ref moves) and return its id."""
        arguments = ["commit-tree", tree, *(word for parent in parents for word in ("-p", parent)), "-F", "-"]
        return self.run(*arguments, stdin=message.encode(), identity=identity or self.identity).decode().strip()

    def update_ref(self, ref: str, new: str, old: str) -> None:
        """Move one ref from `old` (forty zeros: it must not exist) to `new`, atomically."""
        self.update_refs([(ref, new, old)])

    def update_refs(self, updates: Iterable[tuple[str, str, str]]) -> None:
        """Move several refs (ref, new, old) in one transaction: all of them or none."""
        lines = "".join(f"update {ref}\0{new}\0{old}\0" for ref, new, old in updates)
        self.run("update-ref", "-z", "--stdin", stdin=lines.encode())

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
        for line in self.text("worktree", "list", "--porcelain").splitlines():
            word, _, value = line.partition(" ")
            if word == "worktree":
                folder = Path(value)
            elif word == "branch":
                found[value] = folder
        return found

    def changed_files(self) -> list[str]:
        """Tracked files that differ from HEAD, staged or not. No clean filter of the repository runs."""
        off = []
        try:
            names = self.text("config", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process)$").split()
        except StackctlError:
            names = []
        for name in names:
            off += ["-c", f"{name}=", "-c", f"{name.rpartition('.')[0]}.required=false"]
        output = self.run(*off, "status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all", "--no-renames")
        return [os.fsdecode(record[3:]) for record in output.split(b"\0") if record]

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


def _execute(
    runner: Git,
    arguments: list[str],
    stdin: bytes | None = None,
    identity: Identity | None = None,
    extra: Mapping[str, str] | None = None,
) -> bytes:
    """Run Git and return its output; StackctlError carries the command and Git's last words."""
    process = subprocess.run(
        ["git", *_SAFE, *arguments],
        cwd=runner.working_dir,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        env={**os.environ, **_ENVIRONMENT, **(identity.environment() if identity else {}), **(extra or {})},
        check=False,
    )
    if process.returncode:
        words = process.stderr.decode(errors="replace").strip().splitlines() or [f"exit {process.returncode}"]
        raise StackctlError(f"git {arguments[0]} failed: {words[-1]}", str(runner.working_dir))
    return process.stdout
