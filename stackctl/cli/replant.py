"""`stackctl replant`: make the stack whole on a merged branch."""

from __future__ import annotations

from pathlib import Path

import click

from stackctl.cli.common import Settings, chosen, format_option, open_repository, repo_option, status
from stackctl.cli.planting import finish


@click.command()
@repo_option
@click.option("--at", required=True, help="The branch (or, with --branch, any commit) that a merge made.")
@click.option("--branch", help="Write a new branch, not the one named by --at.")
@click.option("--merge", metavar="COMMIT", help="Also put back what this merge lost of halves that no entry declares; often the same as --at.")
@click.option("--upstream", help="Stock upstream's commit; default: the tag of the tree's release.")
@click.option("--release", help="The tree's SGLang release; default: from its version file or the nearest tag.")
@click.option("--only", type=int, multiple=True, help="Only this entry (again for more).")
@click.option("--without", type=int, multiple=True, help="All but this entry (again for more).")
@click.option("--dry-run", is_flag=True, help="Print what would be done and touch nothing.")
@click.option("--checkout", is_flag=True, help="If the branch is checked out and clean, change the files there too.")
@click.option("--continue", "carry_on", is_flag=True, help="Finish a run that was killed, then go on as usual.")
@format_option("text", "json", "md")
@click.pass_obj
def command(
    settings: Settings, repo: Path | None, at: str, branch: str | None, merge: str | None, upstream: str | None, release: str | None,
    only: tuple[int, ...], without: tuple[int, ...], dry_run: bool, checkout: bool, carry_on: bool, form: str,
) -> int:  # fmt: skip
    """Put lost, altered, misplaced and duplicated halves right, and touch nothing else.

    With --merge the audit of that merge says what else was lost; a stack is not even needed then.
    """
    from stackctl.carry import apply as carry
    from stackctl.carry.mend import mend_merge
    from stackctl.census.memo import Memo
    from stackctl.model.stack import Stack

    repository = open_repository(repo)
    stack = settings.stack_or_none() if merge else settings.stack()
    stack = stack or Stack("none", Path.cwd(), ())
    if carry_on:
        carry.require_pending(repository, branch or at)
    with status(settings, f"replanting {at}"), Memo() as memo:
        mend, left = mend_merge(repository, merge, at) if merge else (None, [])
        run = carry.replant(
            stack, repository, at, branch=branch, entries=chosen(stack, only, without), release=release,
            upstream=upstream, dry_run=dry_run, checkout=checkout, judge=memo.judge, mend=mend,
        )  # fmt: skip
    return finish(settings, stack, run, "replant", form, dry_run=dry_run, left=left)

