"""Something that must not be there: taken out when found as a statement, reported when found as text."""

from __future__ import annotations

import ast
import re
import textwrap
from fnmatch import fnmatchcase

from stackctl.model.stack import Entry, Plant
from stackctl.model.verdict import Verdict
from stackctl.plants import edit
from stackctl.plants.errors import Unplantable
from stackctl.plants.kind import Example, Judgement, Kind, Option
from stackctl.plants.module import Module, parse_statements, same, start_line, statements, suites
from stackctl.plants.view import View
from stackctl.trees.tree import read_all


class Tombstone(Kind):
    """A statement of upstream's, or an older entry's text, that must be absent.

    With `code` and a host: every such statement of the host goes when the entry is planted, and a branch
    that it alone filled goes with it. With `text` or `pattern`: no file below `paths` may hold it; that
    is reported and never edited.
    """

    name = "tombstone"
    summary = "a statement or text that must be absent"
    host = "optional"
    options = {
        "code": Option(str, "the statement, compared by structure", code="statements"),
        "text": Option(str, "text that no file may hold; runs of white space are alike"),
        "pattern": Option(str, "a regular expression that no file may match"),
        "paths": Option(list, "the files to look in, as patterns; default: all Python files of the source folder"),
    }
    examples = (
        Example({"code": "track(app)"}, "def go(app):\n    if metrics:\n        track(app)\n    run(app)\n",
                "def go(app):\n    run(app)\n", Verdict.RESURRECTED, host="pkg.mod:go"),
        Example({"text": "run_in_executor(None, self.f"}, "x = loop.run_in_executor(\n    None, self.f, a)\n", host="",
                verdict=Verdict.RESURRECTED, says="text is reported, not edited"),
    )  # fmt: skip

    def check(self, plant: Plant, entry: Entry) -> list[str]:
        options = plant.options
        if sum(key in options for key in ("code", "text", "pattern")) != 1:
            return ["give one of code, text and pattern"]
        if ("code" in options) != bool(plant.host):
            return ["code needs a host; text and pattern have paths instead"]
        if "code" in options and len(parse_statements(options["code"])) != 1:
            return ["code must be one statement"]
        if "pattern" in options:
            try:
                re.compile(options["pattern"])
            except re.error as error:
                return [f"pattern {options['pattern']!r} is not a regular expression: {error}"]
        if "code" not in options and compiled(plant).search(b""):
            return ["this matches everything, an empty file too"]
        return [f"paths holds {path!r}, which matches no file of a tree" for path in options.get("paths", ()) if _outside(path)]

    def path(self, plant: Plant, view: View) -> str:
        return view.path_of(plant.module) if plant.host else ""

    def judge(self, plant: Plant, entry: Entry, view: View) -> Judgement:
        return _judge_code(plant, view) if "code" in plant.options else _judge_text(plant, view)

    def plant(self, plant: Plant, entry: Entry, view: View) -> None:
        judgement = self.judge(plant, entry, view)
        if judgement.verdict is Verdict.INTACT:
            return
        if "code" not in plant.options:
            raise Unplantable(Verdict.RESURRECTED, judgement.message, judgement.line)
        path = judgement.path
        while (found := _found(view.module(path), plant)) is not None:
            first, last = _extent(view.module(path), plant, found)
            view.edit(path, edit.remove(view.module(path).source, first, last))


def _judge_code(plant: Plant, view: View) -> Judgement:
    path = view.path_of(plant.module)
    module = view.module(path)
    if module.host(plant.symbol) is None:
        return Judgement(Verdict.INTACT, "its host is gone", path, module.line_of(plant.symbol), plant.symbol)
    found = _found(module, plant)
    if found is None:
        return Judgement(Verdict.INTACT, path=path, line=module.line_of(plant.symbol), symbol=plant.symbol)
    text = ast.unparse(found).split("\n")[0]
    return Judgement(Verdict.RESURRECTED, f"`{text}` is here and must not be", path, found.lineno, plant.symbol)


def _judge_text(plant: Plant, view: View) -> Judgement:
    pattern = compiled(plant)
    for path in files(plant, view, pattern):
        if found := pattern.search(view.read(path)):
            line = view.read(path)[: found.start()].count(b"\n") + 1
            text = " ".join(found[0].decode(errors="replace").split())
            return Judgement(Verdict.RESURRECTED, f"`{text}` is here and must not be", path, line)
    return Judgement(Verdict.INTACT)


def _outside(path: object) -> bool:
    """Whether a pattern can match no path below a root."""
    return not isinstance(path, str) or "\\" in path or any(part in ("", ".", "..") for part in path.split("/"))


def compiled(plant: Plant) -> re.Pattern[bytes]:
    """The text or pattern of a tombstone as a pattern over bytes."""
    if "pattern" in plant.options:
        return re.compile(plant.options["pattern"].encode(), re.MULTILINE)
    words = [re.escape(word).encode() for word in re.split(r"(\W)", plant.options["text"]) if word.strip()]
    return re.compile(rb"\s*".join(words))


def files(plant: Plant, view: View, pattern: re.Pattern[bytes]) -> list[str]:
    """The files that a text tombstone watches; where it names none, those of them that can hold the text."""
    paths = _watched(plant, view)
    if not any(sign in path for path in paths for sign in "*?["):
        return [path for path in paths if view.exists(path)]
    view.seen.setdefault("*", view.whole)  # a verdict on every file there is cannot be kept under a few of them
    if (paths, pattern) not in view.scanned:
        _scan(paths, {pattern, *_patterns_over(paths, view)}, view)
    held = [path for path in view.scanned[paths, pattern] if path not in view.changes]
    return held + [path for path, data in view.changes.items() if data is not None and _matches(path, paths)]


def _watched(plant: Plant, view: View) -> tuple[str, ...]:
    return tuple(plant.options.get("paths") or [f"{view.stack.source}/*.py" if view.stack.source else "*.py"])


def _matches(path: str, paths: tuple[str, ...]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in paths)


def _patterns_over(paths: tuple[str, ...], view: View) -> set[re.Pattern[bytes]]:
    """What all the stack's tombstones look for in these files: they are to be read once, not once for each."""
    plants = (plant for entry in view.stack.entries for plant in entry.plants if plant.kind == "tombstone")
    return {compiled(plant) for plant in plants if "code" not in plant.options and _watched(plant, view) == paths}


def _scan(paths: tuple[str, ...], patterns: set[re.Pattern[bytes]], view: View) -> None:
    """Note which files of the tree hold what, whatever is changed and not saved yet."""
    for pattern in patterns:
        view.scanned[paths, pattern] = []
    for path, data in read_all(view.tree, [p for p in view.tree.paths() if view.tree.is_file(p) and _matches(p, paths)]):
        for pattern in patterns:
            if pattern.search(data):
                view.scanned[paths, pattern].append(path)


def _found(module: Module, plant: Plant) -> ast.stmt | None:
    host = module.host(plant.symbol)
    if host is None:
        return None
    wanted = parse_statements(textwrap.dedent(plant.options["code"]))[0]
    return next((statement for statement in statements(host) if same(statement, wanted)), None)


def _extent(module: Module, plant: Plant, statement: ast.stmt) -> tuple[int, int]:
    """The lines to take out: those of the statement, or of the branch that would be left empty."""
    host = module.host(plant.symbol)
    assert host is not None
    if not edit.alone(module.source, statement):
        raise Unplantable(Verdict.AMBIGUOUS, "the statement shares its line with another", statement.lineno)
    alone = next((suite for suite in suites(host) if suite == [statement]), None)
    if alone is None:
        return _with_blank(module, start_line(statement), statement.end_lineno or statement.lineno)
    owner = next((o for o in statements(host) if getattr(o, "body", None) is alone and not getattr(o, "orelse", None)), None)
    if not isinstance(owner, ast.If):
        raise Unplantable(Verdict.RESURRECTED, "the statement is alone in a block that cannot go with it", statement.lineno)
    return _with_blank(module, owner.lineno, owner.end_lineno or owner.lineno)


def _with_blank(module: Module, first: int, last: int) -> tuple[int, int]:
    """The blank line below goes too where one stands above, so that no two are left in a row."""
    lines = module.source.lines
    above, below = first == 1 or not lines[first - 2].strip(), last < len(lines) and not lines[last].strip()
    return first, last + 1 if above and below else last
