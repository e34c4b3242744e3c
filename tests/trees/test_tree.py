"""Trees: a commit, a folder, and changes on top read alike; a symlink is never followed."""

from __future__ import annotations

import os

import pytest

from stackctl.model.errors import StackctlError
from stackctl.trees.tree import FolderTree, GitTree, OverlayTree, blob_id
from tests.support import commit_files, repository_of

FILES = {"a.py": "x = 1\n", "sub/b.txt": b"\xff\r\n", "sub/deep/c": "", "name with space": "s", "new\nline": "n"}


@pytest.fixture
def repository(tmp_path):
    repository = repository_of(tmp_path / "repo", FILES)
    (repository.path / "link").symlink_to("/etc/passwd")
    (repository.path / "folder").symlink_to("sub")
    (repository.path / "sub/run.sh").write_text("#!/bin/sh\n")
    (repository.path / "sub/run.sh").chmod(0o755)
    commit_files(repository.path, {}, "more")
    return repository


def test_a_commit_and_its_checkout_are_one(repository):
    commit, folder = GitTree(repository, "main"), FolderTree(repository.path)
    assert sorted(commit.paths()) == sorted(folder.paths())
    for path in commit.paths():
        assert commit.mode(path) == folder.mode(path)
        assert commit.blob(path) == folder.blob(path)
        assert commit.read(path) == folder.read(path)
        assert commit.is_file(path) == folder.is_file(path)


def test_symlinks_are_entries_of_their_own(repository):
    for tree in (GitTree(repository, "main"), FolderTree(repository.path)):
        assert "link" in tree and not tree.is_file("link") and tree.read("link") == b"/etc/passwd"
        assert "folder" in tree and "folder/b.txt" not in tree and not tree.is_file("folder")


def test_what_is_outside_is_not_there(repository):
    for tree in (GitTree(repository, "main"), FolderTree(repository.path)):
        for path in ("../repo/a.py", "/etc/passwd", ".git/config", "sub", "", "./a.py"):
            assert path not in tree and not tree.is_file(path)
            with pytest.raises(KeyError):
                tree.read(path)


def test_a_pipe_and_a_name_of_bytes_in_a_folder(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / os.fsdecode(b"\xff")).write_text("x")
    assert list(FolderTree(tmp_path).paths()) == ["\udcff"]


def test_no_folder(tmp_path):
    with pytest.raises(StackctlError, match="no such folder"):
        FolderTree(tmp_path / "none")


def test_changes_on_top(repository):
    base = GitTree(repository, "main")
    tree = OverlayTree(base, {"a.py": None, "new.py": b"n", "sub/run.sh": b"changed"})
    assert "a.py" not in tree and not tree.is_file("a.py") and set(tree.paths()) == set(base.paths()) - {"a.py"} | {"new.py"}
    assert tree.read("new.py") == b"n" and tree.blob("new.py") == blob_id(b"n")
    assert (tree.mode("new.py"), tree.mode("sub/run.sh")) == ("100644", "100755")
    assert tree.blob("sub/b.txt") == base.blob("sub/b.txt")
    with pytest.raises(KeyError):
        tree.read("a.py")
