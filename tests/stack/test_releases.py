"""The stack on every real release: planted whole, each half missed when it is gone, and put back byte for byte."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from unidiff import PatchSet

from stackctl.carry.apply import apply
from stackctl.carry.planting import plant_entries
from stackctl.census.memo import Memo
from stackctl.census.verify import verify
from stackctl.model.verdict import EntryVerdict, Exit
from stackctl.plants.view import View
from stackctl.trees.git import Repository
from stackctl.trees.release import release_of
from stackctl.trees.tree import GitTree, OverlayTree
from tests.support import RELEASES, git, own_stack, releases_repository

pytestmark = pytest.mark.releases


@dataclass(frozen=True)
class Planted:
    """One release with the stack on it."""

    repository: Repository
    version: str
    stock: GitTree
    tree: GitTree


@pytest.fixture(scope="module", params=RELEASES)
def planted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Planted:
    version = request.param
    repository = releases_repository(tmp_path_factory.mktemp("releases") / "repo", version)
    run = apply(own_stack(), repository, f"v{version}", branch="planted")
    assert run.release.version == version
    return Planted(repository, version, GitTree(repository, f"v{version}"), GitTree(repository, "planted"))


def changed_paths(planted: Planted) -> list[str]:
    return planted.repository.text("diff", "--name-only", f"v{planted.version}", "planted").split("\n")


def test_whole_or_adopted(planted: Planted) -> None:
    release = release_of(planted.tree)
    assert release.version == planted.version  # the fork's suffix on the version is ignored
    report = verify(own_stack(), planted.tree, release, planted.stock)
    assert report.exit is Exit.CLEAN, [finding.message for finding in report.findings]
    wanted = {number: {EntryVerdict.WHOLE} for number in ("190", "200", "201", "207")}
    wanted["205"] = {EntryVerdict.ADOPTED if planted.version == "0.5.23" else EntryVerdict.WHOLE}
    assert all(row.verdict in wanted[row.number] for row in report.entries), report.entries


def test_stock_is_missed(planted: Planted) -> None:
    report = verify(own_stack(), planted.stock, release_of(planted.stock), planted.stock)
    assert report.exit is Exit.FINDINGS
    assert {row.number for row in report.entries if row.verdict is EntryVerdict.ABSENT} >= {"200", "201", "207"}


def test_second_apply_makes_no_commit(planted: Planted) -> None:
    before = planted.repository.resolve("planted")
    run = apply(own_stack(), planted.repository, f"v{planted.version}", branch="planted")
    assert run.commits == 0
    assert planted.repository.resolve("planted") == before


def test_touched_files_compile_and_no_other_differs(planted: Planted) -> None:
    declared = {"FORK_NOTICE.md"}
    view = View(planted.tree, own_stack(), release_of(planted.tree))
    for entry in own_stack().entries:
        declared |= {view.path_of(plant.module) for plant in entry.plants if plant.host}
        declared |= {plant.options["path"] for plant in entry.plants if plant.kind == "file"}
    changed = changed_paths(planted)
    assert set(changed) <= declared
    for path in changed:
        if path.endswith(".py"):
            compile(planted.tree.read(path), path, "exec")


def test_planted_lines_keep_within_blacks_width(planted: Planted) -> None:
    diff = planted.repository.text("diff", "-U0", f"v{planted.version}", "planted", "--", "python/sglang/srt")
    long = [line for line in diff.split("\n") if line.startswith("+") and not line.startswith("+++") and len(line) > 89]
    # An argument that is too long by itself cannot be broken: Black leaves it too.
    assert [line for line in long if "(" in line.rstrip("([{")] == []


@dataclass(frozen=True)
class Reverted:
    """The planted tree with one hunk of the stack's diff taken back."""

    name: str
    path: str
    tree: OverlayTree


def reverted_hunks(planted: Planted, context: int) -> Iterator[Reverted]:
    """Every hunk of the whole diff, each taken back alone by Git itself."""
    text = planted.repository.run("diff", "--no-color", "--no-ext-diff", f"-U{context}", f"v{planted.version}", "planted")
    for file in PatchSet(text.decode()):
        path = file.path
        for index, hunk in enumerate(file):
            name = f"{path}@{index}"
            if file.is_added_file:
                yield Reverted(name, path, OverlayTree(planted.tree, {path: None}))
                continue
            lines = planted.tree.read(path).split(b"\n")
            old = [line.value.rstrip("\n").encode() for line in hunk.source_lines()]
            start = hunk.target_start - 1 if hunk.target_length else hunk.target_start
            taken = [*lines[:start], *old, *lines[start + hunk.target_length :]]
            yield Reverted(name, path, OverlayTree(planted.tree, {path: b"\n".join(taken)}))


@pytest.mark.parametrize("context", [0, 3])
def test_no_hunk_is_missed_and_each_is_put_back(planted: Planted, context: int, tmp_path: Path) -> None:
    """Judging point 2: each single hunk taken back alone is named by verify and replanted byte for byte."""
    stack, release = own_stack(), release_of(planted.tree)
    problems, count = [], 0
    with Memo(tmp_path / "verdicts.sqlite") as memo:
        verify(stack, planted.tree, release, planted.stock, memo.judge)
        for hunk in reverted_hunks(planted, context):
            count += 1
            report = verify(stack, hunk.tree, release, planted.stock, memo.judge)
            named = [f for f in report.findings if f.plant and f.path == hunk.path]
            if report.exit is not Exit.FINDINGS or not named:
                problems.append(f"{hunk.name}: not missed")
            view = View(hunk.tree, stack, release, View(planted.stock, stack, release))
            plant_entries(stack.entries, view, memo.judge)
            if not view.exists(hunk.path) or view.read(hunk.path) != planted.tree.read(hunk.path) or len(view.changes) > 1:
                problems.append(f"{hunk.name}: not put back byte for byte, changes {list(view.changes)}")
    assert count >= 25
    assert problems == [], f"{len(problems)} of {count} hunks"


def test_git_itself_agrees_on_the_reverted_hunks(planted: Planted, tmp_path: Path) -> None:
    """The test's own way of taking a hunk back gives what `git apply -R` gives."""
    worktree = tmp_path / "tree"
    git(planted.repository.path, "worktree", "add", "--quiet", "--detach", str(worktree), "planted")
    path = "python/sglang/srt/entrypoints/openai/serving_tokenize.py"
    patch = planted.repository.run("diff", "-U0", f"v{planted.version}", "planted", "--", path).decode()
    for index, hunk in enumerate(PatchSet(patch)[0]):
        header = "".join(patch.splitlines(keepends=True)[:4])
        subprocess.run(["git", "apply", "-R", "--unidiff-zero"], input=f"{header}{hunk}", text=True, cwd=worktree, check=True)
        ours = next(h for h in reverted_hunks(planted, 0) if h.name == f"{path}@{index}")
        assert (worktree / path).read_bytes() == ours.tree.read(path)
        git(worktree, "checkout", "--quiet", "--", path)
