"""Stock upstream: upstream's own tree of the release that a fork's tree is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackctl.trees.release import Release
from stackctl.trees.tree import GitTree

if TYPE_CHECKING:
    from stackctl.trees.git import Repository


def stock_tree(repository: Repository, release: Release, upstream: str | None = None) -> GitTree | None:
    """Stock upstream: the ref given, else the release's tag, else None."""
    if upstream:
        return GitTree(repository, upstream)
    tag = f"refs/tags/v{release.version}"
    return GitTree(repository, tag) if release.exact and repository.exists(tag) else None
