"""Several files of a folder at once: all or none, whatever ends the run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from stackctl.model.errors import StackctlError
from stackctl.trees.replacing import JOURNAL, Held, finish_rewrite, held, rewrite
from tests.killing import killed_before
from tests.support import write_files

BEFORE = {"a/one/x": "1\n", "a/one/y/z": "2\n", "a/two/x": "3\n", "b": "4\n"}
PLAN = {"a/one/x": None, "a/one/y/z": None, "a/two/x": b"new\n", "a/three/x": Held(b"5\n", 0o755), "b": b"6\n"}
AFTER = {"a/two/x": b"new\n", "a/three/x": b"5\n", "b": b"6\n"}


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def folders_of(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_dir())


def test_all_is_written_and_empty_folders_go(tmp_path):
    write_files(tmp_path, BEFORE)
    os.chmod(tmp_path / "b", 0o600)
    assert rewrite(tmp_path, PLAN) == list(PLAN)
    assert files_of(tmp_path) == AFTER and folders_of(tmp_path) == ["a", "a/three", "a/two"]
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600 and (tmp_path / "a/three/x").stat().st_mode & 0o111
    assert rewrite(tmp_path, PLAN) == []


def test_a_kill_before_any_step_leaves_one_state_or_the_other(tmp_path):
    seen, step = set(), 0
    while True:
        step += 1
        folder = tmp_path / str(step)
        write_files(folder, BEFORE)
        done = not killed_before(step, lambda folder=folder: rewrite(folder, PLAN))
        finish_rewrite(folder)
        now = files_of(folder)
        assert now in ({name: text.encode() for name, text in BEFORE.items()}, AFTER), step
        assert folders_of(folder) == (["a", "a/three", "a/two"] if now == AFTER else ["a", "a/one", "a/one/y", "a/two"])
        seen.add(len(now))
        if done:
            break
    assert step > 15 and seen == {3, 4}


def test_an_error_midway_takes_back_what_was_done(tmp_path):
    write_files(tmp_path, {**BEFORE, "a/three": "a file where a folder is to be"})
    with pytest.raises(OSError):
        rewrite(tmp_path, PLAN)
    assert files_of(tmp_path) == {name: text.encode() for name, text in BEFORE.items()} | {"a/three": b"a file where a folder is to be"}


def _stopped(folder: Path) -> None:
    """A folder with a rewrite in it that was killed behind its journal."""
    write_files(folder, BEFORE)
    step = 1
    while not (folder / JOURNAL).exists():
        killed_before(step, lambda: rewrite(folder, PLAN))
        step += 1


def test_what_somebody_changed_meanwhile_is_not_written_over(tmp_path):
    _stopped(tmp_path)
    (tmp_path / "b").write_text("mine\n")
    with pytest.raises(StackctlError, match="b was changed since"):
        finish_rewrite(tmp_path)
    assert (tmp_path / "b").read_text() == "mine\n"
    (tmp_path / "b").write_text("4\n")
    finish_rewrite(tmp_path)
    assert files_of(tmp_path) == AFTER


@pytest.mark.parametrize("text", ["no", "[1]", '[{"path": "../x", "old": "", "new": null}]', '[{"path": "/x", "old": "", "new": null}]'])
def test_a_journal_that_is_not_ours_is_refused(tmp_path, text):
    (tmp_path / JOURNAL).write_text(text)
    with pytest.raises(StackctlError, match="journal"):
        finish_rewrite(tmp_path)


def test_a_journal_that_came_with_a_tree_writes_nothing_through_a_linked_folder(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "stack").mkdir()
    os.symlink(tmp_path / "outside", tmp_path / "stack/entries")
    new = {"data": "eA==", "mode": 420, "link": False}
    (tmp_path / "stack" / JOURNAL).write_text(json.dumps([{"path": "entries/x", "old": "", "new": new}]))
    with pytest.raises(StackctlError, match="not below it"):
        finish_rewrite(tmp_path / "stack")
    assert not list((tmp_path / "outside").iterdir())


def test_a_link_stays_a_link(tmp_path):
    write_files(tmp_path, {"a/one/x": "1\n"})
    os.symlink("x", tmp_path / "a/one/link")
    rewrite(tmp_path, {"a/two/link": held(tmp_path / "a/one/link"), "a/one/link": None})
    assert os.readlink(tmp_path / "a/two/link") == "x" and not os.path.lexists(tmp_path / "a/one/link")
    assert files_of(tmp_path / "a/one") == {"x": b"1\n"}


def test_a_run_that_cannot_be_finished_is_a_plain_error(tmp_path):
    _stopped(tmp_path)
    (tmp_path / "a/three").write_text("in the way")
    with pytest.raises(StackctlError, match="cannot be finished"):
        finish_rewrite(tmp_path)
    (tmp_path / "a/three").unlink()
    finish_rewrite(tmp_path)
    assert files_of(tmp_path) == AFTER
