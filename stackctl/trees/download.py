"""Wheels of the package index, fetched through pip and kept in the cache folder.

Through pip, so that a user's own index, proxy, certificates and HTTP cache hold. One fixed platform's
wheel is asked for whatever runs here, so that everybody gets the same file.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from stackctl.model.errors import StackctlError
from stackctl.trees.cache import cache_folder
from stackctl.trees.wheel import sha256_of

PACKAGE = "sglang"

Progress = Callable[[str, int, int], None]
"""Called with a label, the steps done and their number (0: unknown); done == number > 0 ends the label."""

# pip matches manylinux_2_N by name, with no notion of "or older": every N is listed, the newest first.
_PLATFORMS = [
    *(f"manylinux_2_{minor}_x86_64" for minor in range(60, 4, -1)),
    "manylinux2014_x86_64",
    "manylinux2010_x86_64",
    "manylinux1_x86_64",
    "linux_x86_64",
]
# Releases have wheels for Python 3.11 or for any. The others are for the day upstream leaves 3.11 behind.
_PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))

_NO_MATCH = re.compile(r"\(from versions: ([^)]*)\)")
_OFFLINE = re.compile(
    r"Retrying \(|Could not fetch URL|Max retries exceeded|ConnectionError|ConnectTimeout|Read timed out"
    r"|Name or service not known|Temporary failure in name resolution|ProxyError|SSLError"
)
_STALE = 24 * 3600  # seconds after which a killed run's download folder is swept away


class NoAnswer(StackctlError):
    """The package index could not be reached."""


def parse_version(text: str) -> Version:
    """A release as a person writes it ("0.5.23", "v0.5.15.post1"). Raises StackctlError for anything else."""
    try:
        return Version(text)
    except InvalidVersion:
        raise StackctlError(f"{text!r} is not a release", hint="write it as 0.5.23 or 0.5.15.post1") from None


def silent(label: str, done: int, total: int) -> None:
    """The progress of whoever watches nothing."""


def cached_wheel(version: Version) -> Path | None:
    """The wheel in the cache folder, if it is there and still has the checksum written beside it."""
    for note in sorted(_shelf(version).glob("*.whl.sha256")):
        wheel = note.with_suffix("")
        try:
            if note.read_text("ascii").split()[:1] == [sha256_of(wheel)]:
                return wheel
        except (OSError, UnicodeDecodeError):
            continue
    return None


class Downloads:
    """Wheels fetched in the background, two at a time; leaving the block ends every pip still running."""

    def __init__(self, progress: Progress = silent) -> None:
        self._progress = progress
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="download")
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def __enter__(self) -> Downloads:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopped = True
        for process in list(self._running):
            process.kill()
        self._pool.shutdown(cancel_futures=True)

    def wheel(self, version: Version) -> Future[Path]:
        """The release's wheel, from the cache folder or else from the index."""
        return self._pool.submit(self._wheel, version)

    def current_sha256(self, version: Version) -> Future[str]:
        """The SHA-256 of the wheel that the index has now, asked of the index even if one is cached."""
        return self._pool.submit(self._current_sha256, version)

    def _wheel(self, version: Version) -> Path:
        if found := cached_wheel(version):
            return found
        with _scratch() as folder:
            self._fetch(version, Path(folder))
            return _shelve(version, Path(folder))

    def _current_sha256(self, version: Version) -> str:
        with _scratch() as folder:
            return sha256_of(self._fetch(version, Path(folder)))

    def _fetch(self, version: Version, folder: Path) -> Path:
        """Download into `folder`, for the first Python that the release has a wheel for."""
        label = f"fetch {version}"
        self._progress(label, 0, 0)
        seen: set[Version] = set()
        try:
            for python in _PYTHONS:
                code, words = self._pip(_arguments(version, python, folder), folder)
                if code == 0:
                    return _only_wheel(version, folder)
                match = _NO_MATCH.search(words)
                if not match or _OFFLINE.search(words):
                    raise _pip_error(version, words)
                seen |= {Version(each) for each in match[1].split(", ") if each != "none"}
                if seen and version < max(seen):
                    break  # not a later release than this Python can have: there is none
            raise _no_such_release(version, seen)
        finally:
            self._progress(label, 1, 1)

    def _pip(self, arguments: list[str], folder: Path) -> tuple[int, str]:
        """Run pip; its exit code and all it said. Its own scratch files go to `folder`."""
        # The settings are the user's; only how much pip says and where it unpacks are ours.
        ours = {"PIP_QUIET": "0", "PIP_VERBOSE": "0", "PIP_REQUIRE_VIRTUALENV": "0", "NO_COLOR": "1"}
        process = subprocess.Popen(
            [*pip_command(), "download", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **ours, "TMPDIR": str(folder)},
            text=True,
            errors="replace",
        )
        self._running.add(process)
        try:
            if self._stopped:
                process.kill()
            words, _ = process.communicate()
        finally:
            self._running.discard(process)
        return process.returncode, words


def pip_command() -> list[str]:
    """How to run pip here: this Python's own, the one it ships for ensurepip, or the one on the PATH.

    uv's environments have no pip. Raises StackctlError if there is none at all.
    """
    # -P: a folder `pip` or a file `logging.py` below the current folder must not be imported.
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-P", "-m", "pip"]
    if bundled := _bundled_pip():
        return [sys.executable, "-P", str(bundled / "pip")]
    if found := shutil.which("pip3") or shutil.which("pip"):
        return [found]
    raise StackctlError(
        "this Python has no pip, which fetches the releases",
        sys.executable,
        "python -m ensurepip, or: uv pip install pip, or: apt install python3-pip",
    )


def _bundled_pip() -> Path | None:
    """The pip wheel that ensurepip would install; Python runs it from the zip."""
    spec = importlib.util.find_spec("ensurepip")
    folders = [sysconfig.get_config_var("WHEEL_PKG_DIR")]
    if spec and spec.origin:
        folders.append(os.path.join(os.path.dirname(spec.origin), "_bundled"))
    wheels = [wheel for folder in folders if folder for wheel in sorted(Path(folder).glob("pip-*.whl"))]
    return wheels[0] if wheels else None


def _arguments(version: Version, python: tuple[int, int], folder: Path) -> list[str]:
    major, minor = python
    return [
        "--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--progress-bar=off",
        "--dest", str(folder),
        f"--python-version={major}.{minor}", "--implementation=cp",
        f"--abi=cp{major}{minor}", "--abi=abi3", "--abi=none",
        *(f"--platform={platform}" for platform in _PLATFORMS),
        f"{PACKAGE}=={version}",
    ]  # fmt: skip


def _only_wheel(version: Version, folder: Path) -> Path:
    """The file that pip left, which must be what was asked for: its name becomes a tag and a record."""
    wheels = list(folder.glob("*.whl"))
    try:
        (wheel,) = wheels
        name, found, _, _ = parse_wheel_filename(wheel.name)
    except (ValueError, InvalidWheelFilename):
        raise StackctlError(f"pip left {len(wheels)} files for {PACKAGE} {version}, not one wheel") from None
    if (name, found) != (PACKAGE, version):
        raise StackctlError(f"pip left {wheel.name} for {PACKAGE} {version}")
    return wheel


def _pip_error(version: Version, words: str) -> StackctlError:
    """One clear error for what pip said."""
    where = f"{PACKAGE} {version}"
    if "No space left on device" in words or "Errno 28" in words:
        return StackctlError("the disk is full", str(_wheels()), "make room, or set STACKCTL_CACHE to another folder")
    if "DO NOT MATCH THE HASHES" in words:
        return StackctlError(
            "the wheel's checksum differs from the one that the package index states", where,
            "nothing was added; try again, then tell whoever runs your package index",
        )  # fmt: skip
    if _OFFLINE.search(words):
        return NoAnswer("the package index does not answer", where, "check the network and: pip config list")
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return StackctlError(f"pip could not fetch it: {(errors or lines or ['it was killed'])[-1]}", where)


def _no_such_release(version: Version, seen: set[Version]) -> StackctlError:
    """The error for a release that the index does not have, with the nearest ones that it has."""
    known = sorted(seen)
    if not known:
        return StackctlError(f"the package index has no wheel of {PACKAGE}", hint="check: pip config list")
    known = [each for each in known if version.is_prerelease or not each.is_prerelease] or known
    near = [each for each in known if each < version][-2:] + [each for each in known if each > version][:2]
    return StackctlError(
        f"there is no wheel of {PACKAGE} {version}",
        hint=f"the nearest are {', '.join(map(str, near))}; the newest is {known[-1]}",
    )


def _wheels() -> Path:
    return cache_folder() / "wheels"


def _shelf(version: Version) -> Path:
    """The folder of one release: its wheel and `<wheel>.sha256`, as sha256sum writes it."""
    return _wheels() / str(version)


def _scratch() -> tempfile.TemporaryDirectory[str]:
    """A new folder beside the shelves, so that a finished download is renamed into place."""
    wheels = _wheels()
    wheels.mkdir(parents=True, exist_ok=True)
    for left in wheels.glob(".fetch-*"):
        if time.time() - left.stat().st_mtime > _STALE:
            shutil.rmtree(left, ignore_errors=True)
    return tempfile.TemporaryDirectory(prefix=".fetch-", dir=wheels, ignore_cleanup_errors=True)


def _shelve(version: Version, folder: Path) -> Path:
    """Move the one wheel in `folder` to its shelf: note first, wheel last, so that a kill leaves a miss."""
    wheel = _only_wheel(version, folder)
    shelf = _shelf(version)
    shelf.mkdir(exist_ok=True)
    note = folder / f"{wheel.name}.sha256"
    note.write_text(f"{sha256_of(wheel)}  {wheel.name}\n", "ascii")
    os.replace(note, shelf / note.name)
    os.replace(wheel, shelf / wheel.name)
    return shelf / wheel.name
