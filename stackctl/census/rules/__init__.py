"""Audit rules, one per module: each looks at the merged tree and says what no longer fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from stackctl.model.report import Finding

if TYPE_CHECKING:
    from stackctl.census.audit import Audit

Rule = Callable[["Audit"], Iterator[Finding]]


def run_rules(audit: Audit) -> list[Finding]:
    """Every rule's findings."""
    return [finding for rule in RULES for finding in rule(audit)]


RULES: tuple[Rule, ...] = ()
