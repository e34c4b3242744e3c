"""Many files of a tree at once: one Git process for all of them, where the tree is in Git."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stackctl.model.errors import StackctlError
from stackctl.trees.tree import GitTree, OverlayTree, Tree

_BATCH = 400


def read_many(tree: Tree, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """(path, bytes) of regular files."""
    if isinstance(tree, OverlayTree):
        paths = list(paths)
        yield from ((path, tree.read(path)) for path in paths if path in tree.changes)
        yield from read_many(tree.base, [path for path in paths if path not in tree.changes])
        return
    if not isinstance(tree, GitTree):
        yield from ((path, tree.read(path)) for path in paths)
        return
    batch: list[str] = []
    for path in paths:
        batch.append(path)
        if len(batch) == _BATCH:
            yield from _read_batch(tree, batch)
            batch = []
    yield from _read_batch(tree, batch)


def _read_batch(tree: GitTree, paths: list[str]) -> Iterator[tuple[str, bytes]]:
    """One `git cat-file --batch`: asking blob by blob costs a millisecond each in waiting alone."""
    if not paths:
        return
    output = tree.repository.run("cat-file", "--batch", stdin="\n".join(tree.blob(path) for path in paths).encode())
    start = 0
    for path in paths:
        end = output.index(b"\n", start)
        size = int(output[start:end].rsplit(b" ", 1)[1])
        yield path, output[end + 1 : end + 1 + size]
        start = end + size + 2


def holding(tree: Tree, words: Iterable[bytes], suffix: str = ".py") -> list[str]:
    """The regular files of a tree whose bytes hold one of `words`."""
    wanted = sorted(set(words) - {b""})
    if not wanted:
        return []
    if isinstance(tree, GitTree) and not any(b"\n" in word for word in wanted):
        return [path for path in _git_grep(tree, wanted, suffix) if tree.is_file(path)]
    paths = [path for path in tree.paths() if path.endswith(suffix) and tree.is_file(path)]
    return [path for path, data in read_many(tree, paths) if any(word in data for word in wanted)]


def _git_grep(tree: GitTree, words: list[bytes], suffix: str) -> list[str]:
    patterns = b"\n".join(words) + b"\n"
    arguments = ["grep", "-l", "-z", "-F", "--no-textconv", "--full-name", "-f", "-", tree.commit]
    try:
        output = tree.repository.run(*arguments, "--", f"*{suffix}", stdin=patterns)
    except StackctlError:
        return []  # git grep fails with 1 where nothing matches
    mark = f"{tree.commit}:".encode()
    return sorted(name.removeprefix(mark).decode(errors="surrogateescape") for name in output.split(b"\0") if name)
