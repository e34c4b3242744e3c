"""Audit rules, one per module: each looks at the merged tree and says what no longer fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stackctl.census.rules.attributes import module_attributes, patch_targets
from stackctl.census.rules.comments import lost_comments
from stackctl.census.rules.context import Context
from stackctl.census.rules.dead_overrides import dead_overrides
from stackctl.census.rules.defaults import changed_defaults
from stackctl.census.rules.imports import unresolved_imports
from stackctl.census.rules.instances import self_attributes
from stackctl.census.rules.markers import markers
from stackctl.census.rules.options import stale_options
from stackctl.census.rules.orphans import orphans
from stackctl.census.rules.overwritten import overwritten
from stackctl.census.rules.registrations import double_registrations
from stackctl.census.rules.shadowed import shadowed_definitions
from stackctl.census.rules.siblings import new_siblings
from stackctl.census.rules.signatures import calls, overrides
from stackctl.census.rules.stubs import stale_stubs
from stackctl.census.rules.unbound import unbound_names
from stackctl.census.rules.unparsable import unparsable_files
from stackctl.model.report import Finding

Rule = Callable[[Context], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    markers,
    unparsable_files,
    unresolved_imports,
    unbound_names,
    module_attributes,
    patch_targets,
    self_attributes,
    calls,
    overrides,
    dead_overrides,
    stale_stubs,
    shadowed_definitions,
    overwritten,
    double_registrations,
    stale_options,
    changed_defaults,
    new_siblings,
    orphans,
    lost_comments,
)


def run_rules(context: Context) -> list[Finding]:
    """Every rule's findings, in the order of the rules."""
    return [finding for rule in RULES for finding in rule(context)]
