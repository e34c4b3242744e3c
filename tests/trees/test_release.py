"""Which release a tree is: its own file, else the nearest tag, never a guess."""

from __future__ import annotations

import pytest

from stackctl.model.errors import StackctlError
from stackctl.trees.ranges import check_range
from stackctl.trees.release import Release, parse_release, release_of
from stackctl.trees.stock import stock_tree
from stackctl.trees.tree import FolderTree, GitTree, OverlayTree
from tests.support import commit_files, git, repository_of

FILE = "python/sglang/version.py"


@pytest.mark.parametrize(("text", "release"), [
    ("0.5.23", Release("0.5.23")), ("v0.5.15.post1", Release("0.5.15.post1")), ("0.5.23+stack", Release("0.5.23")),
    ("0.5.23.dev4+g1", Release("0.5.23", False)),
])  # fmt: skip
def test_words(text, release):
    assert parse_release(text) == release


@pytest.mark.parametrize("text", ["newest", "", "0.5.x", "main", "0.5.23-fork"])
def test_what_is_no_release(text):
    with pytest.raises(StackctlError, match="is not a release"):
        parse_release(text)


@pytest.mark.parametrize(("line", "release"), [
    ('__version__ = "0.5.23"', "0.5.23"), ("__version__ = '0.5.22+stack'", "0.5.22"), ('__version__: str = "0.5.21"', "0.5.21"),
    ("__version__ = version = '0.5.20'", "0.5.20"), ('import os\r\n__version__ = "0.5.23"\r\n', "0.5.23"),
])  # fmt: skip
def test_the_version_file(tmp_path, line, release):
    repository = repository_of(tmp_path, {FILE: f"{line}\n"})
    assert str(release_of(GitTree(repository, "main"))) == release
    assert str(release_of(FolderTree(tmp_path))) == release


def test_a_version_file_that_names_none_is_named(tmp_path):
    repository = repository_of(tmp_path, {FILE: '__version__ = "banana"\n'})
    with pytest.raises(StackctlError, match="'banana' is not a release") as caught:
        release_of(GitTree(repository, "main"))
    assert caught.value.where == FILE


def test_the_nearest_tag(tmp_path):
    repository = repository_of(tmp_path, {"a": "1", FILE: '__version__ = "0.0.0.dev0"\n'})
    with pytest.raises(StackctlError, match="cannot tell which SGLang release this tree is"):
        release_of(GitTree(repository, "main"))
    git(tmp_path, "tag", "v0.5.22")
    assert release_of(GitTree(repository, "main")) == Release("0.5.22")
    commit_files(tmp_path, {"a": "2"}, "two")
    for name in ("v0.5.23rc1", "v0.5.22-fork.1", "nightly", "gateway-v9"):
        git(tmp_path, "tag", name)
    tree = GitTree(repository, "main")
    assert release_of(tree) == Release("0.5.22", exact=False)
    assert release_of(OverlayTree(tree, {"a": b"3"})) == Release("0.5.22", exact=False)
    assert release_of(tree, "0.5.9") == Release("0.5.9")
    with pytest.raises(StackctlError):
        release_of(FolderTree(tmp_path))


def test_a_version_file_that_is_a_symlink_is_not_followed(tmp_path):
    (tmp_path / "outside.py").write_text('__version__ = "6.6.6"\n')
    repository = repository_of(tmp_path / "repo", {"a": "1"})
    (tmp_path / "repo/python/sglang").mkdir(parents=True)
    (tmp_path / "repo" / FILE).symlink_to(tmp_path / "outside.py")
    commit_files(tmp_path / "repo", {}, "link")
    git(tmp_path / "repo", "tag", "v0.5.23")
    assert release_of(GitTree(repository, "main")) == Release("0.5.23")


@pytest.mark.parametrize(("releases", "version", "exact", "due"), [
    ("", "0.5.23", True, True), (">=0.5.23", "0.5.23", True, True), (">=0.5.23", "0.5.22", True, False), (">=0.5.23", "0.5.22", False, None),
    ("<0.5.23", "0.5.23", False, False), (">=0.5.15", "0.5.15.post1", True, True), (">=0.5.21,<0.5.23", "0.5.22", False, True),
])  # fmt: skip
def test_what_is_due(releases, version, exact, due):
    assert Release(version, exact).due(releases) is due


@pytest.mark.parametrize("releases", [">=0.5.21", ">=0.5.21,<0.5.24", "==0.5.*", "<0.5", "!=0.5.22", ">0.5.21,<0.5.22", "~=0.5.20", "<=0.5.15.post1"])
def test_ranges(releases):
    assert check_range(releases) is None


@pytest.mark.parametrize("releases", ["newest", "0.5", ">=0.5.23,<0.5.22", "==0.5.1,==0.5.2", "<0.5,>0.5"])
def test_ranges_that_hold_nothing(releases):
    assert check_range(releases)


def test_stock_upstream_is_the_releases_tag_and_only_of_an_exact_one(tmp_path):
    repository = repository_of(tmp_path, {"a": "1"})
    assert stock_tree(repository, Release("0.5.23")) is None
    git(tmp_path, "tag", "v0.5.23")
    git(tmp_path, "branch", "v0.5.24")  # a branch of that name is no tag
    assert stock_tree(repository, Release("0.5.23")).commit == repository.resolve("main")
    assert stock_tree(repository, Release("0.5.24")) is None
    assert stock_tree(repository, Release("0.5.24"), "main").label == "main"
