"""Lock files of every kind, and what moved between two."""

from __future__ import annotations

import pytest

from stackctl.model.errors import StackctlError
from stackctl.reports.locks import Bump, bumps, read_lock

FREEZE = """\
# comment
Flashinfer_Python==0.7.1
torch==2.13.0+cu130 ; python_version > "3.10"
sgl-kernel @ file:///wheels/sgl_kernel.whl
-e git+https://example.invalid/sglang@0123#egg=sglang
requests[socks]==2.32.0 \\
    --hash=sha256:00
numpy>=2
--extra-index-url https://example.invalid
"""
UV = 'version = 1\n[[package]]\nname = "flashinfer-python"\nversion = "0.7.0"\n[[package]]\nname = "here"\nsource = { editable = "." }\n'
PYLOCK = 'lock-version = "1.0"\n[[packages]]\nname = "torch"\nversion = "2.13.0"\n[[packages]]\nname = "sglang"\n[packages.vcs]\nurl = "u"\ncommit-id = "0123"\n'


def test_formats(tmp_path):
    for name, text in (("freeze.txt", FREEZE), ("uv.lock", UV), ("pylock.toml", PYLOCK)):
        (tmp_path / name).write_text(text)
    assert read_lock(tmp_path / "freeze.txt") == {
        "flashinfer-python": "0.7.1",
        "torch": "2.13.0+cu130",
        "sgl-kernel": "file:///wheels/sgl_kernel.whl",
        "sglang": "git+https://example.invalid/sglang@0123",
        "requests": "2.32.0",
        "numpy": ">=2",
    }
    assert read_lock(tmp_path / "uv.lock") == {"flashinfer-python": "0.7.0", "here": "?"}
    assert read_lock(tmp_path / "pylock.toml") == {"torch": "2.13.0", "sglang": "0123"}


def test_bumps(tmp_path):
    (tmp_path / "a").write_text("a==1\nb==2\nc==1.10\nd==1\n")
    (tmp_path / "b").write_text("b==2\nc==1.9\nd==2\ne==5\n")
    found = bumps(tmp_path / "a", tmp_path / "b")
    assert [(b.name, b.word) for b in found] == [("a", "removed"), ("c", "lowered"), ("d", "raised"), ("e", "added")]
    assert Bump("x", "1", "file:///x").word == "changed"


def test_no_lock_file(tmp_path):
    (tmp_path / "prose").write_text("<!doctype html>\n<p>not found, sorry, no lock here</p>\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name in ("prose", "binary", "gone"):
        with pytest.raises(StackctlError):
            read_lock(tmp_path / name)
