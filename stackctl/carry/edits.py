"""What our side changed in one module, as edits that are addressed by structure, not by line.

An edit names its host (a dotted definition), the statement it is about, and inside that the keyword,
element, operand or branch. It knows nothing of upstream's text: `placing` finds where it goes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from stackctl.carry.texts import DEFINITIONS, IMPORTS, Text, bodies, line_hunks

_LOOPS = (ast.For, ast.AsyncFor)
_WITHS = (ast.With, ast.AsyncWith)
_CONTAINERS = (ast.List, ast.Set, ast.Tuple)
_PAIR = 0.6


@dataclass(frozen=True)
class Where:
    """A list of statements: of a host itself (`owner` None), or one of a compound statement's."""

    host: str
    owner: ast.stmt | None = None
    part: str = "body"


@dataclass(frozen=True)
class Edit:
    """One change. `old` and `new` are nodes of base and ours; `where` and `at` place it in the base.

    kind: insert, delete, replace, wrap (statements), import, branch (statement level), expression,
    keyword, positional, element, operand, decorator, parameter, base (inside a statement).
    """

    kind: str
    where: Where
    at: int = 0
    old: tuple[ast.AST, ...] = ()
    new: tuple[ast.AST, ...] = ()
    body: tuple[ast.stmt, ...] = ()
    statement: ast.stmt | None = None
    near: tuple[ast.AST | None, ast.AST | None] = (None, None)
    rows: tuple[int, int] = (0, 0)
    hole: tuple[int, int] = (0, 0)
    name: str = ""


class Difference:
    """The edits from one module to another."""

    def __init__(self, base: Text, ours: Text) -> None:
        self.base = base
        self.ours = ours
        self.partners: dict[int, ast.stmt] = {}

    def edits(self) -> list[Edit]:
        """All edits in source order, those of a header after those of what stands below it."""
        return list(self._bodies(self.base.tree.body, self.ours.tree.body, Where("")))

    # Lists of statements.

    def _bodies(self, old: list[ast.stmt], new: list[ast.stmt], where: Where) -> Iterator[Edit]:
        yield from self._imports(old, new, where)
        # What is spelt alike is alike: only the rest is worth a normal form.
        for rough in line_hunks([_spelt(self.base, node) for node in old], [_spelt(self.ours, node) for node in new]):
            keys = (
                [self.base.key(node) for node in old[rough.start : rough.end]],
                [self.ours.key(node) for node in new[rough.first : rough.last]],
            )
            for hunk in line_hunks(*keys):
                left, right = (
                    (rough.start + hunk.start, rough.start + hunk.end),
                    (rough.first + hunk.first, rough.first + hunk.last),
                )
                yield from self._block(old, new, left, right, where)

    def _imports(self, old: list[ast.stmt], new: list[ast.stmt], where: Where) -> Iterator[Edit]:
        """One edit for each name imported or no longer imported right in this list."""
        before, after = _import_names(old), _import_names(new)
        nested: set[str] = set()
        if before.keys() - after.keys():
            nested = {
                line
                for top in new
                for node in ast.walk(top)
                if isinstance(node, IMPORTS)
                for line in import_lines(node)
            }
        for name, node in after.items():
            if name not in before:
                yield Edit(
                    "import",
                    where,
                    old.index(node) if node in old else 0,
                    (),
                    (node,),
                    tuple(old),
                    rows=self.ours.rows(node),
                    name=name,
                )
        for name, node in before.items():
            if name not in after and name not in nested:
                yield Edit("import", where, old.index(node), (node,), (), tuple(old), rows=(0, 0), name=name)

    def _block(
        self, old: list[ast.stmt], new: list[ast.stmt], left: tuple[int, int], right: tuple[int, int], where: Where
    ) -> Iterator[Edit]:
        """One stretch of statements that differ: paired where they are the same ones edited, else in or out."""
        i, j = left[0], right[0]
        for b, o in [*self._pairs(old, new, left, right), (left[1], right[1])]:
            yield from self._run(old, new, (i, b), (j, o), where)
            if b < left[1] and o < right[1]:
                yield from self._statement(old[b], new[o], where)
            i, j = b + 1, o + 1

    def _pairs(
        self, old: list[ast.stmt], new: list[ast.stmt], left: tuple[int, int], right: tuple[int, int]
    ) -> list[tuple[int, int]]:
        pairs, start = [], right[0]
        for b in range(*left):
            if isinstance(old[b], IMPORTS):
                continue
            found = next((o for o in range(start, right[1]) if identity(old[b]) == identity(new[o])), None)
            if found is None:
                found = next((o for o in range(start, right[1]) if self._alike(old[b], new[o])), None)
            if found is not None:
                pairs.append((b, found))
                start = found + 1
        return pairs

    def _alike(self, old: ast.stmt, new: ast.stmt) -> bool:
        """Whether a statement is likely the other one edited."""
        if type(old) is not type(new) or isinstance(old, (*DEFINITIONS, *IMPORTS)):
            return False
        if isinstance(old, ast.If):
            mine = {self.base.key(each) for each in old.body}
            held = [new.body, *(_all_bodies(new.body[0]) if len(new.body) == 1 else ())]  # or one wrapper around it all
            return (
                bool(mine & {self.ours.key(each) for body in held for each in body})
                or len(set(_tests(self.base, old)) & set(_tests(self.ours, new))) > 0
                or self._same_inside(old, new)
            )
        if isinstance(old, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            return False
        if isinstance(old, (*_LOOPS, ast.While, *_WITHS, ast.Try)):
            return bool({self.base.key(each) for each in old.body} & {self.ours.key(each) for each in new.body})
        return SequenceMatcher(None, self.base.key(old), self.ours.key(new), autojunk=False).quick_ratio() > _PAIR

    def _same_inside(self, old: ast.If, new: ast.If) -> bool:
        """Whether one test is an operand of the other, and both branches hold a statement about the same thing."""
        one, two = self.base.key(old.test), self.ours.key(new.test)
        operands = {self.ours.key(each) for each in getattr(new.test, "values", [])} | {
            self.base.key(each) for each in getattr(old.test, "values", [])
        }
        return bool({one, two} & operands) and bool(set(map(identity, old.body)) & set(map(identity, new.body)))

    def _run(
        self, old: list[ast.stmt], new: list[ast.stmt], left: tuple[int, int], right: tuple[int, int], where: Where
    ) -> Iterator[Edit]:
        """Statements that are in one side's list alone."""
        gone = [node for node in old[slice(*left)] if not isinstance(node, IMPORTS)]
        come = [node for node in new[slice(*right)] if not isinstance(node, IMPORTS)]
        if come and (found := self._wrap(old, new, left, right, where)):
            yield found
        elif gone and come:
            yield Edit("replace", where, left[0], tuple(gone), tuple(come), tuple(old), rows=self._rows(new, right))
        elif come:
            first = next(k for k in range(*right) if not isinstance(new[k], IMPORTS))
            yield Edit("insert", where, left[0], (), tuple(come), tuple(old), rows=self._rows(new, (first, right[1])))
        elif gone:
            yield Edit("delete", where, left[0], tuple(gone), (), tuple(old))

    def _rows(self, new: list[ast.stmt], right: tuple[int, int]) -> tuple[int, int]:
        """The lines of ours that hold new[right], the comments that stand above included."""
        return self.ours.lead(new, right[0]), self.ours.rows(new[right[1] - 1])[1]

    def _wrap(
        self, old: list[ast.stmt], new: list[ast.stmt], left: tuple[int, int], right: tuple[int, int], where: Where
    ) -> Edit | None:
        """One compound statement of ours that holds a run of base's statements as they were, once."""
        come = list(range(*right))
        if len(come) != 1 or not list(bodies(new[come[0]])) or isinstance(new[come[0]], DEFINITIONS):
            return None
        wanted = [self.base.key(node) for node in old[slice(*left)]]
        holes = [
            (body[k], body[k + len(wanted) - 1])
            for body in _all_bodies(new[come[0]])
            for k in range(len(body) - len(wanted) + 1)
            if wanted and [self.ours.key(node) for node in body[k : k + len(wanted)]] == wanted
        ]
        if len(holes) != 1:
            return None
        hole = self.ours.rows(holes[0][0])[0], self.ours.rows(holes[0][1])[1]
        rows = self._rows(new, right)
        return Edit("wrap", where, left[0], tuple(old[slice(*left)]), (new[come[0]],), tuple(old), rows=rows, hole=hole)

    # One statement.

    def _statement(self, old: ast.stmt, new: ast.stmt, where: Where) -> Iterator[Edit]:
        self.partners[id(old)] = new
        if isinstance(old, DEFINITIONS) and type(old) is type(new):
            yield from self._definition(old, new, where)
        elif isinstance(old, ast.If) and isinstance(new, ast.If):
            yield from self._chain(old, new, where)
        elif isinstance(old, ast.Try) and isinstance(new, ast.Try):
            yield from self._try(old, new, where)
        elif isinstance(old, (*_LOOPS, ast.While, *_WITHS)) and type(old) is type(new):
            yield from self._bodies(old.body, new.body, Where(where.host, old))
            if getattr(old, "orelse", []) or getattr(new, "orelse", []):
                yield from self._bodies(old.orelse, new.orelse, Where(where.host, old, "orelse"))
            yield from self._header(old, new, where)
        elif type(old) is type(new) and not list(bodies(old)):
            yield from self._children(old, new, old, where)
        else:
            yield Edit("replace", where, 0, (old,), (new,), (), rows=self.ours.rows(new))

    def _header(self, old: ast.stmt, new: ast.stmt, where: Where) -> Iterator[Edit]:
        for one, two in zip(own_expressions(old), own_expressions(new), strict=False):
            yield from self._expression(one, two, old, where)
        if len(list(own_expressions(old))) != len(list(own_expressions(new))):
            yield Edit("replace", where, 0, (old,), (new,), (), rows=self.ours.rows(new))

    def _definition(self, old: ast.AST, new: ast.AST, where: Where) -> Iterator[Edit]:
        yield from self._decorators(old, new, where)
        if isinstance(old, ast.ClassDef):
            yield from self._listed("base", [*old.bases, *old.keywords], [*new.bases, *new.keywords], old, where, old)
        else:
            yield from self._parameters(old, new, where)
            if (old.returns is None) != (new.returns is None) or (
                old.returns and self.base.key(old.returns) != self.ours.key(new.returns)
            ):
                yield Edit("replace", where, 0, (old.returns or old,), (new.returns or new,), (), old, rows=_row(new))
        name = f"{where.host}.{old.name}" if where.host else old.name
        yield from self._bodies(old.body, new.body, Where(name))

    def _decorators(self, old: ast.AST, new: ast.AST, where: Where) -> Iterator[Edit]:
        before = {_callee(self.base, node): node for node in old.decorator_list}
        after = {_callee(self.ours, node): node for node in new.decorator_list}
        for name, node in after.items():
            if name not in before:
                yield Edit("decorator", where, 0, (), (node,), (), old, rows=_row(node), name=name)
            else:
                yield from self._expression(before[name], node, old, where)
        for name, node in before.items():
            if name not in after:
                yield Edit("decorator", where, 0, (node,), (), (), old, name=name)

    def _parameters(self, old: ast.AST, new: ast.AST, where: Where) -> Iterator[Edit]:
        before, after = parameters(old.args), parameters(new.args)
        names = list(after)
        for index, (name, (node, default)) in enumerate(after.items()):
            if name not in before:
                near = next((n for n in reversed(names[:index]) if n in before), None)
                follows = next((n for n in names[index + 1 :] if n in before), None)
                yield Edit(
                    "parameter",
                    where,
                    0,
                    (),
                    tuple(filter(None, (node, default))),
                    (),
                    old,
                    rows=_row(node),
                    name=f"{near or ''}|{follows or ''}|{name}",
                )
            elif self.base.key(before[name][0]) != self.ours.key(node) or (before[name][1] is None) != (
                default is None
            ):
                yield Edit("replace", where, 0, (before[name][0],), (node,), (), old, rows=_row(node))
            elif default is not None:
                yield from self._expression(before[name][1], default, old, where)
        for name, (node, _) in before.items():
            if name not in after:
                yield Edit("parameter", where, 0, (node,), (), (), old, name=f"||{name}")

    def _chain(self, old: ast.If, new: ast.If, where: Where) -> Iterator[Edit]:
        """An if with its elifs: branches are addressed by their tests."""
        before, after = branches(old), branches(new)
        tests = [self.base.key(branch.test) for branch in before], [self.ours.key(branch.test) for branch in after]
        left = {test: index for index, test in enumerate(tests[0])}
        taken = {left[test] for test in tests[1] if test in left}
        loose = [index for index in range(len(before)) if index not in taken]
        for index, branch in enumerate(after):
            if (found := left.get(tests[1][index])) is None:
                bodies_of = {self.ours.key(each) for each in branch.body}
                found = next((k for k in loose if bodies_of & {self.base.key(each) for each in before[k].body}), None)
                if found is None and index == 0:
                    found = loose[0] if loose else None
            if found is None:
                near = (
                    next((after[k].test for k in range(index - 1, -1, -1) if tests[1][k] in left), None),
                    next((after[k].test for k in range(index + 1, len(after)) if tests[1][k] in left), None),
                )
                yield Edit("branch", where, 0, (), (branch,), (), old, near, rows=self._branch_rows(after, index))
                continue
            # What a branch holds before its test: an edited test is no address any more.
            yield from self._bodies(before[found].body, branch.body, Where(where.host, old, f"if {tests[0][found]}"))
            if found in loose:
                loose.remove(found)
                yield from self._expression(before[found].test, branch.test, old, where)
        for index in loose:
            yield Edit("branch", where, 0, (before[index],), (), (), old)
        yield from self._else(before[-1].orelse, after[-1].orelse, old, where)

    def _else(self, old: list[ast.stmt], new: list[ast.stmt], top: ast.If, where: Where) -> Iterator[Edit]:
        if old and new:
            yield from self._bodies(old, new, Where(where.host, top, "else"))
        elif old or new:
            rows = (self.ours.rows(new[0])[0], self.ours.rows(new[-1])[1]) if new else (0, 0)
            yield Edit("else", where, 0, tuple(old), tuple(new), (), top, rows=rows)

    def _branch_rows(self, chain: list[ast.If], index: int) -> tuple[int, int]:
        """The lines of one branch, the comments right above it included."""
        first, stop = chain[index].lineno - 1, self.ours.rows(chain[index - 1].body[-1])[1] if index else 0
        while first > stop and self.ours.lines[first - 1].lstrip().startswith("#"):
            first -= 1
        return first, self.ours.rows(chain[index].body[-1])[1]

    def _try(self, old: ast.Try, new: ast.Try, where: Where) -> Iterator[Edit]:
        yield from self._bodies(old.body, new.body, Where(where.host, old))
        before = {handler_name(self.base, each): each for each in old.handlers}
        after = {handler_name(self.ours, each): each for each in new.handlers}
        if list(before) != list(after):
            yield Edit("replace", where, 0, (old,), (new,), (), rows=self.ours.rows(new))
            return
        for name, handler in after.items():
            yield from self._bodies(before[name].body, handler.body, Where(where.host, old, name))
        for part in ("orelse", "finalbody"):
            yield from self._bodies(getattr(old, part), getattr(new, part), Where(where.host, old, part))

    # Inside one statement.

    def _expression(self, old: ast.AST, new: ast.AST, statement: ast.stmt, where: Where) -> Iterator[Edit]:
        if self.base.key(old) == self.ours.key(new):
            return
        if (
            isinstance(old, ast.Call)
            and isinstance(new, ast.Call)
            and self.base.key(old.func) == self.ours.key(new.func)
        ):
            yield from self._call(old, new, statement, where)
        elif isinstance(old, ast.BoolOp) and isinstance(new, ast.BoolOp) and type(old.op) is type(new.op):
            yield from self._listed("operand", old.values, new.values, statement, where, old)
        elif isinstance(old, _CONTAINERS) and type(old) is type(new):
            yield from self._listed("element", old.elts, new.elts, statement, where, old)
        elif isinstance(old, ast.Dict) and isinstance(new, ast.Dict):
            yield from self._dict(old, new, statement, where)
        elif isinstance(new, ast.BoolOp) and self.base.key(old) in [self.ours.key(each) for each in new.values]:
            yield Edit("expression", where, 0, (old,), (new,), (), statement, rows=_row(new), name="wrap")
        elif type(old) is type(new) and not isinstance(old, (ast.Constant, ast.Name)) and self._same_shape(old, new):
            yield from self._children(old, new, statement, where)
        else:
            yield Edit(
                "expression",
                where,
                0,
                (old,),
                (new,),
                (),
                statement,
                rows=_row(new),
                name="wrap" if self._holds(new, old) else "",
            )

    def _holds(self, new: ast.AST, old: ast.AST) -> bool:
        """Whether the new expression holds the old one, once."""
        key = self.base.key(old)
        return sum(self.ours.key(each) == key for each in ast.walk(new) if each is not new) == 1

    def _same_shape(self, old: ast.AST, new: ast.AST) -> bool:
        """Whether two nodes differ in their children alone, and have as many of each."""
        for field in old._fields:
            one, two = getattr(old, field, None), getattr(new, field, None)
            if isinstance(one, list) and isinstance(two, list):
                if len(one) != len(two) or not all(_comparable(*pair) for pair in zip(one, two, strict=True)):
                    return False
            elif (
                isinstance(one, ast.expr) != isinstance(two, ast.expr)
                or (not isinstance(one, ast.AST) and one != two)
                or isinstance(one, ast.AST)
                and not isinstance(one, ast.expr)
                and ast.dump(one) != ast.dump(two)
            ):
                return False
        return True

    def _children(self, old: ast.AST, new: ast.AST, statement: ast.stmt, where: Where) -> Iterator[Edit]:
        if not self._same_shape(old, new):
            yield Edit(
                "replace", where, 0, (old,), (new,), (), statement if old is not statement else None, rows=_row(new)
            )
            return
        for field in old._fields:
            one, two = getattr(old, field, None), getattr(new, field, None)
            pairs = zip(one, two, strict=True) if isinstance(one, list) else [(one, two)]
            for first, second in pairs:
                if isinstance(first, ast.AST) and self.base.key(first) != self.ours.key(second):
                    yield from self._expression(first, second, statement, where)

    def _call(self, old: ast.Call, new: ast.Call, statement: ast.stmt, where: Where) -> Iterator[Edit]:
        if len(old.args) == len(new.args):
            for one, two in zip(old.args, new.args, strict=True):
                yield from self._expression(one, two, statement, where)
        else:
            yield from self._listed("positional", old.args, new.args, statement, where, old)
        before, after = ({each.arg: each for each in call.keywords if each.arg} for call in (old, new))
        for name, node in after.items():
            if name not in before:
                yield Edit("keyword", where, 0, (old,), (node,), (), statement, rows=_row(node), name=name)
            elif self.base.key(before[name].value) != self.ours.key(node.value):
                yield Edit("keyword", where, 0, (old, before[name]), (node,), (), statement, rows=_row(node), name=name)
        for name, node in before.items():
            if name not in after:
                yield Edit("keyword", where, 0, (old, node), (), (), statement, name=name)

    def _listed(
        self,
        kind: str,
        old: Sequence[ast.AST],
        new: Sequence[ast.AST],
        statement: ast.stmt,
        where: Where,
        owner: ast.AST,
    ) -> Iterator[Edit]:
        """Elements, operands or arguments put in, taken out, or edited in their place."""
        keys = [self.base.key(node) for node in old], [self.ours.key(node) for node in new]
        for hunk in line_hunks(*keys):
            gone, come = old[hunk.start : hunk.end], new[hunk.first : hunk.last]
            if len(gone) == len(come) and kind != "element":
                for one, two in zip(gone, come, strict=True):
                    yield from self._expression(one, two, statement, where)
                continue
            near = (old[hunk.start - 1] if hunk.start else None, old[hunk.end] if hunk.end < len(old) else None)
            rows = (_row(come[0])[0], _row(come[-1])[1]) if come else (0, 0)
            yield Edit(kind, where, hunk.start, (owner, *gone), tuple(come), (), statement, near, rows=rows)

    def _dict(self, old: ast.Dict, new: ast.Dict, statement: ast.stmt, where: Where) -> Iterator[Edit]:
        before = {self.base.key(k) if k else "**": (k, v) for k, v in zip(old.keys, old.values, strict=True)}
        after = {self.ours.key(k) if k else "**": (k, v) for k, v in zip(new.keys, new.values, strict=True)}
        if set(before) - set(after) or len(before) != len(old.keys) or len(after) != len(new.keys):
            yield Edit("expression", where, 0, (old,), (new,), (), statement, rows=_row(new))
            return
        previous: ast.AST | None = None
        for key, (name, value) in after.items():
            if key in before:
                yield from self._expression(before[key][1], value, statement, where)
                previous = before[key][1]
            else:
                yield Edit(
                    "item",
                    where,
                    0,
                    (old,),
                    tuple(filter(None, (name, value))),
                    (),
                    statement,
                    (previous, None),
                    rows=_row(value),
                    name=key,
                )


def _spelt(text: Text, node: ast.stmt) -> str:
    """A statement's lines, decorators included."""
    return "".join(text.lines[slice(*text.rows(node))])


def _comparable(one: object, two: object) -> bool:
    """Whether two children may differ in themselves: expressions may, operators and the like may not."""
    if isinstance(one, ast.expr) and isinstance(two, ast.expr):
        return True
    return isinstance(one, ast.AST) and isinstance(two, ast.AST) and ast.dump(one) == ast.dump(two) or one == two


def _row(node: ast.AST) -> tuple[int, int]:
    """The lines of a node, from 0, half open."""
    return node.lineno - 1, node.end_lineno or node.lineno


def _import_names(body: Sequence[ast.stmt]) -> dict[str, ast.stmt]:
    """Each imported name, spelt as a statement of its own, with the statement that imports it."""
    return {name: node for node in body if isinstance(node, IMPORTS) for name in import_lines(node)}


def import_lines(node: ast.stmt) -> list[str]:
    """An import statement as one line a name."""
    lines = []
    for alias in node.names:
        words = f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
        lines.append(
            f"from {'.' * node.level}{node.module or ''} {words}" if isinstance(node, ast.ImportFrom) else words
        )
    return lines


def identity(node: ast.stmt) -> tuple[str, ...]:
    """What a statement is about, whatever it says of it: equal for one that was edited."""
    if isinstance(node, DEFINITIONS):
        return "def", node.name
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return type(node).__name__, *map(ast.dump, targets)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return "call", ast.dump(node.value.func)
    if isinstance(node, (ast.If, ast.While)):
        return type(node).__name__, ast.dump(node.test)
    if isinstance(node, _LOOPS):
        return "for", ast.dump(node.target), ast.dump(node.iter)
    if isinstance(node, ast.Return):
        return ("return",)
    return "", ast.dump(node)


def _tests(text: Text, node: ast.If) -> list[str]:
    return [text.key(branch.test) for branch in branches(node)]


def branches(node: ast.If) -> list[ast.If]:
    """An if and the elifs that hang on it."""
    found = [node]
    while (
        len(found[-1].orelse) == 1
        and isinstance(found[-1].orelse[0], ast.If)
        and found[-1].orelse[0].col_offset == node.col_offset
    ):
        found.append(found[-1].orelse[0])
    return found


def handler_name(text: Text, node: ast.ExceptHandler) -> str:
    """An except clause by what it catches."""
    return f"except {text.key(node.type) if node.type else ''}"


def parameters(arguments: ast.arguments) -> dict[str, tuple[ast.arg, ast.expr | None]]:
    """Every parameter by name with its default."""
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    found = {node.arg: (node, default) for node, default in zip(plain, defaults, strict=True)}
    if arguments.vararg:
        found[f"*{arguments.vararg.arg}"] = (arguments.vararg, None)
    found |= {
        node.arg: (node, default) for node, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    }
    if arguments.kwarg:
        found[f"**{arguments.kwarg.arg}"] = (arguments.kwarg, None)
    return found


def own_expressions(node: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement that are not inside statements below it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield child


def _callee(text: Text, node: ast.expr) -> str:
    """What a decorator calls or is."""
    return text.key(node.func if isinstance(node, ast.Call) else node)


def _all_bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for body in bodies(node):
        yield body
        for child in body:
            yield from _all_bodies(child)
