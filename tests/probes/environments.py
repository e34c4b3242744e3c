"""Small environments for tests: a folder that looks as `python -m venv` and pip leave one."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

from stackctl.model.probe import Answer, Probe
from stackctl.probes.environment import Environment, open_environment
from stackctl.probes.kinds import Asked, ask
from stackctl.probes.launch import parse_launch
from tests.support import write_files

LIBRARY = "lib/python3.11/site-packages"


def venv(folder: Path, files: dict[str, str] | None = None, **versions: str) -> Path:
    """An environment with modules and distributions (name with _ for -, version); returns its interpreter."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    python = folder / "bin" / "python"
    if not python.is_symlink():
        python.symlink_to(sys.executable)
    home = Path(sys.executable).resolve().parent
    write_files(folder, {"pyvenv.cfg": f"home = {home}\nversion = 3.11.7\n", f"{LIBRARY}/README": ""})
    write_files(folder / LIBRARY, {name: dedent(text) for name, text in (files or {}).items()})
    for name, version in versions.items():
        install(folder, name.replace("_", "-"), version)
    return python


def install(folder: Path, name: str, version: str, record: str = "") -> None:
    """A distribution's metadata."""
    stem = f"{LIBRARY}/{name.replace('-', '_')}-{version}.dist-info"
    write_files(
        folder,
        {f"{stem}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", f"{stem}/RECORD": record},
    )


def answer(
    where: Path | Environment,
    kind: str,
    launch: str | None = None,
    variables: dict[str, str] | None = None,
    **options: str,
) -> Answer:
    """The answer of an environment to one probe."""
    environment = open_environment(where) if isinstance(where, Path) else where
    command = parse_launch(launch) if launch is not None else None
    return ask(Probe("p", kind, "?", options=options), Asked(environment, command, variables or {}))
