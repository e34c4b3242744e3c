"""PyPI releases become commits and tags; whatever goes wrong, nothing changes."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import pytest

from stackctl.model.errors import StackctlError
from stackctl.trees import pypi
from stackctl.trees.git import Repository
from stackctl.trees.pypi import add_releases, ensure_release, list_releases
from tests.trees.wheels import STAMP_SECONDS, corrupt, entry, make_wheel, release, shelve

ROOT = Path(__file__).parents[2]
LINK = stat.S_IFLNK | 0o777


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine of its own: no index, no user's settings, an empty cache folder."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "GIT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("STACKCTL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def shelf(tmp_path):
    """Put a good release into the cache folder, so that no pip runs."""

    def put(version, *entries):
        shelve(tmp_path / "cache", release(tmp_path / "wheels", version, *entries), version)

    return put


@pytest.fixture
def repo(tmp_path):
    return tmp_path / "repo"


def git(repo, *arguments):
    done = subprocess.run(["git", *arguments], cwd=repo, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def state(repo):
    """Refs, HEAD and every file of the Git directory but the lock."""
    files = sorted(str(path) for path in (repo / ".git").rglob("*") if path.is_file() and path.suffix != ".lock")
    return git(repo, "for-each-ref"), (repo / ".git" / "HEAD").read_text(), files


def test_a_release_is_one_commit_and_one_tag(shelf, repo):
    shelf("1.0", entry("sglang/k/E=8,N=2 (H 100).json", b"{}"), entry("sglang/run.sh", b"#!\n", stat.S_IFREG | 0o755),
          entry('sglang/odd"\n.txt'), entry("sglang/x.so", b"\x7fELF\0"))  # fmt: skip
    added = add_releases(repo, ["1.0"])
    assert added.new == {"v1.0"} and not added.notes
    files = Repository(repo).files("v1.0")
    assert set(files) == {
        "python/sglang/__init__.py", "python/sglang/version.py", "python/sglang/k/E=8,N=2 (H 100).json",
        "python/sglang/run.sh", 'python/sglang/odd"\n.txt',
    }  # fmt: skip
    assert files["python/sglang/run.sh"].mode == "100755"
    assert git(repo, "show", "v1.0:python/sglang/version.py") == '__version__ = "1.0"'
    assert git(repo, "log", "-1", "--format=%an <%ae> %at %ct %cn", "v1.0") == (
        f"stackctl upstream <stackctl@localhost> {STAMP_SECONDS} {STAMP_SECONDS} stackctl upstream"
    )
    assert git(repo, "rev-parse", "main") == git(repo, "rev-parse", "v1.0") == added.releases[0].commit
    git(repo, "fsck", "--strict")


def test_the_wheel_is_recorded_and_what_was_left_out_is_named(shelf, repo):
    shelf("1.0", entry("sglang/x.so", b"\x7fELF\0"))
    (one,) = add_releases(repo, ["1.0"]).releases
    trailers = git(repo, "log", "-1", "--format=%(trailers:only)", "v1.0").splitlines()
    assert trailers == [f"Wheel: {one.wheel}", f"Wheel-SHA256: {one.sha256}"]
    assert one.wheel == "sglang-1.0-py3-none-any.whl" and len(one.sha256) == 64
    assert "- python/sglang/x.so" in git(repo, "log", "-1", "--format=%B", "v1.0")


def test_the_parent_is_the_next_lower_release_there(shelf, repo):
    for version in ("0.9", "0.10.post1", "0.11rc1", "0.11", "0.12"):
        shelf(version)
    add_releases(repo, ["0.12", "0.9", "v0.9"])
    add_releases(repo, ["0.11rc1", "0.10.post1"])
    add_releases(repo, ["0.11"])
    parents = {tag: git(repo, "log", "-1", "--format=%P", tag) for tag in git(repo, "tag").split()}
    commit = {tag: git(repo, "rev-parse", tag) for tag in parents}
    assert parents == {
        "v0.9": "",
        "v0.10.post1": commit["v0.9"],
        "v0.11rc1": commit["v0.10.post1"],
        "v0.11": commit["v0.11rc1"],
        "v0.12": commit["v0.9"],
    }
    assert [str(one.version) for one in list_releases(Repository(repo))] == [
        "0.9", "0.10.post1", "0.11rc1", "0.11", "0.12",
    ]  # fmt: skip
    assert git(repo, "rev-parse", "main") == commit["v0.12"]


def test_another_machine_has_the_same_commits(shelf, tmp_path, monkeypatch):
    shelf("1.0")
    shelf("1.1", entry("sglang/new.py"))
    add_releases(tmp_path / "a", ["1.0", "1.1"])
    config = tmp_path / "gitconfig"
    config.write_text("[user]\nname=x\nemail=y\n[core]\nautocrlf=true\n[i18n]\ncommitEncoding=latin1\n"
                      "[commit]\ngpgSign=true\n[fastimport]\nunpackLimit=100000\n")  # fmt: skip
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("GIT_AUTHOR_DATE", "1 +0000")
    add_releases(tmp_path / "b", ["1.1", "1.0"])
    assert git(tmp_path / "a", "for-each-ref") == git(tmp_path / "b", "for-each-ref")


def test_a_version_written_otherwise_is_the_same_release(shelf, tmp_path, repo):
    shelf("1.0")
    shelve(tmp_path / "cache", release(tmp_path / "wheels", "1.0"), "1.0.0")
    assert add_releases(repo, ["1.0.0"]).new == {"v1.0"}


def test_the_first_checkout_of_a_new_repository_is_clean(shelf, repo):
    shelf("1.0")
    shelf("1.1")
    add_releases(repo, ["1.0", "1.1"])
    assert [path.name for path in repo.iterdir()] == [".git"]
    git(repo, "checkout", "-q", "v1.0")
    assert git(repo, "status", "--porcelain") == ""


def test_a_repository_in_use_gets_tags_and_nothing_else(shelf, repo):
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    (repo / "mine.txt").write_text("mine\n")
    git(repo, "add", ".")
    git(repo, "-c", "user.name=x", "-c", "user.email=y", "commit", "-q", "-m", "mine")
    (repo / "mine.txt").write_text("changed\n")
    for hook in ("reference-transaction", "post-commit", "post-checkout"):
        script = repo / ".git" / "hooks" / hook
        script.write_text(f"#!/bin/sh\ntouch '{repo}/ran-{hook}'\n")
        script.chmod(0o755)
    (repo / ".git" / "info" / "attributes").write_text("* filter=evil text eol=crlf\n")
    git(repo, "config", "filter.evil.clean", f"touch '{repo}/ran-filter'; cat")
    before = git(repo, "rev-parse", "main"), git(repo, "status", "--porcelain"), (repo / ".git/HEAD").read_text()
    shelf("1.0", entry("sglang/crlf.txt", b"a\r\nb\n"))
    add_releases(repo, ["1.0"])
    assert before == (
        git(repo, "rev-parse", "main"), git(repo, "status", "--porcelain"), (repo / ".git/HEAD").read_text()
    )  # fmt: skip
    data = subprocess.run(["git", "show", "v1.0:python/sglang/crlf.txt"], cwd=repo, capture_output=True).stdout
    assert data == b"a\r\nb\n"


def test_main_stays_where_somebody_works_on_it(shelf, repo):
    for version in ("1.0", "1.1", "1.2"):
        shelf(version)
    add_releases(repo, ["1.0"])
    git(repo, "checkout", "-q", "main")
    assert "main is checked out and was left where it is" in add_releases(repo, ["1.1"]).notes
    assert git(repo, "status", "--porcelain") == ""
    git(repo, "-c", "user.name=x", "-c", "user.email=y", "commit", "-q", "--allow-empty", "-m", "mine")
    git(repo, "checkout", "-q", "--detach")
    assert "main has commits of its own and was left where it is" in add_releases(repo, ["1.2"]).notes


def test_an_empty_repository_and_a_bare_one_will_do(shelf, tmp_path):
    shelf("1.0")
    for options in ([], ["--bare"]):
        folder = tmp_path / f"empty{len(options)}"
        folder.mkdir()
        git(folder, "init", "-q", *options)
        add_releases(folder, ["1.0"])
        assert git(folder, "rev-parse", "main") == git(folder, "rev-parse", "v1.0")


def test_a_folder_where_somebody_has_begun_keeps_its_unborn_main(shelf, repo):
    shelf("1.0")
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    (repo / "begun.py").write_text("x = 1\n")
    add_releases(repo, ["1.0"])
    assert git(repo, "for-each-ref", "--format=%(refname)") == "refs/tags/v1.0"
    assert git(repo, "status", "--porcelain") == "?? begun.py"


def hostile(kind, folder):
    """A wheel of release 1.1 that must not be let in."""
    entries = {
        "outside": [entry("sglang/../../x")],
        "hook": [entry(".git/hooks/post-checkout")],
        "symlink": [entry("sglang/link", b"/etc", LINK)],
        "twice": [entry("sglang/a.py"), entry("sglang/a.py")],
        "bomb": [entry("sglang/a.txt", b"0" * (80 << 20))],
        "corrupt": [entry("sglang/a.txt", bytes(range(32, 127)) * 900)],
        "no text": [entry("sglang/a.so", b"\x7fELF\0")],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wheel = make_wheel(folder, "1.1", *entries[kind])
    if kind == "corrupt":
        corrupt(wheel)
    return wheel


@pytest.mark.parametrize("kind", ["outside", "hook", "symlink", "twice", "bomb", "corrupt", "no text"])
def test_a_hostile_wheel_changes_nothing(shelf, tmp_path, repo, kind):
    shelf("1.0")
    shelf("0.9")
    shelve(tmp_path / "cache", hostile(kind, tmp_path / "wheels"), "1.1")
    with pytest.raises(StackctlError):
        add_releases(repo / "deep" / "er", ["1.0", "1.1"])
    assert not repo.exists()
    add_releases(repo, ["0.9"])
    before = state(repo)
    with pytest.raises(StackctlError) as caught:
        add_releases(repo, ["1.0", "1.1"])
    assert state(repo) == before
    assert caught.value.message


def test_a_folder_that_is_no_repository_is_refused(shelf, tmp_path, repo):
    shelf("1.0")
    repo.mkdir()
    (repo / "file").write_text("x")
    with pytest.raises(StackctlError, match="not empty and not a Git repository"):
        add_releases(repo, ["1.0"])
    with pytest.raises(StackctlError, match="not a folder"):
        add_releases(repo / "file", ["1.0"])
    git(tmp_path, "init", "-q")  # a repository above is not meant
    with pytest.raises(StackctlError, match="not empty and not a Git repository"):
        add_releases(repo, ["1.0"])
    assert [path.name for path in repo.iterdir()] == ["file"]


def test_a_folder_that_is_there_and_empty_stays_on_failure(tmp_path, repo):
    shelve(tmp_path / "cache", hostile("symlink", tmp_path / "wheels"), "1.1")
    repo.mkdir()
    with pytest.raises(StackctlError):
        add_releases(repo, ["1.1"])
    assert list(repo.iterdir()) == []


def test_a_killed_git_init_is_completed(shelf, tmp_path, repo):
    git(tmp_path, "init", "-q")
    (repo / ".git" / "objects").mkdir(parents=True)
    shelf("1.0")
    add_releases(repo, ["1.0"])
    assert git(repo, "tag") == "v1.0" and git(tmp_path, "tag") == ""


@pytest.mark.parametrize("text", ["; rm", "--foo", "", "latest", "../1.0", "1.0\n2.0", "main"])
def test_what_is_no_version_is_refused(repo, text):
    with pytest.raises(StackctlError, match="is not a release"):
        add_releases(repo, ["1.0", text])
    assert not repo.exists()


def test_names_by_sha256_are_refused(shelf, repo):
    shelf("1.0")
    repo.mkdir()
    git(repo, "init", "-q", "--object-format=sha256")
    with pytest.raises(StackctlError, match="SHA-256"):
        add_releases(repo, ["1.0"])


def test_a_tag_that_was_not_made_from_a_wheel_is_never_moved(shelf, repo):
    shelf("1.0")
    add_releases(repo, ["1.0"])
    git(repo, "-c", "user.name=x", "-c", "user.email=y", "tag", "-a", "v1.1", "-m", "theirs", "v1.0^{tree}")
    shelf("1.1")
    with pytest.raises(StackctlError, match="was not made from a wheel"):
        add_releases(repo, ["1.1"])
    assert ensure_release(repo, ["1.1"])


def test_a_second_run_at_the_same_time_is_told_and_stops(shelf, repo):
    shelf("1.0")
    shelf("1.1")
    add_releases(repo, ["1.0"])
    with (repo / ".git" / pypi._LOCK).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = state(repo)
        with pytest.raises(StackctlError, match="another `stackctl upstream add`"):
            add_releases(repo, ["1.1"])
        assert state(repo) == before
        threading.Timer(0.3, lambda: fcntl.flock(file, fcntl.LOCK_UN)).start()
        ensure_release(repo, ["1.1"])  # waits instead
    assert git(repo, "tag").split() == ["v1.0", "v1.1"]


def test_ensure_release_asks_nobody_for_what_is_there(shelf, tmp_path, repo):
    shelf("1.0")
    ensure_release(repo, ["1.0"])
    shutil.rmtree(tmp_path / "cache")
    assert ensure_release(repo, ["1.0"]).path == repo
    assert not (tmp_path / "cache").exists()


def run(script, *arguments, **options):
    """Run a Python script against this package in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, **options,
    )  # fmt: skip


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from stackctl.trees.pypi import add_releases
    def die(label, done, total):
        if label == sys.argv[2] and done == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
    add_releases(Path(sys.argv[1]), ["1.1", "1.2"], die)
"""


@pytest.mark.parametrize(("label", "done"), [("import 1.1", 0), ("import 1.1", 4), ("import 1.2", 1), ("import 1.2", 4)])
def test_a_kill_leaves_the_refs_as_they_were(shelf, repo, label, done):
    shelf("1.0")
    add_releases(repo, ["1.0"])
    for version in ("1.1", "1.2"):
        shelf(version, entry("sglang/a.txt"), entry("sglang/b.txt", b"b"))
    before = git(repo, "for-each-ref")
    assert run(KILLED, repo, label, done).returncode == -signal.SIGKILL
    assert git(repo, "for-each-ref") == before
    add_releases(repo, ["1.1", "1.2"])
    assert git(repo, "tag").split() == ["v1.0", "v1.1", "v1.2"]
    assert not list((repo / ".git").glob(f"{pypi._INCOMING}*"))
    git(repo, "fsck", "--strict")


def test_a_kill_leaves_a_new_repository_that_the_next_run_takes(shelf, repo):
    shelf("1.1", entry("sglang/a.txt"))
    shelf("1.2")
    assert run(KILLED, repo, "import 1.1", 1).returncode == -signal.SIGKILL
    add_releases(repo, ["1.1"])
    assert git(repo, "rev-parse", "main") == git(repo, "rev-parse", "v1.1")


NO_ROOM = """
    import resource, sys
    from pathlib import Path
    from stackctl.model.errors import StackctlError
    from stackctl.trees.pypi import add_releases
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    try:
        add_releases(Path(sys.argv[1]), ["1.1"])
    except StackctlError as error:
        print(error.message)
"""


def test_a_pack_that_cannot_be_written_changes_nothing(shelf, repo):
    shelf("1.0")
    add_releases(repo, ["1.0"])
    shelf("1.1", *(entry(f"sglang/{number}.txt", os.urandom(5000).hex().encode()) for number in range(40)))
    before = state(repo)
    assert "git fast-import failed" in run(NO_ROOM, repo).stdout
    assert state(repo) == before


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("may not mount a file system here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_named(shelf, small_disk):
    shelf("1.1", *(entry(f"sglang/{number}.txt", os.urandom(5000).hex().encode()) for number in range(60)))
    with pytest.raises(StackctlError, match="disk is full"):
        add_releases(small_disk / "repo", ["1.1"])
    assert list(small_disk.iterdir()) == []


@pytest.mark.releases
def test_two_real_releases(tmp_path, monkeypatch, request):
    """The ids that every machine and every Python has."""
    request.getfixturevalue("machine")
    monkeypatch.undo()  # the user's own index and cache
    start = time.monotonic()
    repository = ensure_release(tmp_path / "real", ["0.5.15.post1", "0.5.16"])
    assert [(one.tag, one.commit) for one in list_releases(repository)] == [
        ("v0.5.15.post1", "36a7f292d3f6cd4eaa1dca63206c90bc68a8f5b1"),
        ("v0.5.16", "39cfab5cd7baec2f2d933d15aa0bdc9a21e6cc17"),
    ]
    files = repository.files("v0.5.16")
    assert "python/sglang/version.py" in files and not any(path.endswith(".so") for path in files)
    assert not any(".dist-info" in path for path in files)
    ensure_release(tmp_path / "real", ["0.5.16"])
    print(f"{time.monotonic() - start:.1f} s")
