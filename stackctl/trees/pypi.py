"""PyPI releases as a Git repository: one commit and one tag a release, the same id on every machine.

A commit's tree, date and message come from the wheel alone and its author is fixed, so two people who
add the same releases in the same order have the same history.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from packaging.utils import parse_wheel_filename
from packaging.version import InvalidVersion, Version

from stackctl.model.errors import StackctlError
from stackctl.trees.download import PACKAGE, Downloads, NoAnswer, Progress, parse_version, silent
from stackctl.trees.git import _ENVIRONMENT, _SAFE, Repository
from stackctl.trees.wheel import Wheel

_AUTHOR = "stackctl upstream <stackctl@localhost>"
_SCRATCH_REF = "refs/stackctl/incoming"
_NONE = "0" * 40
_LOCK = "stackctl-upstream.lock"
_INCOMING = "stackctl-incoming-"
_MAIN = "refs/heads/main"
_OURS = "stackctl.upstream"
_LISTED = 50
_FORMAT = "%(refname:short)%00%(objectname)%00%(*objectname)%00%(contents)%00%01%0a"


@dataclass(frozen=True)
class UpstreamRelease:
    """A release in the repository. `wheel` and `sha256` are empty for a tag that is not ours."""

    version: Version
    tag: str
    commit: str
    wheel: str = ""
    sha256: str = ""


@dataclass(frozen=True)
class Added:
    """What `add_releases` did: the releases asked for, the tags that are new, and what a person should know."""

    repository: Repository
    releases: tuple[UpstreamRelease, ...]
    new: frozenset[str]
    notes: tuple[str, ...]


def ensure_release(repository_path: Path, versions: list[str], progress: Progress = silent) -> Repository:
    """The repository at `repository_path` with these releases in it; asks no index for those that are there.

    Waits for another run on the same repository. Raises StackctlError as `add_releases` does.
    """
    wanted = {parse_version(text) for text in versions}
    if _is_repository(repository_path):
        repository = Repository(repository_path)
        if wanted <= {release.version for release in list_releases(repository)}:
            return repository
    return add_releases(repository_path, versions, progress, wait=True, recheck=False).repository


def list_releases(repository: Repository) -> list[UpstreamRelease]:
    """Every tag v<version>, oldest version first."""
    output = repository.run("for-each-ref", f"--format={_FORMAT}", "refs/tags/v*")
    releases = []
    for record in output.decode(errors="replace").split("\0\x01\n")[:-1]:
        tag, target, peeled, message = record.lstrip("\n").split("\0", 3)
        if version := _version_of_tag(tag):
            wheel, sha256 = (_trailer(message, key) for key in ("Wheel", "Wheel-SHA256"))
            releases.append(UpstreamRelease(version, tag, peeled or target, wheel, sha256))
    return sorted(releases, key=lambda release: release.version)


def add_releases(
    path: Path, versions: Iterable[str], progress: Progress = silent, *, wait: bool = False, recheck: bool = True
) -> Added:
    """Add PyPI releases to the repository at `path`, which is created if it is missing or empty.

    All are added or none: every tag appears in one transaction at the end. A release that is there is
    left alone, and with `recheck` the index is asked whether its wheel is still the one recorded.
    Raises StackctlError, with nothing changed, for a wheel that cannot be trusted, a release that does
    not exist, an index that does not answer, a checksum that differs from the one recorded, a `path`
    that is no repository, and (unless `wait`) another run on the same repository.
    """
    wanted = sorted({parse_version(text) for text in versions})
    with _opened(path, wait) as repository, Downloads(progress) as downloads:
        _check_format(repository)
        there = {release.version: release for release in list_releases(repository)}
        _refuse_foreign(repository, [there[version] for version in wanted if version in there], recheck)
        jobs = _jobs(downloads, wanted, there, recheck)
        batch = _Batch(repository, there)
        notes = []
        with batch.incoming():
            for version, job in jobs:
                if version in there:
                    notes.append(_compare(there[version], job))
                else:
                    batch.add(version, job.result(), progress)
            notes.append(batch.publish())
        known = {release.version: release for release in list_releases(repository)}
    releases = tuple(known[version] for version in wanted)
    return Added(repository, releases, frozenset(batch.new), tuple(note for note in notes if note))


def _check_format(repository: Repository) -> None:
    """Object names are SHA-1 all through stackctl, and equal ids are what a release promises."""
    if repository.text("rev-parse", "--show-object-format") != "sha1":
        raise StackctlError("the repository names objects by SHA-256", str(repository.path), "make one with SHA-1 names")


def _jobs(
    downloads: Downloads, wanted: list[Version], there: dict[Version, UpstreamRelease], recheck: bool
) -> list[tuple[Version, Future[Any]]]:
    """What must be fetched, lowest release first, started in the background."""
    jobs: list[tuple[Version, Future[Any]]] = []
    for version in wanted:
        if version not in there:
            jobs.append((version, downloads.wheel(version)))
        elif recheck:
            jobs.append((version, downloads.current_sha256(version)))
    return jobs


def _compare(release: UpstreamRelease, job: Future[str]) -> str:
    """The note for a release that is there, or an error if the index has another wheel by now."""
    try:
        current = job.result()
    except NoAnswer:
        return f"{release.tag} is there already; the package index does not answer, so its checksum was not compared"
    if current != release.sha256:
        raise StackctlError(
            f"{release.tag}: the wheel's checksum differs from the one recorded\n"
            f"  recorded {release.sha256}\n  now      {current}",
            release.wheel,
            "tags never move; find out why your package index serves another file, or start another repository",
        )
    return f"{release.tag} is there already, from the same wheel"


def _refuse_foreign(repository: Repository, there: list[UpstreamRelease], recheck: bool) -> None:
    """A tag that records no wheel is upstream's own or somebody's: there is nothing to compare it with."""
    for release in there:
        if recheck and not release.sha256:
            raise StackctlError(
                f"the tag {release.tag} is there and was not made from a wheel",
                str(repository.path),
                "tags never move; use it as it is, or name another repository with --repo DIR",
            )


class _Batch:
    """Releases being added: objects wait in a folder of their own until all are in, then tags appear at once."""

    def __init__(self, repository: Repository, there: dict[Version, UpstreamRelease]) -> None:
        self._repository = repository
        self._commits = {version: release.commit for version, release in there.items()}
        self._folder = Path()
        self.new: dict[str, str] = {}

    @contextmanager
    def incoming(self) -> Iterator[None]:
        """A folder for new objects, as receive-pack has one; gone afterwards, whatever happened."""
        for left in self._repository.git_dir.glob(f"{_INCOMING}*"):
            shutil.rmtree(left, ignore_errors=True)
        self._folder = Path(tempfile.mkdtemp(prefix=_INCOMING, dir=self._repository.git_dir))
        try:
            yield
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def add(self, version: Version, path: Path, progress: Progress) -> None:
        """Write the objects of one release; its parent is the next lower one that is there."""
        version = parse_wheel_filename(path.name)[1]  # "0.5.22.0", as one may ask, is 0.5.22 upstream
        lower = [other for other in self._commits if other < version]
        parent = self._commits[max(lower)] if lower else None
        commit = self._import(version, Wheel(path), parent, progress)
        self._commits[version] = commit
        self.new[_tag(version)] = commit

    def publish(self) -> str:
        """Move the objects into the repository, then make all tags and move `main` in one transaction.

        Returns a note if `main` was left where it is.
        """
        objects = self._repository.git_dir / "objects" / "pack"
        objects.mkdir(exist_ok=True)
        # The index last: Git takes a pack for present when it sees its .idx.
        for file in sorted((self._folder / "pack").glob("pack-*"), key=lambda file: file.suffix == ".idx"):
            os.replace(file, objects / file.name)
        updates = [(f"refs/tags/{tag}", commit, _NONE) for tag, commit in self.new.items()]
        main, note = self._main()
        self._repository.update_refs(updates + main)
        if main:
            self._repository.run("config", "--local", _OURS, "true")
        return note

    def _main(self) -> tuple[list[tuple[str, str, str]], str]:
        """How `main` moves to the highest release, if it does, and a note if it should and does not."""
        newest, current = self._commits[max(self._commits)], _main_at(self._repository)
        if current == newest or not _is_ours(self._repository):
            return [], ""
        if current is not None and current not in self._commits.values():
            return [], "main has commits of its own and was left where it is"
        if _is_checked_out(self._repository, _MAIN):
            return [], "main is checked out and was left where it is"
        return [(_MAIN, newest, current or _NONE)], ""

    def _import(self, version: Version, wheel: Wheel, parent: str | None, progress: Progress) -> str:
        """Stream the wheel through `git fast-import`, which runs no filter and no hook."""
        with _FastImport(self._repository, self._folder) as stream:
            entries: list[tuple[str, int, str]] = []
            left_out: list[str] = []
            for done, file in enumerate(wheel.texts(left_out)):
                progress(f"import {version}", done, wheel.count)
                entries.append((file.mode, stream.blob(file.data), file.path))
            if not entries:
                raise StackctlError("the wheel holds no text file", str(wheel.path))
            commit = stream.commit(entries, _message(version, wheel, left_out), wheel.date, parent)
        progress(f"import {version}", wheel.count, wheel.count)
        return commit


class _FastImport:
    """One `git fast-import` whose objects go to `folder`; no ref is left behind, and a kill leaves nothing."""

    def __init__(self, repository: Repository, folder: Path) -> None:
        self._git_dir = repository.git_dir
        objects = self._git_dir / "objects"
        self._process = subprocess.Popen(
            # Never loose objects: only packs are moved into the repository. Deltas between
            # unrelated neighbours cost time and save nothing.
            ["git", *_SAFE, "-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", "--depth=0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=repository.path,
            env={
                **os.environ,
                **_ENVIRONMENT,
                "GIT_DIR": str(self._git_dir),
                "GIT_OBJECT_DIRECTORY": str(folder),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(str(objects)),
            },
        )
        self._stdin, self._stdout, self._stderr = (
            cast("IO[bytes]", pipe) for pipe in (self._process.stdin, self._process.stdout, self._process.stderr)
        )
        self._marks = 0

    def __enter__(self) -> _FastImport:
        self._write(b"feature done\n")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._stdin, self._stdout, self._stderr):
            try:
                pipe.close()
            except OSError:
                continue  # what could not be flushed to a process that is gone
        for report in self._git_dir.glob(f"fast_import_crash_{self._process.pid}"):
            report.unlink()

    def blob(self, data: bytes) -> int:
        """Send one file's bytes as they are; the mark that names it."""
        self._marks += 1
        self._write(b"blob\nmark :%d\n" % self._marks, _data(data))
        return self._marks

    def commit(self, entries: list[tuple[str, int, str]], message: str, date: int, parent: str | None) -> str:
        """Send the commit of (mode, mark, path) entries, end the stream, and return the commit's id."""
        head = f"commit {_SCRATCH_REF}\nmark :{self._marks + 1}\n"
        head += "".join(f"{role} {_AUTHOR} {date} +0000\n" for role in ("author", "committer"))
        self._write(head.encode(), _data(message.encode()), f"from {parent}\n".encode() if parent else b"")
        self._write(b"deleteall\n")
        for mode, mark, path in entries:
            self._write(f"M {mode} :{mark} {_quoted(path)}\n".encode())
        # The stream must name a ref; setting it to nothing again leaves none.
        self._write(f"\nget-mark :{self._marks + 1}\nreset {_SCRATCH_REF}\nfrom {_NONE}\n\ndone\n".encode())
        return self._finish().decode().strip()

    def _write(self, *pieces: bytes) -> None:
        try:
            for piece in pieces:
                self._stdin.write(piece)
        except OSError:
            self._finish()

    def _finish(self) -> bytes:
        """Wait for Git and return its output; StackctlError with its own words if it failed."""
        try:
            output, words = self._process.communicate()
        except OSError:
            output, words = self._stdout.read(), self._stderr.read()
        if self._process.wait() or not output:
            raise _import_error(self._git_dir, words.decode(errors="replace"), self._process.returncode)
        return output


def _import_error(git_dir: Path, words: str, code: int) -> StackctlError:
    if "No space left on device" in words or "Out of diskspace" in words:
        return _disk_full(str(git_dir))
    fatal = [line for line in words.splitlines() if line.startswith(("fatal:", "error:"))]
    return StackctlError(f"git fast-import failed: {(fatal or [f'exit {code}'])[0]}; nothing was added", str(git_dir))


def _disk_full(where: str) -> StackctlError:
    return StackctlError("the disk is full; nothing was added", where, "make room and run it again")


def _data(data: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(data), data)


def _quoted(text: str) -> str:
    """A path as fast-import and Git's path lists read it: in quotes, so that any character may be in it."""
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = text.replace(plain, escaped)
    return f'"{text}"'


def _message(version: Version, wheel: Wheel, left_out: list[str]) -> str:
    """The commit message: nothing in it that the wheel does not say."""
    lines = [f"{PACKAGE} {version}", "", "The text files of the wheel on PyPI, laid out as upstream's repository."]
    if left_out:
        names = [re.sub(r"[^ -~]", "?", name) for name in left_out[:_LISTED]]
        lines += ["", "Left out, compiled or not text:", *(f"- {name}" for name in names)]
        lines += [f"- and {len(left_out) - _LISTED} more"] if len(left_out) > _LISTED else []
    lines += ["", f"Wheel: {wheel.path.name}", f"Wheel-SHA256: {wheel.sha256}", ""]
    return "\n".join(lines)


def _trailer(message: str, key: str) -> str:
    """A trailer's value; only the last paragraph counts."""
    last = message.rstrip("\n").rpartition("\n\n")[2]
    found = re.search(rf"^{key}: (\S+)$", last, re.MULTILINE)
    return found[1] if found else ""


def _tag(version: Version) -> str:
    return f"v{version}"


def _version_of_tag(tag: str) -> Version | None:
    try:
        return Version(tag)
    except InvalidVersion:
        return None


@contextmanager
def _opened(path: Path, wait: bool) -> Iterator[Repository]:
    """The repository at `path`, locked; one that was created here is removed again on failure."""
    try:
        created, folders = _create(path)
        repository = Repository(path)
        if path.resolve() not in (repository.path.resolve(), repository.git_dir.resolve()):
            raise StackctlError("not a Git repository of its own", str(path), f"did you mean {repository.path}?")
        with _locked(repository, wait):
            try:
                yield repository
            except BaseException:
                # Under the lock, and only while it is empty: another run may have filled it meanwhile.
                if created and not _has_refs(repository):
                    _remove(path, folders)
                raise
    except OSError as error:
        where = str(error.filename or path)
        if error.errno == errno.ENOSPC:
            raise _disk_full(where) from None
        raise StackctlError(error.strerror or str(error), where) from None


def _create(path: Path) -> tuple[bool, list[Path]]:
    """Make a repository of a missing or empty folder: whether it did, and the folders made, innermost first."""
    if path.exists() and not path.is_dir():
        raise StackctlError("not a folder", str(path))
    # A killed `git init` leaves a .git without HEAD; running it again completes it.
    names = {entry.name for entry in path.iterdir()} if path.exists() else set()
    if names - {".git"} and not _is_repository(path):
        raise StackctlError("not empty and not a Git repository", str(path), "name another folder with --repo DIR")
    if _is_repository(path) and not (names == {".git"} and _is_half_made(path / ".git")):
        return False, []
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        Repository.create(path)
    except BaseException:
        _remove(path, missing)
        raise
    return True, missing


def _is_repository(path: Path) -> bool:
    """Whether `path` itself is a repository: one above it does not count."""
    return (path / ".git").exists() or all((path / name).exists() for name in ("HEAD", "objects", "refs"))


def _is_half_made(folder: Path) -> bool:
    return folder.is_dir() and not (folder / "HEAD").exists()


def _remove(path: Path, folders: list[Path]) -> None:
    """Take back what `_create` made; a folder that holds anything else stays."""
    shutil.rmtree(path / ".git", ignore_errors=True)
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def _locked(repository: Repository, wait: bool) -> Iterator[None]:
    """Hold the repository against a second run; the lock goes with the process, however that ends."""
    lock, where = repository.git_dir / _LOCK, str(repository.path)
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "wait until it has ended and run this again"
            raise StackctlError("another `stackctl upstream add` is at work on this repository", where, hint) from None
        # A run that failed takes back the repository that it made, and with it the file that was waited for.
        if not lock.exists() or not os.path.samestat(os.fstat(file.fileno()), lock.stat()):
            raise StackctlError("another run removed this repository meanwhile", where, "run this again")
        yield


def _has_refs(repository: Repository) -> bool:
    return bool(repository.run("for-each-ref", "--count=1"))


def _is_ours(repository: Repository) -> bool:
    """Whether `main` is stackctl's to move: the repository was made here, or held nothing before."""
    try:
        return repository.text("config", "--local", "--bool", _OURS) == "true"
    except StackctlError:
        bare = repository.path == repository.git_dir
        return not _has_refs(repository) and (bare or all(each.name == ".git" for each in repository.path.iterdir()))


def _main_at(repository: Repository) -> str | None:
    """The commit of `main`; None if there is no such branch."""
    return repository.resolve(_MAIN) if repository.exists(_MAIN) else None


def _is_checked_out(repository: Repository, branch: str) -> bool:
    """Whether a work tree stands on `branch`; one without an index was never checked out."""
    folder = repository.branch_checkouts().get(branch)
    if folder is None:
        return False
    return folder.resolve() != repository.path.resolve() or (repository.git_dir / "index").exists()
