"""Entries by releases: the same matrix in one process, in several, over Ray, after a stop and after a kill."""

from __future__ import annotations

import json
import os
import signal

import pytest

from stackctl.carry import cells
from stackctl.carry.cells import Cells, Task, carry_column, fill, render_cells, tasks_of
from tests.carry.fork import BASE, PACKAGE, THEIRS, imported, upstream
from tests.support import commit_files, git

SOFT = f"{PACKAGE}/soft.py"
ONTO = ["v0.5.1", "v0.5.2", "v0.5.3"]


@pytest.fixture
def bench(tmp_path):
    repository = upstream(tmp_path / "up", {**THEIRS, SOFT: BASE[SOFT].replace("math.tanh(x)", "math.tanh(0)")})
    commit_files(repository.path, {SOFT: BASE[SOFT], f"{PACKAGE}/version.py": '__version__ = "0.5.3"\n'}, "0.5.3")
    git(repository.path, "tag", "v0.5.3")
    return imported(tmp_path / "stack", repository), repository


def words(columns):
    return {onto: [(cell.entry, cell.verdict, cell.units) for cell in column] for onto, column in columns.items()}


def test_one_result_a_cell(bench, tmp_path):
    stack, repository = bench
    before = git(repository.path, "for-each-ref")
    columns = fill(tasks_of(stack, repository, ONTO), Cells(stack, repository, tmp_path / "cells"))
    assert words(columns) == {
        "v0.5.1": [(1, "whole", ()), (2, "whole", ()), (3, "whole", ())],
        "v0.5.2": [(1, "whole", ()), (2, "half", (1,)), (3, "whole", ())],
        "v0.5.3": [(1, "whole", ()), (2, "whole", ()), (3, "whole", ())],
    }
    assert git(repository.path, "for-each-ref") == before
    assert len(list((tmp_path / "cells").rglob("*.json"))) == 9
    assert "half (1 to decide)" in render_cells(stack, columns, "text")
    assert render_cells(stack, columns, "md").count("\n|") == 5


def test_what_is_there_is_not_carried_again(bench, tmp_path, monkeypatch):
    stack, repository = bench
    kept, tasks = Cells(stack, repository, tmp_path / "cells"), tasks_of(stack, repository, ONTO)
    first = fill(tasks[:2], kept)
    next((tmp_path / "cells").rglob("2.json")).unlink()
    carried = []
    monkeypatch.setattr(cells, "carry_column", lambda task: carried.append(task.onto) or carry_column(task))
    again = fill(tasks, kept)
    assert len(carried) == 2 and "v0.5.3" in carried
    assert {onto: again[onto] for onto in first} == first


def test_another_stack_has_cells_of_its_own(bench, tmp_path):
    stack, repository = bench
    task = tasks_of(stack, repository, ["v0.5.2"])
    fill(task, Cells(stack, repository, tmp_path / "cells"))
    manifest = stack.entries[0].folder / "entry.toml"
    manifest.write_text(manifest.read_text().replace("title = ", 'watch = ["it"]\ntitle = ', 1))
    from stackctl.plants.manifest import load_stack

    assert Cells(load_stack(stack.root), repository, tmp_path / "cells").column(task[0]) is None


def test_a_commit_that_cannot_be_read_says_why(bench, tmp_path):
    stack, repository = bench
    tree = git(repository.path, "hash-object", "-t", "tree", "-w", os.devnull)
    empty = git(repository.path, "commit-tree", "-m", "empty", tree)
    (column,) = fill([Task(str(stack.root), str(repository.path), "empty", empty)], Cells(stack, repository, tmp_path / "c")).values()
    assert {cell.verdict for cell in column} == {"not-judged"} and "which SGLang release" in column[0].why


def test_several_processes_fill_the_same_matrix(bench, tmp_path):
    stack, repository = bench
    tasks = tasks_of(stack, repository, ONTO)
    alone = fill(tasks, Cells(stack, repository, tmp_path / "one"))
    assert fill(tasks, Cells(stack, repository, tmp_path / "two"), jobs=2) == alone


KILLER = """
import os, signal, sys
sys.path.insert(0, {root!r})
from stackctl.carry import apply
real = apply.apply
def once(*words, **options):
    try:
        os.close(os.open({flag!r}, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return real(*words, **options)
    os.kill(os.getpid(), signal.SIGKILL)
apply.apply = once
"""


@pytest.fixture
def killer(tmp_path, monkeypatch):
    """The first worker process to carry anything is killed in the middle of it."""
    (tmp_path / "site").mkdir()
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(cells.__file__))))
    code = KILLER.format(root=root, flag=str(tmp_path / "killed"))
    (tmp_path / "site" / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), root]))
    return tmp_path / "killed"


def test_a_worker_that_is_killed_loses_no_cell(bench, tmp_path, killer):
    stack, repository = bench
    tasks = tasks_of(stack, repository, ONTO)
    found = fill(tasks, Cells(stack, repository, tmp_path / "two"), jobs=2)
    assert killer.exists() and signal.SIGKILL
    assert found == fill(tasks, Cells(stack, repository, tmp_path / "one"))


def test_a_ray_cluster_of_two_processes_fills_the_same_matrix_though_one_is_killed(bench, tmp_path, killer):
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'stackctl[ray]'")
    stack, repository = bench
    tasks = tasks_of(stack, repository, ONTO)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        found = fill(tasks, Cells(stack, repository, tmp_path / "ray"), ray="auto")
    finally:
        ray.shutdown()
    assert killer.exists()
    assert found == fill(tasks, Cells(stack, repository, tmp_path / "one"))


def test_the_command_prints_a_matrix(bench, monkeypatch, tmp_path):
    from click.testing import CliRunner

    from stackctl.cli.main import cli

    stack, repository = bench
    monkeypatch.setenv("STACKCTL_CACHE", str(tmp_path / "cache"))
    words = ["-q", "--stack", str(stack.root), "apply", "--repo", str(repository.path), "--jobs", "1"]
    done = CliRunner().invoke(cli, [*words, "--onto", "v0.5.1", "--onto", "v0.5.2", "--format", "json"], standalone_mode=False)
    assert done.return_value == 1
    found = json.loads(done.output)["summary"]["cells"]
    assert len(found) == 6 and {cell["verdict"] for cell in found} == {"whole", "half"}
