"""Git behind one module: what is read and written, and what never runs."""

from __future__ import annotations

import pytest

from stackctl.model.errors import StackctlError
from stackctl.trees.git import FileEntry, Identity, Repository
from tests.support import commit_files, git, repository_of


@pytest.fixture
def repository(tmp_path):
    return repository_of(tmp_path / "repo", {"a.py": "x = 1\n", "b b.txt": b"\r\n\xff", "sub/c.txt": ""})


def test_files_and_bytes(repository):
    files = repository.files("main")
    assert list(files) == ["a.py", "b b.txt", "sub/c.txt"]
    assert [repository.blob(entry.blob) for entry in files.values()] == [b"x = 1\n", b"\r\n\xff", b""]
    assert [data for _, data in repository.blobs([files["b b.txt"].blob])] == [b"\r\n\xff"]


def test_a_missing_object_does_not_spoil_the_next(repository):
    with pytest.raises(StackctlError, match="is missing"):
        repository.blob("1" * 40)
    with pytest.raises(StackctlError, match="is missing"):
        repository.blob("not an id")
    assert repository.blob(repository.files("main")["a.py"].blob) == b"x = 1\n"


def test_bytes_are_stored_as_they_are(repository):
    git(repository.path, "config", "core.autocrlf", "true")
    for data in (b"a\r\nb\r\n", b"a\nb\n", b"\0"):
        assert repository.blob(repository.write_blob(data)) == data


def test_a_commit_moves_no_ref_until_told(repository, tmp_path):
    before = repository.resolve("main")
    entry = FileEntry("100755", repository.write_blob(b"new\n"))
    tree = repository.write_tree("main", {"new.sh": entry, "a.py": None}, tmp_path / "index")
    commit = repository.commit(tree, [before], "one", Identity("N", "n@example.invalid", "1700000000 +0000"))
    assert repository.resolve("main") == before
    assert repository.files(commit) == {**{k: v for k, v in repository.files("main").items() if k != "a.py"}, "new.sh": entry}
    assert repository.parents(commit) == [before]
    repository.update_ref("refs/heads/new", commit, repository.nothing)
    assert repository.resolve("new") == commit
    with pytest.raises(StackctlError, match="update-ref failed"):
        repository.update_ref("refs/heads/new", before, before)
    assert repository.resolve("new") == commit


def test_refs_move_together_or_not_at_all(repository):
    commit = repository.resolve("main")
    with pytest.raises(StackctlError):
        repository.update_refs([("refs/heads/a", commit, repository.nothing), ("refs/heads/main", commit, "1" * 40)])
    assert not repository.exists("refs/heads/a")


@pytest.mark.parametrize("ref", ["nope", "-x", "main^{tree}", "main:a.py", "", "a b", "main~9"])
def test_what_is_no_commit(repository, ref):
    with pytest.raises(StackctlError):
        repository.resolve(ref)
    assert not repository.exists(ref)


def test_an_object_that_is_there_in_name_only_is_not_taken_for_a_missing_ref(repository):
    (repository.git_dir / "config").write_text("[broken\n")
    with pytest.raises(StackctlError, match="bad config"):
        repository.resolve("main")


def test_merge_bases_and_parents(repository):
    base = repository.resolve("main")
    git(repository.path, "checkout", "-qb", "side")
    side = commit_files(repository.path, {"side": "1"}, "side")
    git(repository.path, "checkout", "-q", "main")
    main = commit_files(repository.path, {"main": "1"}, "main")
    assert repository.merge_bases(side, main) == [base]
    git(repository.path, "checkout", "-q", "--orphan", "alone")
    alone = commit_files(repository.path, {"x": "1"}, "alone")
    assert repository.merge_bases(alone, main) == []


def test_checkouts_and_changes(repository, tmp_path):
    other = tmp_path / "with space\nand line"
    git(repository.path, "worktree", "add", "-q", "-b", "other", str(other))
    assert repository.branch_checkouts() == {"refs/heads/main": repository.path, "refs/heads/other": other}
    assert repository.changed_files() == []
    (repository.path / "b b.txt").write_text("changed")
    (repository.path / "untracked").write_text("")
    assert repository.changed_files() == ["b b.txt"] and Repository(other).changed_files() == []


def test_sha256(tmp_path):
    git(tmp_path, "init", "-q", "--object-format=sha256", "-b", "main", ".")
    commit = commit_files(tmp_path, {"a": "x"}, "one")
    repository = Repository(tmp_path)
    assert repository.nothing == "0" * 64 and repository.resolve("main") == commit
    assert repository.blob(repository.files("main")["a"].blob) == b"x"


def test_no_repository(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(StackctlError, match="not a Git repository"):
            Repository(path)


def test_identity_is_the_users_own_or_ours(repository, monkeypatch):
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"):
        monkeypatch.delenv(name, raising=False)
    git(repository.path, "config", "user.name", "Me")
    git(repository.path, "config", "user.email", "me@example.invalid")
    assert repository.identity == Identity("Me", "me@example.invalid")
