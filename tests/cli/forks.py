"""A fork that keeps its stack beside its code, and a merge of upstream's next release that loses one half."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.cli.hostile import ENTRIES, HOST, SERVING, UPSTREAM, Bench, Ran
from tests.support import commit_files, git, repository_of

VERSION = "python/sglang/version.py"
NEXT = SERVING.replace("# convert\n        return self.convert(request)", "# convert, and trace\n        return self.convert(request, trace=True)")
NEXT = NEXT.replace("def convert(self, request):", "def convert(self, request, trace=False):")


def fork(folder: Path) -> Bench:
    """`main` carries the stack on 0.5.22 and is checked out; v0.5.23 is upstream's next release.

    Made once, beside the first test's folder: planting takes as long as ten gates.
    """
    made = Bench(folder.parent / "fork", folder.parent / "fork/repo", folder.parent / "fork/repo")
    return copy(made if made.folder.exists() else _make(made.folder), folder)


def copy(at: Bench, folder: Path) -> Bench:
    """The same in another folder."""
    shutil.copytree(at.folder, folder, dirs_exist_ok=True)
    return Bench(folder, folder / "repo", folder / "repo")


def _make(folder: Path) -> Bench:
    repository = repository_of(folder / "repo", {**UPSTREAM, VERSION: '__version__ = "0.5.22"\n'})
    repo = repository.path
    git(repo, "tag", "v0.5.22")
    git(repo, "checkout", "--quiet", "-b", "upstream")
    commit_files(repo, {VERSION: '__version__ = "0.5.23"\n', HOST: NEXT}, "0.5.23")
    git(repo, "tag", "v0.5.23")
    git(repo, "checkout", "--quiet", "main")
    commit_files(repo, ENTRIES, "the stack")
    at = Bench(folder, repo, repo)
    assert at.apply("--branch", "planted", onto="main").code == 0
    git(repo, "merge", "--quiet", "--ff-only", "planted")
    return at


def merge(at: Bench, *more: str) -> str:
    """`git merge -X theirs v0.5.23`: Git calls it clean, and the rerouted call is gone."""
    git(at.repo, "merge", "--quiet", "-X", "theirs", "--no-edit", *more, "v0.5.23")
    return git(at.repo, "rev-parse", "HEAD")


def repair(at: Bench) -> str:
    """Put the half back by hand, on a commit of its own."""
    text = (at.repo / HOST).read_text()
    lost = "return self.convert(request, trace=True)"
    assert lost in text
    mended = text.replace(lost, "return await run(functools.partial(self.convert, trace=True), request)")
    return commit_files(at.repo, {HOST: mended.replace("import os\n", "import functools\nimport os\n")}, "put back")


def line_of(at: Bench, text: str, path: str = HOST) -> int:
    """The line of a text in the work tree."""
    return next(n for n, line in enumerate((at.repo / path).read_text().splitlines(), 1) if text in line)


def gate(at: Bench, *more: str) -> Ran:
    """`stackctl gate` on the fork's own repository, JSON on stdout."""
    return at.run("gate", "--repo", at.repo, "--format", "json", *more)


def marks(path: Path) -> dict[str, str]:
    """Fingerprint to message of a SARIF file's results."""
    results = json.loads(path.read_text())["runs"][0]["results"]
    return {result["partialFingerprints"]["primaryLocationLineHash"]: result["message"]["text"] for result in results}
