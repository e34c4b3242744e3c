"""One of upstream's names under another name, in one host."""

from __future__ import annotations

import ast
import re

from stackctl.model.stack import Entry, Plant
from stackctl.model.verdict import Verdict
from stackctl.plants.errors import Unplantable
from stackctl.plants.kind import Example, Judgement, Kind, Option
from stackctl.plants.module import Host, Module, is_name
from stackctl.plants.view import View, host_of


class Rename(Kind):
    """Every use of a name in the host (variables, attributes, parameters, keywords, definitions) renamed.

    Strings and comments are left alone. Judged: the old name is gone, the new one is used.
    """

    name = "rename"
    summary = "a name replaced by another in one host"
    options = {
        "old": Option(str, "upstream's name", required=True),
        "new": Option(str, "ours", required=True),
        "count": Option(int, "how many uses there are; default: any number above none"),
    }
    examples = (
        Example({"old": "pre", "new": "pre_executor"}, "def go(self):\n    self.pre.run(pre=1)  # pre\n    return 'pre'\n",
                "def go(self):\n    self.pre_executor.run(pre_executor=1)  # pre\n    return 'pre'\n", host="pkg.mod:go"),
        Example({"old": "a", "new": "b"}, "def go():\n    b = 1\n    return a\n", verdict=Verdict.AMBIGUOUS,
                host="pkg.mod:go", says="both names are used"),
    )  # fmt: skip

    def check(self, plant: Plant, entry: Entry) -> list[str]:
        names = (plant.options["old"], plant.options["new"])
        return [f"{name!r} is not a name" for name in names if not is_name(name)] + (
            ["old and new are the same"] if names[0] == names[1] else ["count is 1 or more"] if plant.options.get("count", 1) < 1 else []
        )

    def words(self, plant: Plant) -> frozenset[str]:
        return frozenset({plant.options["new"]})

    def judge(self, plant: Plant, entry: Entry, view: View) -> Judgement:
        path = self.path(plant, view)
        module = view.module(path)
        host = host_of(module, plant, path)
        old, new = (_uses(module, host, plant.options[key]) for key in ("old", "new"))
        where = {"path": path, "symbol": plant.symbol}
        line = (old or new or [(getattr(host, "lineno", 1), 0)])[0][0]
        if not old and not new:
            return Judgement(Verdict.HOST_GONE, f"neither `{plant.options['old']}` nor `{plant.options['new']}` is used here", line=line, **where)
        if old and new:
            return Judgement(Verdict.AMBIGUOUS, f"`{plant.options['old']}` and `{plant.options['new']}` are both used here", line=line, **where)
        wanted = plant.options.get("count")
        if wanted is not None and wanted != len(old or new):
            return Judgement(Verdict.AMBIGUOUS, f"{len(old or new)} uses here, {wanted} declared", line=line, **where)
        if old:
            return Judgement(Verdict.LOST, f"`{plant.options['old']}` is used, not `{plant.options['new']}`", line=line, **where)
        return Judgement(Verdict.INTACT, line=line, **where)

    def plant(self, plant: Plant, entry: Entry, view: View) -> None:
        judgement = self.judge(plant, entry, view)
        if judgement.verdict is Verdict.INTACT:
            return
        if judgement.verdict is Verdict.AMBIGUOUS:
            raise Unplantable(judgement.verdict, judgement.message, judgement.line)
        module = view.module(judgement.path)
        host = host_of(module, plant, judgement.path)
        lines = list(module.source.lines)
        old, new = plant.options["old"], plant.options["new"]
        for line, column in sorted(_uses(module, host, old), reverse=True):
            text = lines[line - 1]
            lines[line - 1] = text[:column] + new + text[column + len(old) :]
        view.edit(judgement.path, "".join(lines))



def _uses(module: Module, host: Host, name: str) -> list[tuple[int, int]]:
    """(line, character column) of every use of `name` in the host."""
    found = set()
    for node in ast.walk(host):
        if isinstance(node, ast.Name) and node.id == name:
            found.add((node.lineno, module.source.column(node.lineno, node.col_offset)))
        elif isinstance(node, ast.Attribute) and node.attr == name:
            line = node.end_lineno or node.lineno
            found.add((line, module.source.column(line, node.end_col_offset or 0) - len(name)))
        elif isinstance(node, ast.arg | ast.keyword) and node.arg == name:
            found.add((node.lineno, module.source.column(node.lineno, node.col_offset)))
        elif isinstance(node, ast.alias) and name in (node.name, node.asname) or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
            found |= _in_text(module, node.lineno, node.col_offset, name)
    return sorted(found)


def _in_text(module: Module, line: int, offset: int, name: str) -> set[tuple[int, int]]:
    """The first place of the word at or after a position on its line."""
    column = module.source.column(line, offset)
    match = re.compile(rf"\b{re.escape(name)}\b").search(module.source.lines[line - 1], column)
    return {(line, match.start())} if match else set()
