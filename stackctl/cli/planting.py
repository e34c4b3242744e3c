"""What `apply` and `replant` share: their options, and the report on a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from stackctl.cli.common import Settings, render

if TYPE_CHECKING:
    from stackctl.carry.apply import Run
    from stackctl.model.report import Finding
    from stackctl.model.stack import Stack


def finish(settings: Settings, stack: Stack, run: Run, command: str, form: str, *, dry_run: bool, left: Sequence[Finding] = (), more: Mapping[str, Any] | None = None) -> int:
    """Print what a run did and return its exit code; `left` are findings that no entry declares, `more` goes into the summary."""
    from stackctl.census.verify import report

    summary = {
        "release": str(run.release), "branch": run.branch, "start": run.start, "tip": run.tip,
        "commits": run.commits, "stock": run.stock, "dry_run": dry_run, "mended": list(run.mended), **(more or {}),
    }  # fmt: skip
    result = report(command, stack, [(outcome.entry, outcome.judged) for outcome in run.outcomes], summary)
    result = replace(result, findings=(*result.findings, *left))
    render(result, form)
    if form == "text":
        click.echo(_said(run, dry_run))
    return result.exit


def _said(run: Run, dry_run: bool) -> str:
    changed = [outcome for outcome in run.outcomes if outcome.changes]
    if dry_run:
        paths = sorted({path for outcome in changed for path in outcome.changes} | set(run.mended))
        return f"dry run: {len(paths)} files would change; nothing was written" + "".join(f"\n  {path}" for path in paths)
    if not run.commits:
        return f"branch {run.branch}: nothing to do"
    plants = sum(len(outcome.planted) for outcome in changed)
    commits = "1 commit" if run.commits == 1 else f"{run.commits} commits"
    mended = f", {len(run.mended)} {'file' if len(run.mended) == 1 else 'files'} mended" if run.mended else ""
    return f"branch {run.branch}: {plants} halves planted{mended} in {commits}, tip {run.tip[:12]}"
