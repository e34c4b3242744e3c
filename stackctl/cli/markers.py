"""`stackctl markers`: the comments that a merge left for a later decision."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackctl.cli.common import FORMATS, Settings, format_option, open_repository, render, repo_option, status

if TYPE_CHECKING:
    from stackctl.census.markers import Census, Marker
    from stackctl.model.report import Report
    from stackctl.model.stack import Stack
    from stackctl.trees.git import Repository


@click.command("markers")
@repo_option
@click.option("--at", default="HEAD", show_default=True, metavar="REF", help="The commit to count in.")
@click.option("--since", metavar="REF", help="Every marker of this commit must be there still, or be consumed by a decision.")
@click.option("--batch", help="The batch at work: it may grow shorter; every other one must be intact against --since.")
@click.option("--release", help="The tree's SGLang release; default: from its version file or the nearest tag.")
@click.option("--consume", "name", metavar="ID", help="Record the decision with which this marker is consumed, in checks/markers.toml.")
@click.option("--decision", metavar="TEXT", help="What was decided, and on what evidence.")
@format_option(*FORMATS)
@click.pass_obj
def command(
    settings: Settings, repo: Path | None, at: str, since: str | None, batch: str | None, release: str | None,
    name: str | None, decision: str | None, form: str,
) -> int:  # fmt: skip
    """Count and list merge markers by batch and entry, and hold that none is lost without a decision.

    The usual form is `# MERGE-TODO B4 (61,176): what is to be decided`; [markers] pattern in stack.toml is
    another, with groups named batch, entries and text. A marker of --since that is gone with no decision on
    record is an error.
    """
    if bool(name) != bool(decision):
        raise click.UsageError("--consume and --decision go together")
    if batch and not since:
        raise click.UsageError("--batch needs --since: against what are the other batches intact?")
    stack, repository = settings.stack(), open_repository(repo)
    with status(settings, "counting"):
        if name and decision:
            return _consume(settings, stack, repository, (since, at, release), name, decision)
        census = _count(stack, repository, (since, at, release), batch or "")
    report = _report(stack, census, at, since, waits=since is None)
    render(report, form)
    if form == "text":
        _print(census)
    return int(report.exit)


_Where = tuple[str | None, str, str | None]


def _find(stack: Stack, repository: Repository, ref: str, release: str | None) -> list[Marker]:
    """The markers of one commit; of files that stock upstream does not have just like that, if it is known."""
    from stackctl.census.markers import find_markers, pattern_of
    from stackctl.model.errors import StackctlError
    from stackctl.trees.release import release_of
    from stackctl.trees.stock import stock_tree
    from stackctl.trees.tree import GitTree

    tree = GitTree(repository, ref)
    try:
        stock = stock_tree(repository, release_of(tree, release))
    except StackctlError:
        stock = None  # every file is read then
    return find_markers(tree, stock, pattern_of(stack))


def _count(stack: Stack, repository: Repository, where: _Where, batch: str) -> Census:
    from stackctl.census.markers import LEDGER, count, load_consumed

    since, at, release = where
    before = _find(stack, repository, since, release) if since else []
    return count(_find(stack, repository, at, release), before, load_consumed(stack.root / LEDGER), since or "", batch)


def _consume(settings: Settings, stack: Stack, repository: Repository, where: _Where, name: str, decision: str) -> int:
    from stackctl.census.markers import LEDGER, consume

    since, at, release = where
    markers = _find(stack, repository, at, release)
    if since:  # the comment may be gone already
        here = {marker.id for marker in markers}
        markers += [marker for marker in _find(stack, repository, since, release) if marker.id not in here]
    marker = consume(stack.root / LEDGER, markers, name, decision)
    settings.say(f"{stack.root / LEDGER}: marker {marker.id} ({marker.path}:{marker.line}) is consumed")
    return 0


def _report(stack: Stack, census: Census, at: str, since: str | None, *, waits: bool) -> Report:
    """What is wrong; and, with no commit to compare to, every marker that waits."""
    from stackctl.census.markers import leftovers
    from stackctl.model.report import Report

    decided = {(finding.path, finding.line) for finding in census.findings}
    waiting = [finding for finding in leftovers(census.now) if (finding.path, finding.line) not in decided] if waits else []
    markers = [
        {"id": m.id, "path": m.path, "line": m.line, "batch": m.batch, "entries": list(m.entries), "text": m.text}
        for m in census.now
    ]
    summary = {
        "stack": stack.name, "tree": at, "since": since, "left": len(census.now), "batches": census.batches(),
        "entries": census.entries(), "markers": markers,
    }  # fmt: skip
    return Report("markers", findings=(*census.findings, *waiting), summary=summary)


def _print(census: Census) -> None:
    for row in census.batches():
        state = "INTACT" if row["intact"] else f"{row['consumed']} consumed, {row['vanished']} gone without a decision"
        was = f" of {row['before']}, {state}" if census.before else ""
        click.echo(f"batch {row['batch'] or '-'}: {row['now']}{was}")
    entries = sorted(census.entries().items(), key=lambda item: (not item[0], len(item[0]), item[0]))
    counts = [f"{f'entry {entry}' if entry else 'of none'} {number}" for entry, number in entries]
    left = len(census.now)
    click.echo(f"{left} marker{'' if left == 1 else 's'} left" + (f": {', '.join(counts)}" if counts else ""))
