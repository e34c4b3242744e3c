"""A small upstream of two releases and a fork of it, for what carries a series."""

from __future__ import annotations

from pathlib import Path

from stackctl.carry.carrying import IDLE
from stackctl.carry.fork import Layer, build_fork
from stackctl.carry.records import lay_out
from stackctl.carry.series import propose, read_folder, read_range, write_entries
from stackctl.model.stack import Stack
from stackctl.plants.manifest import load_stack
from stackctl.trees.git import Repository
from tests.support import commit_files, git, repository_of

PACKAGE = "python/sglang"
BASE = {
    f"{PACKAGE}/__init__.py": "",
    f"{PACKAGE}/version.py": '__version__ = "0.5.1"\n',
    f"{PACKAGE}/run.py": 'import os\n\nNAMES = [\n    "a",\n]\n\n\ndef run(x):\n    y = first(x)\n    return last(y)\n\n\ndef first(x):\n    return x\n\n\ndef last(x):\n    return x\n',
    f"{PACKAGE}/soft.py": "import math\n\n\ndef cap(x):\n    y = math.tanh(x)\n    z = y * 2\n    return z\n\n\ndef other(x):\n    return x\n",
    "tool.sh": "#!/bin/sh\necho one\n",
}
OURS = (
    ("Add our name", {f"{PACKAGE}/run.py": BASE[f"{PACKAGE}/run.py"].replace('    "a",\n', '    "a",\n    "ours",\n')}),
    (
        "Cap in doubles",
        {f"{PACKAGE}/soft.py": BASE[f"{PACKAGE}/soft.py"].replace("math.tanh(x)", "math.tanh(float(x))")},
    ),
    (
        "A file of our own",
        {
            f"{PACKAGE}/ours.py": "from sglang.soft import other\n\nother(1)\n",
            "tool.sh": "#!/bin/sh\necho one\necho ours\n",
        },
    ),
)
THEIRS = {
    f"{PACKAGE}/version.py": '__version__ = "0.5.2"\n',
    f"{PACKAGE}/run.py": BASE[f"{PACKAGE}/run.py"].replace('    "a",\n', '    "a",\n    "theirs",\n'),
}


def upstream(folder: Path, theirs: dict[str, str] | None = None, removed: tuple[str, ...] = ()) -> Repository:
    """Tags v0.5.1 and v0.5.2, and a branch `fork` of three commits on the first."""
    repository = repository_of(folder, BASE)
    git(folder, "tag", "v0.5.1")
    git(folder, "checkout", "-q", "-b", "fork")
    for title, files in OURS:
        commit_files(folder, files, title)
    git(folder, "checkout", "-q", "main")
    for path in removed:
        (folder / path).unlink()
    commit_files(folder, THEIRS if theirs is None else theirs, "next")
    git(folder, "tag", "v0.5.2")
    return repository


def imported(folder: Path, repository: Repository, source: Path | None = None) -> Stack:
    """A stack with the fork's commits (or a folder's patches) as entries."""
    folder.mkdir(parents=True, exist_ok=True)
    lay_out(folder, "fork")
    patches = read_folder(source)[0] if source else read_range(repository, "v0.5.1..fork")
    layers = [Layer(p.number, p.name, p.data) for p in patches if propose(p).disposition not in IDLE]
    assert not build_fork(repository, "v0.5.1", layers).failed
    write_entries(folder, load_stack(folder), patches, "v0.5.1", {})
    return load_stack(folder)
