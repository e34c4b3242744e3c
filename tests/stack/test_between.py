"""A repository laid out as upstream's own: test/ beside python/, no version file, a commit between two releases."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackctl.carry.apply import apply, replant
from stackctl.census.verify import verify
from stackctl.model.verdict import Exit, Verdict
from stackctl.trees.git import FileEntry, Repository
from stackctl.trees.release import release_of
from stackctl.trees.tree import GitTree
from tests.support import own_stack, releases_repository

pytestmark = pytest.mark.releases
RESPONSES = "python/sglang/srt/entrypoints/openai/serving_responses.py"
CHAT = "python/sglang/srt/entrypoints/openai/serving_chat.py"
BASE = "python/sglang/srt/entrypoints/openai/serving_base.py"


def upstream_layout(repository: Repository, tmp_path: Path) -> str:
    """A commit after a tagged 0.5.22 that has some of 0.5.23 already, in upstream's own layout."""
    newer = repository.files("v0.5.23")
    test = FileEntry("100644", repository.write_blob(b"def test_upstream():\n    assert True\n"))
    layout: dict[str, FileEntry | None] = {"python/sglang/_version.py": None, "test/registered/unit/test_upstream.py": test}
    first = repository.commit(repository.write_tree("v0.5.22", layout, tmp_path / "index"), [], "Release 0.5.22")
    repository.update_ref("refs/tags/v0.5.22", first, repository.resolve("refs/tags/v0.5.22"))
    step = {path: newer[path] for path in (RESPONSES, CHAT)}
    return repository.commit(repository.write_tree(first, step, tmp_path / "index"), [first], "[Responses] Parser context")


def test_apply_verify_replant_between_releases(tmp_path: Path) -> None:
    repository = releases_repository(tmp_path / "repo", "0.5.22", "0.5.23")
    onto = upstream_layout(repository, tmp_path)
    release = release_of(GitTree(repository, onto))
    assert (release.version, release.exact) == ("0.5.22", False)

    run = apply(own_stack(), repository, onto, branch="fork")
    planted = {plant for outcome in run.outcomes for plant in outcome.planted}
    # Due from 0.5.23 on, and its host has arrived already.
    assert "responses-parser-context" in planted
    stock = GitTree(repository, onto)
    tree = GitTree(repository, "fork")
    report = verify(own_stack(), tree, release_of(tree), stock)
    assert report.exit is Exit.CLEAN, [(f.plant, f.message) for f in report.findings]
    assert tree.read("test/registered/unit/test_upstream.py") == stock.read("test/registered/unit/test_upstream.py")
    assert apply(own_stack(), repository, onto, branch="fork").commits == 0

    # A merge that takes upstream's side of two files.
    lost = {path: FileEntry("100644", stock.blob(path)) for path in (BASE, RESPONSES)}
    merged = repository.commit(repository.write_tree("fork", lost, tmp_path / "index"), [repository.resolve("fork"), onto], "merge")
    tree = GitTree(repository, merged)
    report = verify(own_stack(), tree, release_of(tree), stock)
    named = {f.plant for f in report.findings if f.kind is Verdict.LOST}
    assert {"convert", "handler-preprocess", "handler-import", "responses-harmony", "responses-render"} <= named
    replant(own_stack(), repository, merged, branch="whole", upstream=onto)
    assert repository.resolve("whole", "tree") == repository.resolve("fork", "tree")
    # Without saying which commit is upstream's the halves are put back all the same.
    replant(own_stack(), repository, merged, branch="whole-too")
    assert repository.resolve("whole-too", "tree") == repository.resolve("fork", "tree")
