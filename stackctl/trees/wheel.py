"""One wheel, read as hostile input: which of its files are text, and where they lie in upstream's repository."""

from __future__ import annotations

import calendar
import hashlib
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stackctl.model.errors import StackctlError

# Upstream keeps its package below python/; what the wheel has at top level goes there.
_ROOT = "python/"
_METADATA = (".dist-info", ".data")

_MAX_TOTAL = 4 << 30  # bytes unpacked: sixty times the largest release so far
_MAX_TEXT = 256 << 20  # bytes of one text file, which is held in memory
_MAX_ENTRIES = 200_000
_MAX_RATIO = 200  # source packs 3:1 as a whole, 30:1 at the most; a bomb packs 1,000:1
_RATIO_FLOOR = 64 << 20  # an archive smaller than this is no bomb, whatever its ratio
_MAX_PATH = 4_000

_COMPILED = (".so", ".pyc", ".pyo", ".co", ".a", ".o", ".pyd", ".dll", ".dylib", ".cubin", ".hsaco", ".fatbin")
_VERSIONED_LIBRARY = re.compile(r"\.so(\.\d+)+$")
_HEAD = 64 << 10
_CONTROL = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
# Code points that HFS+ ignores in names: `.g<U+200C>it` is `.git` there (CVE-2014-9390).
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")

_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    UnicodeDecodeError,
    ValueError,
)


@dataclass(frozen=True)
class WheelFile:
    """One text file of a wheel: its path in upstream's repository, its Git mode, its bytes."""

    path: str
    mode: str
    data: bytes


class Wheel:
    """A wheel whose names, kinds and sizes were checked when it was opened.

    Raises StackctlError for a path outside the wheel's root, a symlink or device, a name that is
    there twice, a zip that is broken, and one that unpacks to far more than a release can be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sha256 = sha256_of(path)
        self._members: dict[str, zipfile.ZipInfo] = {}
        with _open(path) as archive:
            members = archive.infolist()
            _check_size(path, members)
            for member in members:
                self._admit(member)
        self._check_folders()
        self.date = max((_seconds(member) for member in members), default=0)

    @property
    def count(self) -> int:
        """How many files there are, text or not, without the wheel's own metadata."""
        return len(self._members)

    def texts(self, left_out: list[str]) -> Iterator[WheelFile]:
        """Every text file, one in memory at a time; the paths of the others are added to `left_out`."""
        with _open(self.path) as archive:
            for path, member in self._members.items():
                data = None if _is_compiled(path) else self._text(archive, member)
                if data is None:
                    left_out.append(path)
                else:
                    yield WheelFile(path, _mode(member), data)

    def _text(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes | None:
        """The bytes of a text file; None for another, of which only the head may have been unpacked."""
        with archive.open(member) as stream:
            head = stream.read(_HEAD)
            if b"\0" in head:
                return None
            if member.file_size > _MAX_TEXT:
                raise self._refuse(f"holds a text file of {member.file_size:,} bytes", member)
            data = head + stream.read()
        if len(data) != member.file_size:
            raise self._refuse("is broken: a file is shorter than declared", member)
        return data if is_text(data) else None

    def _admit(self, member: zipfile.ZipInfo) -> None:
        """Check one entry and remember it, unless it is a folder or the wheel's own metadata."""
        name = member.orig_filename
        if reason := unsafe_path(name.removesuffix("/")):
            raise self._refuse(f"holds a path that {reason}", member)
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise self._refuse(f"holds {_KINDS.get(kind, 'a special file')}", member)
        if name.endswith("/"):
            return
        if kind == stat.S_IFDIR:
            raise self._refuse("holds a folder that is named like a file", member)
        if member.flag_bits & 1:
            raise self._refuse("holds an encrypted file", member)
        if _ROOT + name in self._members:
            raise self._refuse("holds a name twice", member)
        # Metadata is remembered too, so that its duplicates and folders are checked; see _check_folders.
        self._members[_ROOT + name] = member

    def _check_folders(self) -> None:
        """Refuse a name that is a file and a folder at once; then let the wheel's own metadata go."""
        folders = {path[:at] for path in self._members for at, letter in enumerate(path) if letter == "/"}
        for path in folders & self._members.keys():
            raise self._refuse("holds a name that is a file and a folder", self._members[path])
        self._members = {path: member for path, member in self._members.items() if not _is_metadata(path)}

    def _refuse(self, what: str, member: zipfile.ZipInfo) -> StackctlError:
        """The error for one entry; the name is shown escaped."""
        return _refused(self.path, f"the wheel {what}: {member.orig_filename!r}")


_KINDS = {stat.S_IFLNK: "a symlink", stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def unsafe_path(name: str) -> str | None:
    """Why an archive may not hold this path, to follow "a path that"; None if it may."""
    if not name or name.startswith("/") or re.match(r"[A-Za-z]:", name) or ".." in re.split(r"[/\\]", name):
        return "leaves the wheel's root"
    if "\\" in name or "\0" in name:
        return "has a backslash or a NUL in it"
    if len(name.encode(errors="surrogatepass")) > _MAX_PATH:
        return "is too long"
    for component in name.split("/"):
        if component in ("", "."):
            return "has an empty component"
        if _is_dot_git(component):
            return "enters a .git folder"
    return None


def is_text(data: bytes) -> bool:
    """Whether bytes are text: no NUL, and UTF-8 or at least free of control characters."""
    if b"\0" in data or data.startswith(b"\x7fELF"):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        # Latin-1 and its like stay; a small image or pickle without a NUL does not.
        return not _CONTROL.search(data)
    return True


def _is_dot_git(component: str) -> bool:
    """Whether some file system takes this name for `.git` (case, HFS+, NTFS short names and streams)."""
    plain = _IGNORED_BY_HFS.sub("", component).split(":")[0].rstrip(" .").lower()
    return plain in (".git", "git~1")


def _is_compiled(path: str) -> bool:
    return path.lower().endswith(_COMPILED) or bool(_VERSIONED_LIBRARY.search(path))


def _is_metadata(path: str) -> bool:
    return path.removeprefix(_ROOT).split("/")[0].endswith(_METADATA)


def _mode(member: zipfile.ZipInfo) -> str:
    """The Git mode: executable if its owner may run it, as Git itself decides."""
    return "100755" if (member.external_attr >> 16) & stat.S_IXUSR else "100644"


def _seconds(member: zipfile.ZipInfo) -> int:
    """The entry's time as seconds since 1970. Zip knows no zone: read as UTC, the same everywhere."""
    year, month, day, *clock = member.date_time
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return 0
    return calendar.timegm((year, month, day, *clock, 0, 0, 0))


def _check_size(path: Path, members: list[zipfile.ZipInfo]) -> None:
    """Refuse a bomb by what its directory declares; reading stops at the declared sizes."""
    unpacked = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    actual = path.stat().st_size
    if len(members) > _MAX_ENTRIES:
        raise _refused(path, f"the wheel holds {len(members):,} files, which no release does")
    if packed > actual:
        raise _refused(path, "the wheel's files overlap, as in a zip bomb")
    if unpacked > _MAX_TOTAL or (unpacked > _RATIO_FLOOR and unpacked > _MAX_RATIO * actual):
        raise _refused(path, f"the wheel of {actual:,} bytes unpacks to {unpacked:,}, as a zip bomb does")


@contextmanager
def _open(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive; whatever `zipfile` raises for bytes that are not a whole zip becomes one error."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except _BROKEN as error:
        raise _refused(path, f"the wheel is broken: {error}") from None


def _refused(path: Path, message: str) -> StackctlError:
    return StackctlError(message, str(path), "nothing was added; tell whoever runs your package index")
