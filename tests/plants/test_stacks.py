"""A stack opened from the cache is the stack that loading gives, and never an older one."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackctl.plants import stacks
from stackctl.plants.manifest import ManifestError, load_stack
from stackctl.plants.stacks import open_stack
from tests.support import ROOT, write_files

MANIFEST = """number = 101
title = "One"
disposition = "permanent"
reason = "ours"
[[plant]]
id = "file"
kind = "file"
path = "a.py"
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STACKCTL_CACHE", str(tmp_path / "cache"))
    write_files(tmp_path / "stack", {"stack.toml": 'name = "s"\n', "entries/101-one/entry.toml": MANIFEST, "entries/101-one/files/a.py": "A = 1\n"})
    return tmp_path / "stack"


def test_the_second_opening_loads_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_stack(root)
    monkeypatch.setattr("stackctl.plants.manifest.load_stack", lambda root: pytest.fail("loaded again"))
    assert open_stack(root) == first


def test_our_own_stack_is_kept_as_it_is(root: Path) -> None:
    assert open_stack(ROOT) == load_stack(ROOT)
    assert open_stack(ROOT) == load_stack(ROOT)


@pytest.mark.parametrize("name", ["entries/101-one/entry.toml", "entries/101-one/files/a.py", "stack.toml"])
def test_a_changed_file_is_read_again(root: Path, name: str) -> None:
    before = open_stack(root)
    path = root / name
    path.write_text(path.read_text().replace("One", "Two").replace("A = 1", "A = 2").replace('"s"', '"t"'))
    after = open_stack(root)
    assert after != before
    assert after == load_stack(root)


def test_a_new_problem_is_found_after_a_clean_load(root: Path) -> None:
    open_stack(root)
    (root / "entries/101-one/files/stray.py").write_text("")
    with pytest.raises(ManifestError, match="no plant uses this file"):
        open_stack(root)


@pytest.mark.parametrize("junk", ["", "{}", "[]", '{"key": 1, "stack": {}}', "\0"])
def test_a_broken_store_is_left_aside(root: Path, junk: str) -> None:
    first = open_stack(root)
    stacks._store(root).write_text(junk)
    assert open_stack(root) == first


def test_a_cache_that_cannot_be_written_is_no_error(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STACKCTL_CACHE", str(tmp_path / "file" / "cache"))
    assert open_stack(root) == load_stack(root)
