"""Build the measuring bed of the audit: upstream releases, a public fork's series, Git's own merges.

    python tests/bench/fork_trees.py SNAPSHOT RELEASES OUT

SNAPSHOT is a Git repository that keeps a numbered series of patches in `patches/` at several
commits. RELEASES is a folder of unpacked wheels (`RELEASES/0.5.14/sglang/...`) or a Git repository
whose tags `v0.5.14` hold upstream's layout. OUT becomes a Git repository:

- tags `v<release>`, each the child of the next lower one, laid out as upstream's repository;
- `f-<commit>`: the series of that commit on its release, one commit a patch, applied strictly in
  the order of the file names, as the fork's own setup script does;
- `m-<step>-ours`, `m-<step>-theirs`: `git merge -X` of a series with the next release.

Identities and dates are fixed, so the same input gives the same commit ids.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from stackctl.model.errors import StackctlError
from stackctl.trees.git import Identity, Repository

RELEASES = ("0.5.11", "0.5.12", "0.5.13.post1", "0.5.14", "0.5.15", "0.5.16", "0.5.23")
SERIES = {
    "3466816": "0.5.11",
    "c8a22ef": "0.5.12",
    "8ab4ce6": "0.5.12",
    "192dde7": "0.5.13.post1",
    "2f3d753": "0.5.13.post1",
    "5d2fa09": "0.5.14",
    "a0445f5": "0.5.14",
    "6dfa754": "0.5.15",
    "b86a3fe": "0.5.15",
}
STEPS = {
    "s12": ("3466816", "0.5.12"),
    "s13": ("8ab4ce6", "0.5.13.post1"),
    "s14": ("2f3d753", "0.5.14"),
    "s15": ("a0445f5", "0.5.15"),
    "s16": ("b86a3fe", "0.5.16"),
}
NOBODY = Identity("Measuring Bed", "bed@localhost", "1700000000 +0000")
_NAME = re.compile(r"(\d+)-(.+)\.patch")
_FILE_DIFF = re.compile(rb"^(?=diff --git )", re.MULTILINE)
_PLAIN_DIFF = re.compile(rb"^(?=--- [^\n]*\n\+\+\+ )", re.MULTILINE)
_NEW_NAME = re.compile(rb"^\+\+\+ b/([^\n\t]+)", re.MULTILINE)
_OLD_NAME = re.compile(rb"^--- a/([^\n\t]+)", re.MULTILINE)


def main() -> int:
    """Build everything that is not there yet and print one line for each ref."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name in ("snapshot", "releases", "out"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    bed = Repository(given.out) if (given.out / ".git").is_dir() else Repository.create(given.out)
    build_releases(bed, given.releases)
    for commit, release in SERIES.items():
        build_series(bed, given.snapshot, commit, release)
    for step, (commit, release) in STEPS.items():
        for side in ("ours", "theirs"):
            build_merge(bed, step, commit, release, side)
    return 0


def build_releases(bed: Repository, releases: Path) -> None:
    """One commit and tag a release, oldest first."""
    parent = ""
    for release in RELEASES:
        if not bed.exists(f"v{release}"):
            tree = _release_tree(bed, releases, release)
            commit = bed.commit(tree, [parent] if parent else [], f"sglang {release}\n", NOBODY)
            bed.run("tag", f"v{release}", commit)
            print(f"v{release} {commit}")
        parent = bed.resolve(f"v{release}")


def _release_tree(bed: Repository, releases: Path, release: str) -> str:
    """The tree of one release, from a tag of another repository or from an unpacked wheel."""
    if not (releases / release).is_dir():
        bed.run("fetch", "-q", "--no-tags", str(releases.resolve()), f"refs/tags/v{release}")
        return bed.resolve("FETCH_HEAD", "tree")
    package = bed.path / "python" / "sglang"
    shutil.rmtree(package.parent, ignore_errors=True)
    shutil.copytree(releases / release / "sglang", package, symlinks=True, ignore=_not_text)
    bed.run("add", "-A", "-f", ".")
    return bed.text("write-tree")


def _not_text(folder: str, names: list[str]) -> list[str]:
    """The names in `folder` that are files with a NUL byte in them, or byte code."""
    files = [Path(folder, name) for name in names]
    left_out = [path.name for path in files if path.is_file() and b"\0" in path.read_bytes()]
    return left_out + [name for name in names if name == "__pycache__"]


def build_series(bed: Repository, snapshot: Path, commit: str, release: str) -> None:
    """The branch `f-<commit>`: the series of `commit` on `release`, one commit a patch."""
    branch = f"refs/heads/f-{commit}"
    if bed.exists(branch):
        return
    bed.run("read-tree", "--reset", f"v{release}")
    tip, left_out = bed.resolve(f"v{release}"), 0
    for number, title, patch in _patches(snapshot, commit):
        kept, out = _applicable(bed, patch)
        left_out += out
        if kept:
            _apply(bed, kept, f"{commit} {number}")
            tip = bed.commit(bed.text("write-tree"), [tip], f"patch {number}: {title}\n", NOBODY)
    bed.run("update-ref", branch, tip)
    print(f"f-{commit} on {release} {tip}, {left_out} file diffs left out (not in the wheel)")


def _patches(snapshot: Path, commit: str) -> Iterator[tuple[str, str, bytes]]:
    """(number, title, diff) of every numbered patch, in the order of a shell's `[0-9]*.patch`."""
    for name in sorted(_read(snapshot, "ls-tree", "--name-only", f"{commit}:patches").decode().splitlines()):
        if match := _NAME.fullmatch(name):
            yield match[1], match[2].replace("-", " "), _read(snapshot, "cat-file", "blob", f"{commit}:patches/{name}")


def _read(snapshot: Path, *arguments: str) -> bytes:
    """The output of a reading Git command in `snapshot`, which may be a Git directory without a config."""
    return subprocess.run(["git", "-C", str(snapshot), *arguments], capture_output=True, check=True).stdout


def _applicable(bed: Repository, patch: bytes) -> tuple[bytes, int]:
    """The file diffs of `patch` whose file the index has or that make a new one, and how many are left out."""
    blocks = (_FILE_DIFF if _FILE_DIFF.search(patch) else _PLAIN_DIFF).split(patch)
    diffs = [block for block in blocks if _NEW_NAME.search(block) or _OLD_NAME.search(block)]
    kept = [diff for diff in diffs if _is_new(diff) or _in_index(bed, diff)]
    return b"".join(kept), len(diffs) - len(kept)


def _is_new(diff: bytes) -> bool:
    """Whether a file diff makes a file."""
    return b"\n--- /dev/null" in diff or diff.startswith(b"--- /dev/null")


def _in_index(bed: Repository, diff: bytes) -> bool:
    """Whether the file that a file diff edits is in the index."""
    name = _OLD_NAME.search(diff) or _NEW_NAME.search(diff)
    return bool(name) and bool(bed.run("ls-files", "-z", "--", f":(literal){name[1].decode()}"))


def _apply(bed: Repository, diff: bytes, where: str) -> None:
    """Apply a diff to the index, strictly. Raises StackctlError naming the patch."""
    try:
        bed.run("apply", "--cached", "--whitespace=nowarn", "-", stdin=diff)
    except StackctlError as error:
        raise StackctlError(f"patch does not apply strictly: {error.message}", where) from None


def build_merge(bed: Repository, step: str, commit: str, release: str, side: str) -> None:
    """The branch `m-<step>-<side>`: the series merged with the next release, conflicts to one side."""
    branch = f"m-{step}-{side}"
    if bed.exists(f"refs/heads/{branch}"):
        return
    bed.run("checkout", "-q", "-f", "--detach", f"f-{commit}")
    bed.run("clean", "-q", "-f", "-d", "-x")
    stopped = _merge(bed, f"v{release}", side)
    bed.run("add", "-A", "-f", ".")
    parents = [bed.resolve(f"f-{commit}"), bed.resolve(f"v{release}")]
    tip = bed.commit(bed.text("write-tree"), parents, f"merge {release} into f-{commit}, -X {side}\n", NOBODY)
    bed.run("reset", "-q", "--hard", tip)
    bed.run("branch", branch, tip)
    print(f"{branch} {tip}{', file conflicts left as Git left them' if stopped else ''}")


def _merge(bed: Repository, tag: str, side: str) -> bool:
    """Merge without committing; whether Git stopped at a conflict that -X does not decide."""
    command = ["git", "-c", "core.hooksPath=/dev/null", "merge", "-q", "--no-commit", "--no-ff", "-X", side, tag]
    environment = ["env", "GIT_COMMITTER_NAME=bed", "GIT_COMMITTER_EMAIL=bed@localhost"]
    done = subprocess.run(environment + command, cwd=bed.path, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise StackctlError(f"git merge failed: {done.stderr.decode(errors='replace').strip()}", tag)
    return done.returncode == 1


if __name__ == "__main__":
    raise SystemExit(main())
