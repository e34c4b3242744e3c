"""Small wheels made by hand, good and hostile, and the places they are served from."""

from __future__ import annotations

import hashlib
import stat
import zipfile
from pathlib import Path

STAMP = (2026, 1, 2, 3, 4, 6)
STAMP_SECONDS = 1767323046
PURE = "py3-none-any"

Entry = tuple[str | zipfile.ZipInfo, bytes]


def entry(name: str, data: bytes = b"x = 1\n", mode: int = stat.S_IFREG | 0o644, stamp: tuple = STAMP) -> Entry:
    """One entry; the name is written as it is, NUL and backslash included."""
    info = zipfile.ZipInfo("name", stamp)
    info.filename = name
    info.external_attr = mode << 16
    info.create_system = 3
    info.compress_type = zipfile.ZIP_DEFLATED
    return info, data


def make_wheel(folder: Path, version: str, *entries: Entry, tags: str = PURE) -> Path:
    """A wheel of sglang with these entries and the metadata that pip wants."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"sglang-{version}-{tags}.whl"
    info = f"sglang-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: sglang\nVersion: {version}\n".encode()
    wheel = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tags}\n".encode()
    extra = [entry(f"{info}/METADATA", metadata), entry(f"{info}/WHEEL", wheel), entry(f"{info}/RECORD", b"")]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in [*entries, *extra]:
            archive.writestr(name, data)
    return path


def release(folder: Path, version: str, *more: Entry, tags: str = PURE) -> Path:
    """A plain good release: a version file and whatever else is given."""
    files = [entry("sglang/__init__.py", b""), entry("sglang/version.py", f'__version__ = "{version}"\n'.encode())]
    return make_wheel(folder, version, *files, *more, tags=tags)


def shelve(cache: Path, wheel: Path, version: str) -> None:
    """Put a wheel into the cache folder, as a download would: no pip is needed then."""
    shelf = cache / "wheels" / version
    shelf.mkdir(parents=True, exist_ok=True)
    data = wheel.read_bytes()
    (shelf / wheel.name).write_bytes(data)
    (shelf / f"{wheel.name}.sha256").write_text(f"{hashlib.sha256(data).hexdigest()}  {wheel.name}\n")


def simple_index(folder: Path, wheels: dict[Path, str]) -> str:
    """A package index of local files that states these SHA-256 values; its URL."""
    page = folder / "sglang" / "index.html"
    page.parent.mkdir(parents=True)
    links = (f'<a href="{wheel.as_uri()}#sha256={sha256}">{wheel.name}</a>' for wheel, sha256 in wheels.items())
    page.write_text("<!DOCTYPE html><html><body>" + "".join(links) + "</body></html>")
    return folder.as_uri()


def corrupt(path: Path) -> None:
    """Flip a byte of the first entry's packed bytes, leaving the directory as it is."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        first = next(info for info in archive.infolist() if info.compress_size > 8)
    data[first.header_offset + 30 + len(first.orig_filename.encode()) + 4] ^= 0xFF
    path.write_bytes(data)


def truncate(path: Path) -> None:
    """Leave the first half of the file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def redeclare(path: Path, name: str, size: int, packed: bool = False) -> None:
    """Declare another size for one entry, unpacked or packed, in its header and in the directory."""
    data = bytearray(path.read_bytes())
    for signature, size_at, name_at in ((b"PK\x03\x04", 22, 30), (b"PK\x01\x02", 24, 46)):
        at = data.find(signature)
        while at >= 0:
            if data[at + name_at : at + name_at + len(name)] == name.encode():
                start = at + size_at - 4 * packed
                data[start : start + 4] = size.to_bytes(4, "little")
            at = data.find(signature, at + 4)
    path.write_bytes(data)
