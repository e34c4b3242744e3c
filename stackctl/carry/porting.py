"""A condition of ours where upstream moved its host to another file and rewrote it: the text of a proposal, never of a result.

Upstream's condition is found by the operand that it still shares with the base's, `self` and the first parameter of the
new function taken for one; there must be exactly one. Ours joins it at the end, where it stood in ours.
"""

from __future__ import annotations

import ast
import difflib
import re
from dataclasses import dataclass

from stackctl.carry.edits import Difference, Edit
from stackctl.carry.merge3 import Half, head_of, module_names, provable, visible
from stackctl.carry.placing import BUILTINS, Placer, Refused, short
from stackctl.carry.texts import Text
from stackctl.carry.world import World

_TELLING = 2  # names that an operand must have so that finding it again says something
_SELF = re.compile(r"\bself\b")


@dataclass(frozen=True)
class Ported:
    """A file with ours ported into it, and what was assumed."""

    text: str
    how: str

    def difference(self, path: str, old: str) -> str:
        """What changes in the file, with its name."""
        lines = difflib.unified_diff(old.splitlines(), self.text.splitlines(), f"upstream's {path}", "proposed", lineterm="", n=3)
        return "\n".join(lines)


def port(base: Text, ours: Text, half: Half, target: Text, host: str, world: World) -> Ported | None:
    """One half of ours in the function `host` of another file; None where it is no added operand, or has no one place."""
    edit = _operand_edit(base, ours, half)
    node = target.hosts.get(host)
    if edit is None or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    try:
        return _Porter(base, ours, target, {}).port(edit, node, host, world)
    except Refused:
        return None


def _operand_edit(base: Text, ours: Text, half: Half) -> Edit | None:
    """The edit that a half is, if it only adds operands behind all that the base has."""
    edits = [each for each in Difference(base, ours).edits() if each.rows == half.rows]
    if len(edits) != 1 or edits[0].kind != "operand" or len(edits[0].old) != 1 or edits[0].near[1] is not None:
        return None
    return edits[0] if isinstance(edits[0].old[0], ast.BoolOp) and edits[0].new else None


class _Porter(Placer):
    def port(self, edit: Edit, node: ast.FunctionDef | ast.AsyncFunctionDef, host: str, world: World) -> Ported:
        """Raises Refused where there is not one place, or what ours reads is not known there."""
        self_is = node.args.args[0].arg if node.args.args else "self"
        there = self._condition(edit.old[0], node, self_is)
        codes = [self._renamed(self._operand(each), node, self_is) for each in edit.new]
        word = "and" if isinstance(there.op, ast.And) else "or"
        read = {each.id for new in edit.new for each in ast.walk(new) if isinstance(each, ast.Name)} - {"self"}
        known = module_names(self.target) | visible(self.target, host) | BUILTINS
        imports = provable(sorted(read - known), (self.ours, self.base), world)
        end = self._close(there.values[-1])
        where = f"ours `{short(codes[0])}` at the end of line {there.lineno}'s condition in {host}, where upstream has `{short(self.target.code(there))}`"
        text = self.target.replaced([(end, end, "".join(f" {word} {code}" for code in codes))])
        for line in imports:
            self.target = Text(text)
            text = self.add_import(line, head_of(self.target))
        Text(text)
        return Ported(text, "; ".join([where, *(f"`{line}` comes along" for line in imports)]))

    def _condition(self, old: ast.AST, node: ast.AST, self_is: str) -> ast.BoolOp:
        """The only operation of the function that shares a telling operand with the base's."""
        assert isinstance(old, ast.BoolOp)
        wanted = {_key(each, self_is) for each in old.values if len(_names(each)) >= _TELLING}
        found = [
            each for each in ast.walk(node)
            if isinstance(each, ast.BoolOp) and type(each.op) is type(old.op) and wanted & {_key(one, self_is) for one in each.values}
        ]  # fmt: skip
        if len(found) != 1:
            raise Refused(f"{len(found)} conditions like it")
        return found[0]

    def _renamed(self, code: str, node: ast.AST, self_is: str) -> str:
        """Our operand with the new function's name for `self`; what it reads of it must be read there too."""
        have = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute) and _is_name(each.value, self_is)}
        want = {each.attr for each in ast.walk(ast.parse(code.strip(), mode="eval")) if isinstance(each, ast.Attribute) and _is_name(each.value, "self")}
        if not want <= have:
            raise Refused(f"{', '.join(sorted(want - have))} is not read there")
        return _SELF.sub(self_is, code)


def _key(node: ast.AST, self_is: str) -> str:
    return ast.dump(node).replace("Name(id='self'", f"Name(id='{self_is}'")


def _names(node: ast.AST) -> set[str]:
    """The names and attributes that an expression speaks of."""
    return {each.id if isinstance(each, ast.Name) else each.attr for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute))} - {"self"}


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
