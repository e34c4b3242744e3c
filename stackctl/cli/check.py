"""`stackctl check rules`: the stack's own rules, on their examples and on a tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackctl.cli.common import FORMATS, Settings, format_option, open_repository, render, repo_option, status

if TYPE_CHECKING:
    from stackctl.trees.tree import Tree


@click.command("check")
@click.argument("what", type=click.Choice(["rules"]))
@repo_option
@click.option("--at", metavar="REF", help="Check this commit too; without it only the rules' own examples are run.")
@click.option("--tree", "folder", type=click.Path(path_type=Path), help="Check this folder too.")
@click.option("--release", help="The tree's SGLang release; default: from its version file or the nearest tag.")
@format_option(*FORMATS)
@click.pass_obj
def command(
    settings: Settings, what: str, repo: Path | None, at: str | None, folder: Path | None, release: str | None, form: str
) -> int:
    """Run every rule of checks/rules/ on its own examples and, with --at or --tree, on a tree.

    A rule whose good example trips it, whose bad example does not, or that can match nothing is a finding.
    """
    from stackctl.census.checks import check_rules, load_rules, try_rules
    from stackctl.model.report import Report
    from stackctl.plants.stacks import find_stack
    from stackctl.trees.release import release_of

    root = find_stack(settings.stack_dir or Path.cwd())
    rules = load_rules(root)
    with status(settings, "checking"):
        findings = try_rules(rules)
        tree = _tree(repo, at, folder)
        found = release_of(tree, release) if tree else None
        if tree and found:
            findings += check_rules(rules, tree, found)
    due = [rule.name for rule in rules if found and rule.due(found)]
    summary = {"rules": [rule.name for rule in rules], "tree": tree.label if tree else None, "release": str(found or ""), "due": due}
    report = Report("check", findings=tuple(findings), summary=summary)
    render(report, form)
    if form == "text":
        examples = sum(len(rule.examples) for rule in rules)
        on = f", {len(due)} of them on {tree.label} ({found})" if tree else ""
        click.echo(f"{_count(len(rules), 'rule')}, {_count(examples, 'example')}{on}")
        if not rules:
            settings.say("no rule is in checks/rules: how to write one: stackctl explain rule")
    return int(report.exit)


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"


def _tree(repo: Path | None, at: str | None, folder: Path | None) -> Tree | None:
    from stackctl.trees.tree import FolderTree, GitTree

    if at and folder:
        raise click.UsageError("name one tree: --at or --tree")
    if folder:
        return FolderTree(folder)
    return GitTree(open_repository(repo), at) if at else None
