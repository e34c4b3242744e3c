"""Judging point 6: SIGKILL at any moment of apply and replant loses nothing, and the next run finishes it.

A run is forked off with everything imported, so that most kills fall into its work and not into its
start. It leads a process group of its own, which is killed whole: its Git processes die with it.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from stackctl.carry.apply import apply, replant
from stackctl.census.verify import verify
from stackctl.model.stack import Stack
from stackctl.model.verdict import Exit
from stackctl.plants.manifest import load_stack
from stackctl.trees.git import Repository
from stackctl.trees.release import release_of
from stackctl.trees.tree import GitTree
from tests.cli.hostile import ENTRIES, HOST, bench
from tests.killing import die_before
from tests.support import commit_files, git, own_stack, releases_repository, write_files

SEED = 39716
BRANCH = "work"
PLACES = ((os, "replace"), (os, "link"), (os, "unlink"), (subprocess, "run"))


@dataclass(frozen=True)
class Scene:
    """A repository before a run, the run, and the tree that it comes to."""

    template: Path
    stack: Stack
    checkout: bool
    merged: bool
    onto: str

    def run(self, folder: Path) -> None:
        repository = Repository(folder)
        if self.merged:
            replant(self.stack, repository, BRANCH, checkout=self.checkout)
        else:
            apply(self.stack, repository, self.onto, branch=BRANCH, checkout=self.checkout)


def scenes(folder: Path) -> list[Scene]:
    """Apply and replant, each on a branch that is checked out and on one that is not."""
    extra = {f"entries/{number:03d}-file/{name}": text for number in (10, 11) for name, text in _file_entry(number).items()}
    small = bench(folder / "small", entries={**ENTRIES, **extra})
    write_files(small.repo, {"mine.txt": "untracked"})
    stack = load_stack(small.stack)
    found = []
    for checkout in (False, True):
        for merged in (False, True):
            template = folder / f"{'checked-out' if checkout else 'plain'}-{'merged' if merged else 'new'}"
            shutil.copytree(small.repo, template, symlinks=True)
            git(template, "branch", BRANCH) if checkout or merged else None
            if merged:
                apply(stack, Repository(template), "v0.5.23", branch=BRANCH)
                _lose_halves(template)
            git(template, "checkout", "--quiet", BRANCH if checkout else "main")
            found.append(Scene(template, stack, checkout, merged, "v0.5.23"))
    return found


def _file_entry(number: int) -> dict[str, str]:
    path = f"python/sglang/srt/more/file{number}.py"
    manifest = f'number = {number}\ntitle = "File"\ndisposition = "permanent"\nreason = "r"\n[[plant]]\nid = "f"\nkind = "file"\npath = "{path}"\n'
    return {"entry.toml": manifest, f"files/{path}": f"N = {number}\n" * 200}


def _lose_halves(folder: Path) -> None:
    """What a bad merge does: a file, a call and a patched line gone."""
    git(folder, "checkout", "--quiet", BRANCH)
    text = (folder / HOST).read_text().replace("await run(self.convert, request)", "self.convert(request)")
    (folder / "python/sglang/srt/more/file11.py").unlink()
    commit_files(folder, {HOST: text, "data.json": '{\n  "theirs": 2\n}\n'}, "merge")
    git(folder, "rm", "--quiet", "--cached", "mine.txt")  # commit_files adds all there is
    git(folder, "commit", "--quiet", "--amend", "--no-edit")


def refs(folder: Path) -> dict[str, str]:
    rows = git(folder, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(row.split() for row in rows) | {"HEAD": (folder / ".git/HEAD").read_text()}


def tree_of(folder: Path) -> str:
    return git(folder, "rev-parse", f"{BRANCH}^{{tree}}")


def status(folder: Path) -> str:
    return git(folder, "--no-optional-locks", "status", "--porcelain", "--untracked-files=all")


def killed(run: Callable[[], None], delay: float | None, step: int | None) -> bool:
    """Run in a process group of its own and kill that after a time, or before its n-th step. True if it was killed."""
    child = os.fork()
    if not child:
        code = 1
        with contextlib.suppress(BaseException):
            os.setpgid(0, 0)
            if step is not None:
                die_before(step, PLACES)
            run()
            code = 0
        os._exit(code)
    with contextlib.suppress(OSError):
        os.setpgid(child, child)
    if delay is not None:
        time.sleep(delay)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    _, code = os.waitpid(child, 0)
    if delay is not None:  # Git processes of the group that the kernel has not yet ended
        for _ in range(200):
            try:
                os.killpg(child, 0)
            except ProcessLookupError:
                break
            time.sleep(0.005)
    assert os.WIFSIGNALED(code) or os.WEXITSTATUS(code) == 0
    return os.WIFSIGNALED(code)


def check(scene: Scene, folder: Path, done: str, run: Callable[[], bool]) -> bool:
    """One kill in a fresh copy: nothing is lost, and the next run comes to the same end. True if it was killed."""
    shutil.copytree(scene.template, folder, symlinks=True)
    before = refs(folder)
    was_killed = run()
    after = refs(folder)
    moved = after.get(f"refs/heads/{BRANCH}") != before.get(f"refs/heads/{BRANCH}")
    assert {name: value for name, value in after.items() if name != f"refs/heads/{BRANCH}"} == {
        name: value for name, value in before.items() if name != f"refs/heads/{BRANCH}"
    }
    assert not moved or tree_of(folder) == done
    git(folder, "fsck", "--strict", "--no-dangling") if was_killed else None
    if not scene.checkout or not moved:
        assert status(folder) == status(scene.template)
    scene.run(folder)
    assert tree_of(folder) == done
    assert status(folder) == status(scene.template)
    assert [path.name for path in (folder / ".git/stackctl").iterdir() if path.name != "lock"] == []
    assert not list(folder.rglob(".stackctl*")) and not list((folder / ".git").rglob("*.lock")) and not (folder / ".git/stackctl-index").exists()
    assert refs(folder)["HEAD"] == before["HEAD"]
    shutil.rmtree(folder)
    return was_killed


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> list[tuple[Scene, str, float]]:
    """Each scene with the tree that an undisturbed run comes to, and the seconds it takes."""
    folder = tmp_path_factory.mktemp("kills")
    found = []
    for scene in scenes(folder):
        for _ in range(2):  # the first run fills caches
            shutil.rmtree(folder / "trial", ignore_errors=True)
            shutil.copytree(scene.template, folder / "trial", symlinks=True)
            start = time.monotonic()
            scene.run(folder / "trial")
            took = time.monotonic() - start
        tree = GitTree(Repository(folder / "trial"), BRANCH)
        assert verify(scene.stack, tree, release_of(tree)).exit is Exit.CLEAN
        found.append((scene, tree_of(folder / "trial"), took))
        shutil.rmtree(folder / "trial")
    return found


def test_kills_at_random_moments(played, tmp_path):
    dice = random.Random(SEED)
    hits = 0
    for index in range(60):
        scene, done, took = played[index % len(played)]
        delay = dice.uniform(0, took)
        hits += check(scene, tmp_path / "repo", done, lambda: killed(lambda: scene.run(tmp_path / "repo"), delay, None))
    assert hits >= 20


def test_kills_before_a_step(played, tmp_path):
    """Between any two things that a run does to the disk: renames, links, removals, Git commands."""
    dice = random.Random(SEED)
    hits = 0
    for index in range(40):
        scene, done, _ = played[index % len(played)]
        step = dice.randint(1, 40) if index % 2 else dice.randint(15, 40)
        hits += check(scene, tmp_path / "repo", done, lambda: killed(lambda: scene.run(tmp_path / "repo"), None, step))
    assert hits >= 20


def test_what_somebody_changed_after_the_kill_is_theirs(played, tmp_path):
    """The branch moved, the files did not, and a person edits one of them before the next run."""
    scene, done, _ = played[2]
    shutil.copytree(scene.template, tmp_path / "repo", symlinks=True)

    def die_before_its_files() -> None:
        os.link = os.replace = lambda source, target: None if str(target).endswith(".json") and not rename(source, target) else os.kill(0, signal.SIGKILL)
        scene.run(tmp_path / "repo")

    rename = os.replace
    assert killed(die_before_its_files, None, None)
    assert tree_of(tmp_path / "repo") == done
    (tmp_path / "repo" / HOST).write_text("mine = 1\n")
    with pytest.raises(Exception, match="is checked out with changes"):
        scene.run(tmp_path / "repo")
    assert (tmp_path / "repo" / HOST).read_text() == "mine = 1\n"
    assert tree_of(tmp_path / "repo") == done
    assert status(tmp_path / "repo") == f" M {HOST}\n?? mine.txt".strip()


@pytest.mark.releases
def test_kills_on_a_real_release(tmp_path):
    releases_repository(tmp_path / "template", "0.5.23")
    git(tmp_path / "template", "read-tree", "v0.5.23")
    scene = Scene(tmp_path / "template", own_stack(), checkout=False, merged=False, onto="v0.5.23")
    shutil.copytree(scene.template, tmp_path / "trial", symlinks=True)
    start = time.monotonic()
    scene.run(tmp_path / "trial")
    took = time.monotonic() - start
    done = tree_of(tmp_path / "trial")
    dice = random.Random(SEED)
    for _ in range(10):
        folder = tmp_path / "repo"
        shutil.copytree(scene.template, folder, symlinks=True)
        before = refs(folder)
        delay = dice.uniform(0, took)
        killed(lambda: scene.run(folder), delay, None)
        after = refs(folder)
        assert after == before or tree_of(folder) == done
        git(folder, "fsck", "--connectivity-only", "--no-dangling")
        scene.run(folder)
        assert tree_of(folder) == done
        shutil.rmtree(folder)
