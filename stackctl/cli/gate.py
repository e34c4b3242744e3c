"""`stackctl gate`: what CI runs on a merge or a pull request of the fork."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackctl.cli.common import FORMATS, Settings, format_option, open_repository, render, repo_option, status, view

if TYPE_CHECKING:
    from stackctl.model.report import Report

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("gate")
@repo_option
@click.option("--at", default="HEAD", show_default=True, metavar="REF", help="The commit to judge.")
@click.option("--merge", metavar="COMMIT", help="The merge to audit, with the tree at --at as its result; default: --at itself, or the merges since --frozen.")
@click.option("--frozen", metavar="REF", help="A commit of the stack's own repository: what it declares there must be declared still. Default: the merge's first parent.")
@click.option("--baseline", type=_FILE, help="Known findings, each with a reason and an expiry; default: checks/baseline.toml if it is there.")
@click.option("--release", help="The tree's SGLang release; default: from its version file or the nearest tag.")
@click.option("--upstream", help="Stock upstream's commit, for `adopted`; default: the tag of the tree's release.")
@click.option("--entry-pattern", metavar="REGEX", help="Finds the entry in a commit's subject; its first group, else the match, is the name.")
@click.option("--summary", type=_FILE, help="Append the report as Markdown to this file, too ($GITHUB_STEP_SUMMARY).")
@click.option("--sarif", type=_FILE, help="Write it as SARIF 2.1.0 to this file, too.")
@click.option("--junit", type=_FILE, help="Write it as JUnit XML to this file, too.")
@click.option("--json", "data", type=_FILE, help="Write it as JSON to this file, too.")
@format_option(*FORMATS)
@click.pass_obj
def command(
    settings: Settings, repo: Path | None, at: str, merge: str | None, frozen: str | None, baseline: Path | None,
    release: str | None, upstream: str | None, entry_pattern: str | None, summary: Path | None, sarif: Path | None,
    junit: Path | None, data: Path | None, form: str,
) -> int:  # fmt: skip
    """Judge a merge or a pull request: census, audit of the merge, expected set, markers, rules.

    One run can write every format. Exit code 0: nothing of error level; 1: something; 2: something could not be
    judged, which is red as well. Snippets for GitHub, GitLab and Git hooks: stackctl explain gate.
    """
    from stackctl.census.gate import Gate, Question
    from stackctl.plants.stacks import find_stack

    root = find_stack(settings.stack_dir or Path.cwd())
    question = Question(root, open_repository(repo), at, merge, frozen, baseline, release, upstream, entry_pattern)
    with status(settings, "judging"):
        report = Gate(question).run()
    _write(report, {"sarif": sarif, "junit": junit, "json": data})
    if summary is not None:
        with summary.open("a", encoding="utf-8") as file:
            file.write(view(report, "md") + "\n")
    render(report, form)
    return int(report.exit)


def _write(report: Report, files: dict[str, Path | None]) -> None:
    """Every file that was asked for; a clean report too, for it is what closes old alerts."""
    for form, path in files.items():
        if path is not None:
            path.write_text(view(report, form) + "\n", encoding="utf-8")
