"""`stackctl audit`: judge one merge by its four sides."""

from __future__ import annotations

import json
from pathlib import Path

import click

from stackctl.census.audit import Audit
from stackctl.census.sides import Sides
from stackctl.facts.cache import FactsCache
from stackctl.trees.tree import FolderTree


@click.command("audit")
@click.option("--base", required=True)
@click.option("--ours", required=True)
@click.option("--theirs", required=True)
@click.option("--merged", required=True)
@click.option("--format", "form", default="text")
def command(base: str, ours: str, theirs: str, merged: str, form: str) -> None:
    """What became of every half in a merge."""
    trees = [FolderTree(Path(p)) for p in (base, ours, theirs, merged)]
    audit = Audit(Sides(*trees, FactsCache(None))).run()
    report = audit.report()
    print(json.dumps(report.to_json(), indent=1))
    raise SystemExit(int(report.exit))


if __name__ == "__main__":
    command()
