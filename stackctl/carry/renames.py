"""Renames that upstream's own rewriting of a file teaches: one base expression, always the same new one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping

from stackctl.carry.edits import Difference
from stackctl.carry.texts import Text


def learnt(base: Text, theirs: Text) -> dict[str, str]:
    """The base's expressions (`f()`, `self.x`) that upstream replaced wherever they stood, and by what.

    One place teaches nothing: upstream may have meant something else there.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for edit in Difference(base, theirs).edits():
        if edit.kind == "expression" and not edit.name and _is_plain(edit.old[0]):
            found[ast.dump(edit.old[0])].append(ast.unparse(edit.new[0]))
    if not found:
        return {}
    left = {ast.dump(node) for node in ast.walk(theirs.tree) if isinstance(node, ast.expr) and _is_plain(node)}
    return {key: new[0] for key, new in found.items() if key not in left and len(new) > 1 and len(set(new)) == 1}


def renamed(text: Text, names: Mapping[str, str]) -> Text:
    """The module with learnt renames made everywhere. Raises SourceError if it would not parse."""
    edits = [
        (*text.span(node), names[key])
        for node in ast.walk(text.tree)
        if isinstance(node, ast.expr) and _is_plain(node) and (key := ast.dump(node)) in names
    ]
    return Text(text.replaced(edits)) if edits else text


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return not node.args and not node.keywords and isinstance(node.func, (ast.Name, ast.Attribute))
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        and isinstance(node.ctx, ast.Load)
    )
