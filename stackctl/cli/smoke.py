"""`stackctl smoke`: boot real SGLang code from a planted tree, load it, judge it."""

from __future__ import annotations

import contextlib
import functools
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackctl.cli.common import Settings, open_repository, repo_option, status

if TYPE_CHECKING:
    from stackctl.smoke.environment import Environment
    from stackctl.smoke.results import Subject
    from stackctl.smoke.servers import Host
    from stackctl.trees.git import Repository
    from stackctl.trees.tree import OverlayTree


@click.group()
def command() -> None:
    """Boot real SGLang code from a planted tree, load it, judge it; without a GPU, its whole HTTP front end."""


_DIR = click.option("--dir", "directory", type=click.Path(path_type=Path), help="The environment's folder; default: in the cache.")
_TORCH = click.option("--torch", help="The pip requirement for torch; any build serves. Default: a CPU build where the index has one.")
_ENGINE = click.option(
    "--engine", type=click.Choice(["frontend", "gpu"]), default="frontend", show_default=True,
    help="frontend: the real HTTP front end and a stand-in scheduler; gpu: the whole engine.",
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """How the person named what is to be tested: one of onto, at and tree."""

    repo: Path | None = None
    onto: str | None = None
    at: str | None = None
    tree: Path | None = None
    release: str | None = None


def _source_options(function: Callable[..., int]) -> Callable[..., int]:
    """The options that name it, handed over as one argument."""

    @functools.wraps(function)
    def with_source(**options: Any) -> int:
        source = Source(**{field.name: options.pop(field.name) for field in fields(Source)})
        return function(source=source, **options)

    for option in (
        click.option("--release", help="The tree's SGLang release; default: from its version file or the nearest tag."),
        click.option("--tree", type=click.Path(path_type=Path), help="A folder with the planted tree, instead of --at."),
        click.option("--onto", help="Plant the stack on this upstream commit or tag for the run, such as v0.5.23; no branch is written."),
        click.option("--at", help="The planted commit to run."),
        repo_option,
    ):
        with_source = option(with_source)
    return with_source


@command.command()
@_ENGINE
@click.option("--release", required=True, help="The SGLang release, such as 0.5.23.")
@_DIR
@_TORCH
@click.pass_obj
def prepare(settings: Settings, engine: str, release: str, directory: Path | None, torch: str | None) -> int:
    """Make an environment: packages of a release and a small model folder (frontend: CPU only, about 1.6 GB)."""
    env = _prepare(settings, release, directory, torch, engine)
    click.echo(f"python {env.python}\nmodel  {env.model}")
    return 0


@command.command()
@click.argument("scenarios", nargs=-1)
@_source_options
@click.option("--check", "check", help="Run one script of the stack's checks/smoke instead, such as chat_conversion.")
@_ENGINE
@click.option("--out", type=click.Path(path_type=Path), help="The run's folder, new or empty; default: a new one below smoke-runs/ in the cache.")
@click.option("--arm", "arms", multiple=True, help="Only this arm (again for more).")
@click.option("--case", "cases", multiple=True, help="Only this case (again for more).")
@click.option("--runs", type=click.IntRange(1), help="How often each arm runs, instead of what the scenario says.")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Change a setting of the load, as in --set seconds=5 (again for more).")
@click.option("--patience", type=click.FloatRange(0), default=0, help="Minutes to wait, before each run, until others leave the machine alone.")
@click.option("--python", type=click.Path(path_type=Path), help="An interpreter that has SGLang, instead of a prepared environment.")
@click.option("--model", type=click.Path(path_type=Path), help="The model folder to serve, with --python.")
@click.option("--time-limit", type=click.FloatRange(1), help="Minutes after which the run is ended and counts as not judged.")
@_DIR
@_TORCH
@click.pass_obj
def run(settings: Settings, scenarios: tuple[str, ...], source: Source,
        check: str | None, engine: str, out: Path | None, arms: tuple[str, ...], cases: tuple[str, ...], runs: int | None,
        changes: tuple[str, ...], patience: float, python: Path | None, model: Path | None, time_limit: float | None,
        directory: Path | None, torch: str | None) -> int:  # fmt: skip
    """Run SCENARIOS of the stack's checks/smoke, or files; all that run by default when none is named.

    Exit code 0: every claim holds. 1: one does not. 2: nothing failed, but something could not be judged.
    """
    from stackctl.smoke.results import require_engine
    from stackctl.smoke.running import Wish
    from stackctl.smoke.scenario import find_scenarios

    require_engine(engine)
    wish = Wish(arms, cases, runs, _changes(changes), patience * 60)
    if check:
        return _run_check(settings, check, source, directory, torch)
    found = find_scenarios(_checks(settings), scenarios)
    folder = _out_folder(out)
    with _time_limit(time_limit), _subject(settings, folder, source) as (subject, tree):
        host = _host(settings, subject, tree, engine, (python, model), directory, torch)
        return _run_job(settings, found, host, subject, folder, wish)


@command.command()
@click.argument("left", type=click.Path(path_type=Path))
@click.argument("right", type=click.Path(path_type=Path))
@click.option("--all", "everything", is_flag=True, help="Also the metrics that do not differ.")
def compare(left: Path, right: Path, everything: bool) -> int:
    """Put the results of two runs' folders beside each other."""
    from stackctl.smoke.compare import compare_folders

    click.echo(compare_folders(left, right, everything))
    return 0


@command.command()
@_source_options
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The archive to write, such as smoke.tar.gz.")
@_DIR
@_TORCH
@click.pass_obj
def bundle(settings: Settings, source: Source, out: Path,
           directory: Path | None, torch: str | None) -> int:  # fmt: skip
    """Pack a planted tree, the model folder, scenarios and stackctl for a GPU host that has SGLang and no network."""
    import tempfile

    from stackctl.smoke.bundle import write_bundle

    with tempfile.TemporaryDirectory(prefix="stackctl-bundle-") as scratch, _subject(settings, Path(scratch), source) as (subject, tree):
        env = _prepare(settings, subject.release, directory, torch, "frontend")
        write_bundle(out, tree, env.model, _checks(settings), subject)
    click.echo(f"{out}\non the GPU host: tar xf {out.name} && stackctl-smoke/run PYTHON-THAT-HAS-SGLANG")
    return 0


@command.command()
@click.argument("scenarios", nargs=-1, required=True)
@click.option("--ray", "address", required=True, help="The Ray cluster: an address, or auto.")
@click.option("--release", "releases", multiple=True, required=True, help="A release to plant the stack on, such as 0.5.23 (again for more).")
@click.option("--python", required=True, help="The hosts' interpreter that has SGLang; {release} in it is replaced.")
@_ENGINE
@click.option("--out", type=click.Path(path_type=Path), help="The matrix's folder, new or empty; default: a new one in the cache.")
@click.option("--time-limit", type=click.FloatRange(1), default=60, show_default=True, help="Minutes that one run may take.")
@repo_option
@_DIR
@_TORCH
@click.pass_obj
def matrix(settings: Settings, scenarios: tuple[str, ...], address: str, releases: tuple[str, ...], python: str, engine: str,
           out: Path | None, time_limit: float, repo: Path | None, directory: Path | None, torch: str | None) -> int:  # fmt: skip
    """Run SCENARIOS for several releases on every host of a Ray cluster, one GPU a run."""
    import tempfile

    from stackctl.model.verdict import Exit
    from stackctl.smoke.bundle import write_bundle
    from stackctl.smoke.matrix import Order, run_matrix

    folder = _out_folder(out)
    bundles: dict[str, Path] = {}
    with tempfile.TemporaryDirectory(prefix="stackctl-bundle-") as scratch:
        for release in dict.fromkeys(releases):
            place, source = Path(scratch) / release, Source(repo, onto=f"v{release}")
            with _subject(settings, place, source) as (subject, tree):
                env = _prepare(settings, subject.release, directory, torch, "frontend")
                bundles[release] = place / "bundle.tar.gz"
                write_bundle(bundles[release], tree, env.model, _checks(settings), subject)
        cells = run_matrix(address, bundles, Order(scenarios, engine, python, time_limit), folder, settings.say)
    words = {0: "passed", 1: "failed", 2: "not judged"}
    for cell in cells:
        click.echo(f"{cell.release}  {cell.host}  {words.get(cell.code if cell.code is not None else -1, 'did not come back')}")
    click.echo(f"results in {folder}")
    codes = {cell.code for cell in cells}
    return Exit.FINDINGS if 1 in codes else Exit.CLEAN if codes == {0} else Exit.NOT_JUDGED


def _run_job(settings: Settings, found: list[Any], host: Host, subject: Subject, folder: Path, wish: Any) -> int:
    from stackctl.smoke.report import exit_code, summary
    from stackctl.smoke.session import Job, run_job

    with status(settings, "running"):
        done = run_job(Job(found, host, subject, folder, wish, settings.say))
    click.echo(summary(done, folder))
    return exit_code(done)


def _run_check(settings: Settings, check: str, source: Source,
               directory: Path | None, torch: str | None) -> int:  # fmt: skip
    import subprocess
    import tempfile

    from stackctl.model.errors import StackctlError
    from stackctl.smoke.environment import run_check

    script = _checks(settings) / f"{check}.py"
    if not script.is_file() or "/" in check:
        raise StackctlError(f"no check {check!r}", str(script.parent))
    with tempfile.TemporaryDirectory(prefix="stackctl-tree-") as scratch, _subject(settings, Path(scratch), source) as (subject, tree):
        env = _prepare(settings, subject.release, directory, torch, "frontend")
        try:
            done = run_check(env, tree, script=script, timeout=600)
        except subprocess.TimeoutExpired:
            raise StackctlError(f"{check} did not end within 10 minutes", subject.tree) from None
    click.echo(done.stdout.strip())
    if done.returncode:
        click.echo(done.stderr.strip()[-4000:], err=True)
    return 1 if done.returncode else 0


def _checks(settings: Settings) -> Path:
    from stackctl.plants.stacks import find_stack

    return find_stack(settings.stack_dir or Path.cwd()) / "checks" / "smoke"


@contextlib.contextmanager
def _subject(settings: Settings, scratch: Path, source: Source) -> Iterator[tuple[Subject, Path]]:
    """What is tested, and a folder that holds it for as long as the run takes."""
    import shutil

    from stackctl.model.errors import StackctlError

    if sum(map(bool, (source.onto, source.at, source.tree))) != 1:
        raise StackctlError("say what to run", hint="one of --onto v0.5.23, --at BRANCH and --tree FOLDER")
    if (folder := source.tree) and not (folder / "python" / "sglang").is_dir():
        raise StackctlError("no python/sglang in this tree", str(folder))
    written = scratch.absolute() / "tree"
    try:
        with status(settings, "writing the tree out"):
            subject = _write_tree(settings, source, written)
        yield subject, written
    finally:
        shutil.rmtree(written, ignore_errors=True)


def _write_tree(settings: Settings, source: Source, written: Path) -> Subject:
    """A copy of what is tested: Python writes bytecode beside it, which no folder of the person's is to hold."""
    import shutil

    from stackctl.smoke.results import Subject
    from stackctl.trees.export import export
    from stackctl.trees.release import release_of
    from stackctl.trees.tree import FolderTree, GitTree

    if source.tree:
        shutil.copytree(source.tree / "python", written / "python", ignore=shutil.ignore_patterns("__pycache__"))
        return Subject(release_of(FolderTree(source.tree), source.release).version, str(source.tree), None)
    repository = open_repository(source.repo)
    planted = GitTree(repository, source.at) if source.at else _planted(settings, repository, source)
    export(planted, written)
    base = planted if isinstance(planted, GitTree) else planted.base
    return Subject(release_of(planted, source.release).version, source.at or f"the stack on {source.onto}", base.commit)


def _planted(settings: Settings, repository: Repository, source: Source) -> OverlayTree:
    """The stack on a release, in memory. Raises StackctlError where a half of it cannot be placed."""
    from stackctl.carry.apply import apply
    from stackctl.model.errors import StackctlError
    from stackctl.plants.judging import is_bad
    from stackctl.trees.tree import GitTree, OverlayTree

    with status(settings, f"planting on {source.onto}"):
        planted = apply(settings.stack(), repository, str(source.onto), branch="smoke", release=source.release, dry_run=True)
    left = [f"{outcome.entry.number}/{plant.id}" for outcome in planted.outcomes for plant, found in outcome.judged if is_bad(found)]
    if left:
        raise StackctlError(f"halves that cannot be placed: {', '.join(left)}", str(source.onto), "see: stackctl apply --dry-run")
    changes = {path: data for outcome in planted.outcomes for path, data in outcome.changes.items()}
    return OverlayTree(GitTree(repository, planted.start), changes)


def _host(settings: Settings, subject: Subject, tree: Path, engine: str, own: tuple[Path | None, Path | None],
          directory: Path | None, torch: str | None) -> Host:  # fmt: skip
    """The interpreter and model that were named, else a prepared environment's."""
    from stackctl.model.errors import StackctlError
    from stackctl.smoke.servers import Host

    python, model = own
    if python and not model:
        raise StackctlError("--python needs --model: the folder to serve")
    if python and model:
        return Host(python.absolute(), model.absolute(), tree, engine)
    env = _prepare(settings, subject.release, directory, torch, engine)
    return Host(env.python, model.absolute() if model else env.model, tree, engine)


def _out_folder(out: Path | None) -> Path:
    from stackctl.model.errors import StackctlError
    from stackctl.smoke.running import now_utc
    from stackctl.trees.cache import cache_folder

    folder = out or cache_folder() / "smoke-runs" / now_utc().replace(":", "")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StackctlError("is not a new or an empty folder", str(folder), "name another one with --out")
    folder.mkdir(parents=True, exist_ok=True)
    return folder.absolute()


def _changes(changes: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE pairs, each value as TOML writes it, else as the text it is."""
    import tomllib

    from stackctl.model.errors import StackctlError

    found: dict[str, Any] = {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not name or not equals:
            raise StackctlError(f"not a setting: {change!r}", hint="as in --set seconds=5")
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name] = value
    return found


@contextlib.contextmanager
def _time_limit(minutes: float | None) -> Iterator[None]:
    """SIGTERM and the end of the time become exceptions, so that whatever was started is ended on the way out."""
    from stackctl.model.errors import StackctlError

    def stop(signum: int, _: object) -> None:
        if signum == signal.SIGALRM:
            raise StackctlError(f"not done within {minutes:g} minutes; nothing that did not run counts as passed")
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_REAL, (minutes or 0) * 60)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _prepare(settings: Settings, release: str, directory: Path | None, torch: str | None, engine: str) -> Environment:
    from stackctl.smoke.environment import TORCH, prepare
    from stackctl.trees.cache import cache_folder

    folder = directory or cache_folder() / "smoke" / f"{engine}-{release}"
    return prepare(release, folder, progress=settings.say, torch=torch or TORCH, engine=engine)
