"""How many patches of a series quilt and StGit stop at on another release: the columns beside ours.

Both are given every chance: a patch that does not go on is left out and the next one is tried. None where the
tool is not installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from stackctl.trees.git import Repository

_ME = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "bed"), ("EMAIL", "bed@localhost"))}


def quilt_stops(repository: Repository, patches: Sequence[Path], onto: str) -> int | None:
    """The patches that `quilt push` (its usual fuzz of two lines) does not put on, in order."""
    if not shutil.which("quilt"):
        return None
    stops = 0
    with _checkout(repository, onto) as folder:
        (folder / "patches").mkdir()
        for path in patches:
            shutil.copyfile(path, folder / "patches" / path.name)
        (folder / "patches" / "series").write_text("".join(f"{path.name}\n" for path in patches))
        for _ in patches:
            if _run(folder, "quilt", "push", "-q") not in (0,):
                stops += 1
                _run(folder, "quilt", "delete", "-n")
    return stops


def stgit_stops(repository: Repository, branch: str, base: str, onto: str) -> int | None:
    """The patches of a branch that `stg push` (a three-way merge) leaves conflicts in on another release."""
    if not shutil.which("stg"):
        return None
    with _checkout(repository, branch) as folder:
        start = repository.resolve(base)
        for words in (("branch", "-q", "bed"), ("checkout", "-q", "bed")):
            _run(folder, "git", *words)
        for words in (("init",), ("uncommit", "--exclusive", "--to", start), ("pop", "--all")):
            _must(folder, "stg", *words)
        _must(folder, "stg", "rebase", "--nopush", repository.resolve(onto))
        return sum(_push(folder, name) for name in _names(folder))


def _push(folder: Path, name: str) -> bool:
    """Push one patch; whether it conflicts, in which case it is left out and the tree is clean again."""
    if _run(folder, "stg", "push", name) == 0:
        return False
    _run(folder, "git", "reset", "-q", "--hard")
    _must(folder, "stg", "undo", "--hard")
    return True


def _names(folder: Path) -> list[str]:
    done = subprocess.run(["stg", "series", "--noprefix", "--unapplied"], cwd=folder, env=_environment(), capture_output=True, check=True)
    return done.stdout.decode().split()


@contextmanager
def _checkout(repository: Repository, ref: str) -> Iterator[Path]:
    """A worktree of its own that borrows the repository's objects."""
    with tempfile.TemporaryDirectory(prefix="text-tools-") as folder:
        path = Path(folder) / "tree"
        subprocess.run(["git", "clone", "-q", "--shared", "--no-checkout", str(repository.path), str(path)], check=True)
        subprocess.run(["git", "checkout", "-q", "--detach", repository.resolve(ref)], cwd=path, check=True)
        yield path


def _environment() -> dict[str, str]:
    return {**os.environ, **_ME, "QUILT_PATCHES": "patches", "GIT_CONFIG_GLOBAL": os.devnull, "HOME": tempfile.gettempdir()}


def _run(folder: Path, *words: str) -> int:
    return subprocess.run(words, cwd=folder, env=_environment(), capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode


def _must(folder: Path, *words: str) -> None:
    done = subprocess.run(words, cwd=folder, env=_environment(), capture_output=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed: {done.stderr.decode(errors='replace').strip()[-400:]}")
