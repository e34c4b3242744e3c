"""An installed environment, read through its files: where it looks for modules, and what is installed there."""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

_SAMPLE = 200  # lines of a RECORD that are held against the disk: a damaged installation shows in its first files


class NotThere(Exception):
    """The thing asked for is not in the environment."""


class Unsure(Exception):
    """It cannot be told whether it is: the environment is damaged, or its files do not say."""


@dataclass(frozen=True)
class Environment:
    """Where one interpreter looks for modules. `problem` says why nothing can be judged, "" if all is well.

    `folders` are its site-packages, what their .pth files add, and last its standard library; `packages`
    are the top-level packages of editable installs.
    """

    python: Path
    prefix: Path
    folders: tuple[Path, ...] = ()
    packages: Mapping[str, Path] = field(default_factory=dict)
    problem: str = ""

    @cached_property
    def distributions(self) -> dict[str, list[importlib.metadata.Distribution]]:
        """Every installed distribution by normalised name; more than one of a name is a damaged environment."""
        found: dict[str, list[importlib.metadata.Distribution]] = {}
        for each in importlib.metadata.distributions(path=[str(folder) for folder in self.folders]):
            name = _name_of(each)
            if name:
                found.setdefault(normal(name), []).append(each)
        return found

    def version(self, name: str) -> str:
        """The version of a distribution. Raises NotThere or Unsure."""
        found = self.distributions.get(normal(name), [])
        if not found:
            if left := self._left_behind(name):
                raise Unsure(f"a pip that was killed left {left}")
            raise NotThere(f"{name} is not installed")
        versions = sorted({each.metadata["Version"] or "" for each in found})
        if len(versions) > 1:
            raise Unsure(f"{name} is installed more than once: {', '.join(map(repr, versions))}")
        if not versions[0]:
            raise Unsure(f"the metadata of {name} names no version")
        if gone := _gone(found[0]):
            raise Unsure(f"{name} {versions[0]} is damaged: {gone} is listed and not there")
        return versions[0]

    def claims(self, path: str) -> str:
        """The distribution whose RECORD lists a file, "" if none does."""
        for name, found in self.distributions.items():
            if any(f"\n{path}," in f"\n{each.read_text('RECORD') or ''}" for each in found):
                return name
        return ""

    def _left_behind(self, name: str) -> str:
        """pip renames what it takes away to ~ame; a killed one leaves that."""
        wanted = {f"~{spelt[1:]}".lower() for spelt in (name, name.replace("-", "_"))}
        for folder in self.folders:
            with contextlib.suppress(OSError):
                for child in os.scandir(folder):
                    if child.name.startswith("~") and child.name.split("-")[0].lower() in wanted:
                        return child.name
        return ""


def open_environment(python: Path) -> Environment:
    """The environment of the interpreter at `python`. Never raises: what is wrong is its `problem`."""
    python = Path(os.path.abspath(python))
    prefix = python.parent.parent
    if not os.path.lexists(python):
        return Environment(python, prefix, problem=f"there is no interpreter at {python}")
    if not python.exists():
        return Environment(python, prefix, problem=f"{python} points to {os.path.realpath(python)}, which is gone")
    if not python.is_file() or "py" not in python.name.lower():
        return Environment(python, prefix, problem=f"{python} is no interpreter")
    settings = _pyvenv(prefix)
    base = prefix if settings is not None else Path(os.path.realpath(python)).parent.parent
    version = _version(settings, python)
    sites = _sites(base, version)
    if len({site.parent.name for site in sites if site.name == "site-packages"}) > 1:
        return Environment(python, prefix, problem=f"{base} has libraries of more than one Python; name bin/python3.N")
    if not sites:
        return Environment(python, prefix, problem=f"there are no site-packages in {base}")
    return _with_paths(python, prefix, sites, settings, version)


def normal(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _with_paths(
    python: Path, prefix: Path, sites: list[Path], settings: Mapping[str, str] | None, version: str
) -> Environment:
    folders = list(sites)
    packages: dict[str, Path] = {}
    home = (
        Path(settings["home"]).parent
        if settings and "home" in settings
        else Path(os.path.realpath(python)).parent.parent
    )
    if settings and settings.get("include-system-site-packages", "").lower() == "true":
        folders += _sites(home, version)
    for site in tuple(folders):
        added, mapped = _pth(site)
        folders += [path for path in added if path not in folders]
        packages |= mapped
    folders += [library for library in sorted(home.glob(f"lib/python{version or '3.*'}")) if library.is_dir()]
    return Environment(python, prefix, tuple(folders), packages)


def _pyvenv(prefix: Path) -> dict[str, str] | None:
    try:
        lines = (prefix / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    pairs = (line.partition("=") for line in lines)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _version(settings: Mapping[str, str] | None, python: Path) -> str:
    """Such as "3.11", as pyvenv.cfg or the interpreter's own name tells it, "" if neither does."""
    told = (settings or {}).get("version") or (settings or {}).get("version_info") or ""
    for text in (told, python.name.removeprefix("python"), Path(os.path.realpath(python)).name.removeprefix("python")):
        if match := re.match(r"(3\.\d+)", text):
            return match[1]
    return ""


def _sites(prefix: Path, version: str) -> list[Path]:
    found: list[Path] = []
    for library in ("lib", "lib64", "local/lib"):
        for name in ("site-packages", "dist-packages"):
            found += sorted(prefix.glob(f"{library}/python{version or '3.*'}/{name}"))
            found += sorted(prefix.glob(f"{library}/python3/{name}"))
    kept: dict[str, Path] = {}
    for path in found:
        if path.is_dir():
            kept.setdefault(os.path.realpath(path), path)  # lib64 is a link to lib
    return list(kept.values())


def _pth(site: Path) -> tuple[list[Path], dict[str, Path]]:
    """The folders and packages that a site's .pth files add. Their `import` lines are read, never run."""
    folders: list[Path] = []
    packages: dict[str, Path] = {}
    for path in sorted(site.glob("*.pth")):
        with contextlib.suppress(OSError):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                if (match := re.match(r"import\s+(__editable__\w+)", line)) is not None:
                    packages |= _editable(site / f"{match[1]}.py")
                elif (
                    line.strip()
                    and not line.startswith(("#", "import ", "import\t"))
                    and (site / line.strip()).is_dir()
                ):
                    folders.append(Path(os.path.normpath(site / line.strip())))
    return folders, packages


def _editable(finder: Path) -> dict[str, Path]:
    """The MAPPING that setuptools writes into the finder of an editable install."""
    with contextlib.suppress(OSError, SyntaxError, ValueError):
        for node in ast.parse(finder.read_text(encoding="utf-8")).body:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
            if any(isinstance(target, ast.Name) and target.id == "MAPPING" for target in targets):
                return {name: Path(path) for name, path in ast.literal_eval(node.value).items() if "." not in name}  # type: ignore[attr-defined]
    return {}


def _name_of(each: importlib.metadata.Distribution) -> str:
    """A distribution's name; of one whose metadata is gone, what its folder is called."""
    folder = getattr(each, "_path", None)
    return each.metadata["Name"] or (folder.name.split("-")[0] if folder is not None else "")


def _gone(each: importlib.metadata.Distribution) -> str:
    """The first module listed in RECORD that is not on disk."""
    return next((name for name in _listed(each) if not os.path.lexists(str(each.locate_file(name)))), "")


def _listed(each: importlib.metadata.Distribution) -> Iterator[str]:
    for line in (each.read_text("RECORD") or "").splitlines()[:_SAMPLE]:
        name = line.rsplit(",", 2)[0].strip('"')
        if name.endswith(".py"):
            yield name
