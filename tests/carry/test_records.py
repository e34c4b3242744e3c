"""Export, and what changes the stack's own files."""

from __future__ import annotations

import shutil

import pytest

from stackctl.carry.apply import apply
from stackctl.carry.records import difference, export, lay_out, remove, renumber, write_series
from stackctl.model.errors import StackctlError
from stackctl.plants.manifest import load_stack
from stackctl.plants.stacks import open_stack
from tests.carry.fork import imported, upstream
from tests.killing import killed_before
from tests.support import git


def test_an_exported_series_applies_with_git_am(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    files = export(stack, repository, "v0.5.2")
    assert files == export(stack, repository, "v0.5.2")
    write_series(tmp_path / "out", files)
    apply(stack, repository, "v0.5.2", branch="next")
    git(repository.path, "checkout", "-q", "-b", "am", "v0.5.2")
    git(repository.path, "am", "-q", *sorted(str(path) for path in (tmp_path / "out").glob("*.patch")))
    assert git(repository.path, "rev-parse", "am^{tree}") == git(repository.path, "rev-parse", "next^{tree}")


def test_export_then_import_gives_the_same_entries(tmp_path):
    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    write_series(tmp_path / "out", export(stack, repository, "v0.5.1"))
    again = imported(tmp_path / "again", repository, tmp_path / "out")

    def told(stack):
        return [
            (e.number, e.slug, e.title, e.disposition, dict(e.decision), e.upstream, e.notes) for e in stack.entries
        ]

    assert told(again) == told(stack)
    assert export(again, repository, "v0.5.1") == export(stack, repository, "v0.5.1")


def test_an_entry_of_files_that_the_base_has_not_is_exported_beside_the_series_and_comes_back(tmp_path):
    from stackctl.carry.fork import Layer, build_fork
    from stackctl.carry.series import read_folder, write_entries

    repository = upstream(tmp_path / "up")
    stack = imported(tmp_path / "stack", repository)
    outside = "diff --git a/test/t.py b/test/t.py\n--- a/test/t.py\n+++ b/test/t.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n"
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "0004-a-test.patch").write_text(outside)
    patches, _ = read_folder(tmp_path / "more")
    layers = [Layer(p.number, p.name, p.data) for p in patches]
    missing = build_fork(repository, "v0.5.1", layers).missing
    write_entries(stack.root, stack, patches, "v0.5.1", missing)
    stack = load_stack(stack.root)
    write_series(tmp_path / "out", export(stack, repository, "v0.5.1"))
    assert (tmp_path / "out" / "0004-a-test.patch.OUTSIDE").read_bytes().endswith(outside.encode())
    again, left_out = read_folder(tmp_path / "out")
    assert [patch.number for patch in again] == [1, 2, 3, 4] and not left_out


def test_an_export_into_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "other").write_text("x")
    with pytest.raises(StackctlError, match="other files"):
        write_series(tmp_path, [])


def test_diff_is_the_record_byte_for_byte(tmp_path):
    stack = imported(tmp_path / "stack", upstream(tmp_path / "up"))
    assert difference(stack.entries[0], stack) == (stack.root / "patches" / "0001-add-our-name.patch").read_bytes()


def test_remove_takes_the_patch_along(tmp_path):
    stack = imported(tmp_path / "stack", upstream(tmp_path / "up"))
    assert remove(stack, 2) == ["entries/002-cap-in-doubles", "patches/0002-cap-in-doubles.patch"]
    assert [entry.number for entry in load_stack(stack.root).entries] == [1, 3]


def test_renumber_keeps_order_and_names(tmp_path):
    stack = imported(tmp_path / "stack", upstream(tmp_path / "up"))
    assert renumber(stack, {1: 10, 2: 20, 3: 30})[0] == "001-add-our-name -> 010-add-our-name"
    assert [entry.number for entry in load_stack(stack.root).entries] == [10, 20, 30]
    with pytest.raises(StackctlError, match="order"):
        renumber(load_stack(stack.root), {10: 40})


def test_init_overwrites_nothing(tmp_path):
    assert lay_out(tmp_path, "fork") == ["stack.toml", "entries/.gitkeep", "patches/.gitkeep", "checks/.gitkeep"]
    assert load_stack(tmp_path).name == "fork"
    with pytest.raises(StackctlError, match="already"):
        lay_out(tmp_path, "fork")


@pytest.mark.parametrize("change", [lambda stack: renumber(stack, {1: 10, 2: 20, 3: 30}), lambda stack: remove(stack, 3)])
def test_a_kill_at_any_write_leaves_a_stack_that_loads(tmp_path, change):
    stack = imported(tmp_path / "stack", upstream(tmp_path / "up"))
    seen, step, done = set(), 0, False
    while not done:
        step += 1
        shutil.copytree(stack.root, tmp_path / f"killed-{step}")
        mine = load_stack(tmp_path / f"killed-{step}")
        done = not killed_before(step, lambda mine=mine: change(mine))
        seen.add(tuple(entry.number for entry in open_stack(mine.root).entries))
    assert step > 5 and seen in ({(1, 2, 3), (10, 20, 30)}, {(1, 2, 3), (1, 2)})


def test_a_kill_at_any_write_of_an_import_leaves_all_entries_or_none(tmp_path):
    from stackctl.carry.series import read_range, write_entries

    repository = upstream(tmp_path / "up")
    patches = read_range(repository, "v0.5.1..fork")
    seen, step, done = set(), 0, False
    while not done:
        step += 1
        root = tmp_path / f"killed-{step}"
        root.mkdir()
        lay_out(root, "fork")
        stack = load_stack(root)
        done = not killed_before(step, lambda root=root, stack=stack: write_entries(root, stack, patches, "v0.5.1", {}))
        seen.add(len(open_stack(root).entries))
    assert step > 10 and seen == {0, 3}
