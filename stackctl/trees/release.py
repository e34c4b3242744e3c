"""Which SGLang release a tree is: its own version file, else the nearest upstream tag."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackctl.model.errors import StackctlError
from stackctl.trees.ranges import parse_range
from stackctl.trees.tree import GitTree, Tree

if TYPE_CHECKING:
    from stackctl.trees.git import Repository

# setuptools-scm's generated file comes first: where it exists it is what the server reports.
_VERSION_FILES = ("python/sglang/_version.py", "python/sglang/version.py")
_LITERAL = re.compile(rb"^__version__\s*(?::\s*str\s*)?=\s*(?:version\s*=\s*)?['\"]([^'\"]+)['\"]", re.MULTILINE)
_NO_VERSION = "0.0.0"


@dataclass(frozen=True)
class Release:
    """A release, or a point after it: `exact` is False for a tree between two releases."""

    version: str
    exact: bool = True

    def __str__(self) -> str:
        return self.version if self.exact else f"{self.version}+"

    def due(self, releases: str) -> bool | None:
        """Whether something limited to `releases` must be here: True, False, or None (may be, may not).

        Between two releases a half whose range starts later may have arrived already.
        """
        if not releases:
            return True
        from packaging.version import Version

        specifiers = parse_range(releases)
        if specifiers.contains(self.version, prereleases=True):
            return True
        later = any(s.operator in (">=", ">", "==", "~=") and Version(s.version) > Version(self.version) for s in specifiers)
        return None if later and not self.exact else False


NO_RELEASE = Release("0")  # of a tree that need not be SGLang's


def parse_release(text: str) -> Release:
    """A release from what a person wrote or a version file holds; a local suffix is ignored."""
    from packaging.version import InvalidVersion, Version

    try:
        version = Version(text.removeprefix("v"))
    except InvalidVersion:
        raise StackctlError(f"{text!r} is not a release", hint="write it as 0.5.23 or 0.5.15.post1") from None
    return Release(version.base_version + (f".post{version.post}" if version.post is not None else ""), version.dev is None)


def release_of(tree: Tree, given: str | None = None) -> Release:
    """The release of a tree. Raises StackctlError when neither a file nor a tag tells."""
    if given:
        return parse_release(given)
    for path in _VERSION_FILES:
        if tree.is_file(path) and (found := _LITERAL.search(tree.read(path))):
            version = found[1].decode(errors="replace")
            if not version.startswith(_NO_VERSION):
                return _parsed(version, path)
    while hasattr(tree, "base"):
        tree = tree.base
    if isinstance(tree, GitTree) and (release := _nearest_tag(tree.repository, tree.commit)):
        return release
    raise StackctlError(
        "cannot tell which SGLang release this tree is", tree.label, "say it: --release 0.5.23"
    )


def _parsed(version: str, path: str) -> Release:
    try:
        return parse_release(version)
    except StackctlError as error:
        raise StackctlError(error.message, path, "say which release this tree is: --release 0.5.23") from None


def _nearest_tag(repository: Repository, commit: str) -> Release | None:
    """The release of the nearest tag above `commit` that names one, exact only on the tag itself."""
    try:
        words = repository.text("describe", "--tags", "--long", "--match", "v[0-9]*", "--exclude", "*rc*", "--exclude", "*-*", commit)
    except StackctlError:
        return None
    tag, distance, _ = words.rsplit("-", 2)
    return Release(parse_release(tag).version, distance == "0")
