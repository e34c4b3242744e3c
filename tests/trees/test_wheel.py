"""A wheel is read as hostile input: what is kept, what is left out, what is refused."""

from __future__ import annotations

import stat
import warnings

import pytest

from stackctl.model.errors import StackctlError
from stackctl.trees import wheel as wheel_module
from stackctl.trees.wheel import Wheel, is_text, unsafe_path
from tests.trees.wheels import STAMP_SECONDS, corrupt, entry, make_wheel, redeclare, truncate

LINK = stat.S_IFLNK | 0o777


def read(path):
    left_out = []
    return {file.path: file for file in Wheel(path).texts(left_out)}, left_out


def make(folder, *entries):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of the duplicates that are wanted here
        return make_wheel(folder, "1.0", *entries)


def test_text_files_go_below_python_and_metadata_does_not(tmp_path):
    names = [
        "sglang/a.py", "sglang/k/E=8,N=2 (H 100).json", "sglang/x.cu", "sglang/x.cuh", "sglang/t.jinja2",
        "sglang/LICENSE", "sglang/new\nline.txt", 'sglang/"q".md', "sglang/.gitignore", "tools/run.sh", "top.py",
        "sglang/naïve.py", "sglang/tab\there.csv",
    ]  # fmt: skip
    files, left_out = read(make(tmp_path, *(entry(name) for name in names), entry("sglang-1.0.data/scripts/s", b"s")))
    assert set(files) == {f"python/{name}" for name in names}
    assert not left_out


def test_bytes_are_kept_as_they_are(tmp_path):
    data = "\ufeffa = 'é'\r\nb = 2\r\n".encode() + b"\x0c\n"
    files, _ = read(make(tmp_path, entry("sglang/a.py", data), entry("sglang/latin.txt", "é".encode("latin-1"))))
    assert files["python/sglang/a.py"].data == data
    assert "python/sglang/latin.txt" in files


def test_compiled_files_are_left_out_by_name_and_by_content(tmp_path):
    binaries = {
        "sglang/a.cpython-311-x86_64-linux-gnu.so": b"text",
        "sglang/lib.so.1.2": b"text",
        "sglang/a.pyc": b"text",
        "sglang/a.CO": b"text",
        "sglang/a.a": b"text",
        "sglang/a.o": b"text",
        "sglang/plain": b"\x7fELF" + b"1" * 20,
        "sglang/late.json": b"a" * 100_000 + b"\0",
        "sglang/utf16.txt": "text".encode("utf-16"),
        "sglang/tiny.gz": b"\x1f\x8b\x08\x01\xff\xfe",
    }
    files, left_out = read(make(tmp_path, *(entry(*item) for item in binaries.items()), entry("sglang/a.so.py")))
    assert set(files) == {"python/sglang/a.so.py"}
    assert set(left_out) == {f"python/{name}" for name in binaries}


def test_the_owners_execute_bit_is_kept(tmp_path):
    modes = {"a": 0o755, "b": 0o644, "c": 0o664, "d": 0o611}
    entries = (entry(f"sglang/{name}", mode=stat.S_IFREG | mode) for name, mode in modes.items())
    files, _ = read(make(tmp_path, *entries, entry("sglang/none", mode=0)))
    assert [file.mode for file in files.values()] == ["100755", "100644", "100644", "100644", "100644"]


def test_folders_are_passed_over_and_the_newest_entry_dates_the_wheel(tmp_path):
    path = make(tmp_path, entry("sglang/", b"", stat.S_IFDIR | 0o755), entry("sglang/a.py", stamp=(1999, 1, 1, 0, 0, 0)))
    assert list(read(path)[0]) == ["python/sglang/a.py"]
    assert Wheel(path).date == STAMP_SECONDS
    assert Wheel(path).count == 1


@pytest.mark.parametrize(
    "name",
    [
        "../x", "sglang/../../x", "/etc/x", "//x", "C:/x", "c:x", "sglang\\x", "..\\x", "sglang/a\0b", "sglang//x",
        "./x", "sglang/./x", "sglang/.git/hooks/x", ".git/config", ".GIT/config", "sglang/.gIt", ".git./x", ".git /x",
        "git~1/x", ".g\u200cit/x", ".git:stream/x", "x" * 5000, "sglang-1.0.dist-info/../../x", "..",
    ],
)  # fmt: skip
def test_a_path_outside_the_root_is_refused(tmp_path, name):
    with pytest.raises(StackctlError, match="holds a path that"):
        Wheel(make(tmp_path, entry(name)))


@pytest.mark.parametrize("name", ["../x/", "/", ".git/", "a//"])
def test_a_folder_outside_the_root_is_refused_too(tmp_path, name):
    with pytest.raises(StackctlError, match="holds a path that"):
        Wheel(make(tmp_path, entry(name, b"", stat.S_IFDIR | 0o755)))


@pytest.mark.parametrize("name", ["a..b/c", "...", ".github/x", "digit~1", ".gitignore", "ab:c", "a/C:x", "-x"])
def test_odd_but_harmless_names_are_not(name):
    assert unsafe_path(name) is None


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([entry("sglang/link", b"/etc/passwd", LINK)], "a symlink"),
        ([entry("sglang/pipe", b"", stat.S_IFIFO | 0o644)], "a pipe"),
        ([entry("sglang/dev", b"", stat.S_IFCHR | 0o644)], "a device"),
        ([entry("sglang/a.py"), entry("sglang/a.py", b"y = 2\n")], "a name twice"),
        ([entry("sglang/a"), entry("sglang/a/b.py")], "a file and a folder"),
        ([entry("sglang/a/b.py"), entry("sglang/a")], "a file and a folder"),
        ([entry("sglang/a", b"", stat.S_IFDIR | 0o755)], "named like a file"),
    ],
)
def test_what_is_no_plain_file_or_there_twice_is_refused(tmp_path, entries, words):
    with pytest.raises(StackctlError, match=words):
        Wheel(make(tmp_path, *entries))


def test_a_file_that_is_no_zip_is_refused(tmp_path):
    (tmp_path / "a.whl").write_bytes(b"PK\x03\x04 but no more")
    with pytest.raises(StackctlError, match="broken"):
        Wheel(tmp_path / "a.whl")


def test_a_truncated_wheel_is_refused(tmp_path):
    path = make(tmp_path, entry("sglang/a.py", b"x = 1\n" * 500))
    truncate(path)
    with pytest.raises(StackctlError, match="broken"):
        Wheel(path)


def test_corrupt_bytes_are_refused(tmp_path):
    path = make(tmp_path, entry("sglang/a.py", bytes(range(32, 127)) * 20))
    corrupt(path)
    with pytest.raises(StackctlError, match="broken"):
        read(path)


@pytest.mark.parametrize("size", [10, 5_000_000])
def test_a_size_that_is_not_the_declared_one_is_refused(tmp_path, size):
    path = make(tmp_path, entry("sglang/a.py", b"x" * 50_000))
    redeclare(path, "sglang/a.py", size)
    with pytest.raises(StackctlError, match="broken"):
        read(path)


def test_a_bomb_is_refused_before_anything_is_unpacked(tmp_path):
    path = make(tmp_path, entry("sglang/a.txt", b"0" * (80 << 20)))
    with pytest.raises(StackctlError, match="zip bomb"):
        Wheel(path)


def test_too_much_in_all_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(wheel_module, "_MAX_TOTAL", 1000)
    with pytest.raises(StackctlError, match="zip bomb"):
        Wheel(make(tmp_path, entry("sglang/a.txt", b"0" * 2000)))


def test_files_that_overlap_are_refused(tmp_path):
    path = make(tmp_path, entry("sglang/a.txt", b"abc"))
    redeclare(path, "sglang/a.txt", 50_000, packed=True)
    with pytest.raises(StackctlError, match="overlap"):
        Wheel(path)


def test_too_many_files_and_too_long_a_text_are_refused(tmp_path, monkeypatch):
    path = make(tmp_path, entry("sglang/a.txt", b"0" * 2000))
    monkeypatch.setattr(wheel_module, "_MAX_TEXT", 1000)
    with pytest.raises(StackctlError, match="2,000 bytes"):
        read(path)
    monkeypatch.setattr(wheel_module, "_MAX_ENTRIES", 3)
    with pytest.raises(StackctlError, match="4 files"):
        Wheel(path)


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"", True), (b"a\r\n\t\x0c\x1b[0m", True), ("é".encode(), True), (b"\xe9t\xe9", True),
     (b"\x80\x04\x95\x01.", False), (b"a\0", False), (b"\xff\xd8\xff\xe0\x10JFIF", False)],
)  # fmt: skip
def test_what_is_text(data, text):
    assert is_text(data) is text
