"""What tests share: real releases in a scratch repository, the repository's own stack, small Git fixtures."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from stackctl.model.stack import Stack
from stackctl.plants.manifest import load_stack
from stackctl.trees.cache import cache_folder
from stackctl.trees.git import Repository
from stackctl.trees.pypi import ensure_release

ROOT = Path(__file__).resolve().parent.parent
RELEASES = ("0.5.15.post1", "0.5.16", "0.5.17", "0.5.18", "0.5.19", "0.5.20", "0.5.21", "0.5.22", "0.5.23")
NEWEST = RELEASES[-1]

_GIT_ENVIRONMENT = {
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.invalid", "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.invalid", "GIT_COMMITTER_DATE": "1700000000 +0000",
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull,
}  # fmt: skip


@cache
def own_stack() -> Stack:
    """The stack that this repository carries."""
    return load_stack(ROOT)


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    """Run Git as a person would, with a fixed identity and no configuration of the machine's."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env={**os.environ, **_GIT_ENVIRONMENT}, capture_output=True, text=True, check=False
    )
    if check and done.returncode:
        raise AssertionError(f"git {' '.join(arguments)}: {done.stderr}")
    return done.stdout.strip()


def releases_repository(folder: Path, *versions: str) -> Repository:
    """A scratch clone, sharing its objects, of the tests' own cached repository, which has all of RELEASES.

    All at once and in order: a release's parent is the next lower one that is there when it is added, so a
    test that came first with 0.5.22 alone once left 0.5.21 on a history of its own, which no merge joins.
    """
    assert set(versions) <= set(RELEASES)
    store = cache_folder() / "tests" / "upstream"
    ensure_release(store, list(RELEASES))
    git(folder.parent, "clone", "--quiet", "--shared", "--no-checkout", str(store), str(folder))
    return Repository(folder)


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files below a folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)


def repository_of(folder: Path, files: Mapping[str, str | bytes]) -> Repository:
    """A new Git repository with one commit of `files` on main."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main", ".")
    commit_files(folder, files, "first")
    return Repository(folder)


def commit_files(folder: Path, files: Mapping[str, str | bytes], message: str) -> str:
    """Commit files on the checked-out branch and return the commit."""
    write_files(folder, files)
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(folder, "rev-parse", "HEAD")


def planted_tree(version: str, folder: Path) -> Path:
    """A folder that holds a release with the repository's own stack on it."""
    from stackctl.carry.apply import apply
    from stackctl.trees.export import export
    from stackctl.trees.tree import GitTree

    repository = releases_repository(folder / "repo", version)
    apply(own_stack(), repository, f"v{version}", branch="planted")
    export(GitTree(repository, "planted"), folder / "tree")
    return folder / "tree"
