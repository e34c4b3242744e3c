"""Make one edit of ours in upstream's new text of a module, or say why not.

What is looked for is looked for by structure in the same host. As many candidates as the base had, in the
same order, are the same ones; any other number is a stop. What both sides gave a value is a stop as well:
nothing here chooses between two meanings.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from stackctl.carry.edits import (
    Edit,
    Where,
    branches,
    handler_name,
    identity,
    import_lines,
    own_expressions,
    parameters,
)
from stackctl.carry.texts import DEFINITIONS, IMPORTS, Text, below, bodies, names_of, reindent
from stackctl.trees.source import SourceError

_EXITS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_WIDTH = 88
BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__class__"}


class Refused(Exception):
    """The edit cannot be made safely: the reason is what a person decides by. `gone`: its host is not there."""

    def __init__(self, reason: str, gone: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.gone = gone


class Adopted(Exception):
    """Upstream's text has the edit already, and no condition that ours did not have: the reason is the proof."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Spot:
    """Where a statement of the base stands in upstream's text. `same`: upstream did not touch it."""

    body: list[ast.stmt]
    index: int
    same: bool

    @property
    def node(self) -> ast.stmt:
        """The statement."""
        return self.body[self.index]


class Placer:
    """Upstream's text of one module, and our edits made in it one by one."""

    def __init__(
        self,
        base: Text,
        ours: Text,
        target: str | Text,
        partners: dict[int, ast.stmt],
        hosts: dict[str, str] | None = None,
    ) -> None:
        self.base = base
        self.ours = ours
        self.target = Text(target) if isinstance(target, str) else target
        self.upstream = self.target  # as it was before the first edit
        self.partners = partners
        self.hosts = hosts or {}

    def make(self, edit: Edit) -> str:
        """Make the edit and return how; raises Refused or Adopted and changes nothing then."""
        text, how = _MAKERS[edit.kind](self, edit)
        try:
            self.target = Text(text)
        except SourceError as error:
            raise Refused(f"the result would not parse: {error.reason}") from None
        return how

    # Finding.

    def host(self, name: str) -> ast.AST:
        """The node of a host in upstream's text, followed where it moved."""
        here = self.hosts.get(name, name)
        if name in self.base.twice or here in self.target.twice:
            raise Refused(f"{name} is defined more than once: equal candidates mean stop")
        node = self.target.hosts.get(here)
        if node is None:
            raise Refused(f"upstream no longer has {name}", gone=True)
        return node

    def locate(self, node: ast.stmt, host: str) -> Spot:
        """A statement of the base in the same host of upstream's text."""
        before = [body[index] for body, index in below(self.base.hosts[host])]
        after = list(below(self.host(host)))
        for same, mine, yours in (
            (True, self.base.key, self.target.key),
            (False, identity, identity),
            (False, self._likeness, self._likeness),
        ):
            wanted = mine(node)
            if wanted in ((), ("return",)):
                continue
            old = [each for each in before if mine(each) == wanted]
            new = [place for place in after if yours(place[0][place[1]]) == wanted]
            if not new:
                continue
            if len(old) != len(new):
                raise Refused(
                    f"{len(new)} statements like line {node.lineno} of the base in {host or 'the module'}, {len(old)} expected"
                )
            return Spot(*new[[each is node for each in old].index(True)], same)
        raise Refused(
            f"upstream no longer has the statement at line {node.lineno} of the base in {host or 'the module'}"
        )

    def _likeness(self, node: ast.stmt) -> tuple[str, ...]:
        """What an if, try or with is known by when its header was edited: what it holds first."""
        if isinstance(node, ast.If) and node.body:
            return "if", ast.dump(node.body[0])
        if isinstance(node, ast.Try):
            return "try", *sorted(names_of(node.body)[1])
        return ()

    def body_of(self, where: Where) -> list[ast.stmt]:
        """The list of statements in upstream's text that an edit's list of the base is now."""
        if where.owner is None:
            return self.host(where.host).body
        node = (
            self.chain(where.owner, where.host)
            if isinstance(where.owner, ast.If)
            else self.locate(where.owner, where.host).node
        )
        if where.part == "else":
            found = branches(node)[-1].orelse
        elif where.part.startswith("if "):
            found = next((each.body for each in branches(node) if f"if {self.target.key(each.test)}" == where.part), [])
        elif where.part.startswith("except"):
            found = next(
                (each.body for each in getattr(node, "handlers", []) if handler_name(self.target, each) == where.part),
                [],
            )
        else:
            found = getattr(node, where.part, [])
        if not found:
            raise Refused("upstream rewrote the branch that it stands in")
        return found

    def chain(self, node: ast.If, host: str) -> ast.If:
        """The if chain of upstream's text that shares a test with one of the base."""
        tests = {self.base.key(each.test) for each in branches(node)}
        tops = [
            t
            for body, index in below(self.host(host))
            if isinstance(t := body[index], ast.If) and not _is_elif(t, self.target)
        ]
        old = [
            t for body, index in below(self.base.hosts[host])
            if isinstance(t := body[index], ast.If) and not _is_elif(t, self.base) and tests & {self.base.key(e.test) for e in branches(t)}
        ]  # fmt: skip
        found = [top for top in tops if tests & {self.target.key(each.test) for each in branches(top)}]
        if len(found) == len(old) and node in old:
            return found[old.index(node)]
        if found:
            raise Refused(
                f"{len(found)} if chains share a test with the one at line {node.lineno} of the base, {len(old)} expected"
            )
        spot = self.locate(node, host)
        assert isinstance(spot.node, ast.If)
        return spot.node

    def _statement(self, edit: Edit) -> Spot:
        """The statement that an edit inside a statement is about."""
        statement = edit.statement
        assert isinstance(statement, ast.stmt)
        if isinstance(statement, ast.If):
            return Spot([self.chain(statement, edit.where.host)], 0, False)
        if isinstance(statement, DEFINITIONS):
            name = f"{edit.where.host}.{statement.name}" if edit.where.host else statement.name
            return Spot([self.host(name)], 0, False)  # type: ignore[list-item]
        return self.locate(statement, edit.where.host)

    def _inside(self, edit: Edit, node: ast.AST, spot: Spot, key: Callable[[Text, ast.AST], str | None]) -> ast.AST:
        """The node of upstream's statement that a node of the base's statement is now."""
        assert edit.statement is not None
        wanted = key(self.base, node)
        old = [each for each in _header_nodes(edit.statement) if key(self.base, each) == wanted]
        new = [each for each in _header_nodes(spot.node) if key(self.target, each) == wanted]
        if len(old) != len(new) or not new:
            raise Refused(
                f"both sides edited `{short(self.base.code(node))}`"
                if not new
                else f"{len(new)} candidates, {len(old)} expected"
            )
        return new[[each is node for each in old].index(True)]

    # Statements.

    def _insert(self, edit: Edit) -> tuple[str, str]:
        self._refuse_twins(edit)
        before = self._neighbour(edit, edit.at - 1)
        after = self._neighbour(edit, edit.at)
        free = _is_free(edit, self.base.hosts[edit.where.host])
        body, index = self._gap(edit, before, after, free)
        how = self._order(edit, body, before.index + 1 if before and before.body is body else 0, index, free)
        return self._put(body, index, edit, self._own_lines(edit)), how

    def _neighbour(self, edit: Edit, index: int) -> Spot | Refused | None:
        """The statement next to an edit in the base, in upstream's text; None at the edge of the list."""
        if not 0 <= index < len(edit.body):
            return None
        node = edit.body[index]
        try:
            if isinstance(node, DEFINITIONS):
                return self._definition(node, edit.where.host)
            return self.locate(node, edit.where.host)
        except Refused as error:
            return error

    def _definition(self, node: ast.AST, host: str) -> Spot:
        name = f"{host}.{node.name}" if host else node.name
        found = self.host(name)
        for body, index in below(self.host(host)):
            if body[index] is found:
                return Spot(body, index, False)
        raise Refused(f"{name} moved")

    def _gap(
        self, edit: Edit, before: Spot | Refused | None, after: Spot | Refused | None, free: bool
    ) -> tuple[list[ast.stmt], int]:
        """The list and the index to insert at: after what upstream put there, before the shared next statement."""
        if isinstance(before, Refused) and before.gone:
            raise before
        left, right = isinstance(before, Spot), isinstance(after, Spot)
        if left and right and before.body is after.body and before.index < after.index:
            return after.body, after.index
        if left and right and not free:
            raise Refused("upstream put its neighbours into different branches")
        if left and (after is None or free):
            return before.body, len(before.body) if after is None else before.index + 1
        if right and (before is None or free):
            return after.body, after.index
        if free and edit.where.owner is None:
            body = self.host(edit.where.host).body
            return body, len(body)
        reasons = [each.reason for each in (before, after) if isinstance(each, Refused)]
        raise Refused(f"a neighbour is gone: {reasons[0]}" if reasons else "its place is gone")

    def _order(self, edit: Edit, body: list[ast.stmt], first: int, last: int, free: bool) -> str:
        """Whether ours may stand after what upstream put between; how it was composed."""
        known = {self.base.key(each) for each in edit.body}
        between = [
            each for each in body[first:last] if self.target.key(each) not in known and not isinstance(each, IMPORTS)
        ]
        if not between or free:
            return "sibling union" if between else "placed between the same neighbours"
        tests = {self.target.key(each.test) for each in between if isinstance(each, ast.If)}
        if any(isinstance(each, ast.If) and self.ours.key(each.test) in tests for each in edit.new):
            raise Refused("both sides put a branch with the same test here")
        mine, yours = names_of(edit.new), names_of(between)
        if mine[1] & (yours[0] | yours[1]) or yours[1] & mine[0]:
            raise Refused(
                f"it and what upstream put there use the same names: {', '.join(sorted((mine[1] & (yours[0] | yours[1])) | (yours[1] & mine[0])))}"
            )
        if _exits(between) and (not _exits(edit.new) or self._neighbours_edited(edit)):
            raise Refused("upstream put an early exit before it: the order is a decision")
        return "sibling union, upstream's first"

    def _neighbours_edited(self, edit: Edit) -> bool:
        spots = [self._neighbour(edit, edit.at - 1), self._neighbour(edit, edit.at)]
        return any(isinstance(spot, Refused) or (spot and not spot.same) for spot in spots)

    def _refuse_twins(self, edit: Edit) -> None:
        """Stop where upstream has the same statements, or binds the same names in the same host."""
        host = self.host(edit.where.host)
        there = {self.target.key(body[index]) for body, index in below(host)}
        known = {self.base.key(body[index]) for body, index in below(self.base.hosts[edit.where.host])}
        keys = [self.ours.key(node) for node in edit.new]
        if all(key in there and key not in known for key in keys):
            raise Adopted("upstream has the same statements in the same place")
        old, new = _bound_at(self.base.hosts[edit.where.host]), _bound_at(host)
        mine = {name for node in edit.new for name in binds(node)}
        if both := sorted(mine & (new - old)):
            raise Refused(f"upstream now binds {', '.join(both)} here too")

    def _own_lines(self, edit: Edit) -> str:
        """Our lines, without a comment of the base's that only happens to stand above them."""
        first, last = edit.rows
        known = {line.strip() for line in self.base.lines}
        while first < last and (line := self.ours.lines[first].strip()).startswith("#") and line in known:
            first += 1
        return "".join(self.ours.lines[first:last])

    def _put(self, body: list[ast.stmt], index: int, edit: Edit, lines: str) -> str:
        """Lines of ours inserted before body[index], at its depth."""
        lines = reindent(lines, self.ours.indent(edit.new[0]), self.target.indent(body[0]))  # type: ignore[arg-type]
        row = self.target.rows(body[index - 1])[1] if index else self.target.lead(body, 0)
        if not index:
            row = self._first_row(body, row)
        if not lines.endswith(("\n", "\r")):
            lines += self.target.source.newline
        return self.target.with_lines(row, row, lines)

    def _first_row(self, body: list[ast.stmt], row: int) -> int:
        """Above the first statement with the comments right above it, below its header."""
        stop = self.target.rows(body[0])[0]
        while stop > row and self.target.lines[stop - 1].lstrip().startswith("#"):
            stop -= 1
        return stop

    def _delete(self, edit: Edit) -> tuple[str, str]:
        spots = [self._or_adopted(node, edit.where.host) for node in edit.old]
        if any(not spot.same for spot in spots):
            raise Refused("upstream edited what ours removes")
        if len(spots[0].body) == len(spots):
            raise Refused("nothing would be left of the block")
        rows = self._run_rows(spots)
        return self.target.with_lines(*rows, ""), "removed"

    def _or_adopted(self, node: ast.AST, host: str) -> Spot:
        try:
            return self.locate(node, host)  # type: ignore[arg-type]
        except Refused as error:
            if error.gone or "no longer has the statement" not in error.reason:
                raise
            if isinstance(node, (ast.Return, *DEFINITIONS)):
                raise
            raise Adopted("upstream removed it too") from None

    def _run_rows(self, spots: Sequence[Spot]) -> tuple[int, int]:
        """The lines of some statements that follow each other in one list."""
        indexes = [spot.index for spot in spots]
        if any(spot.body is not spots[0].body for spot in spots) or indexes != list(
            range(indexes[0], indexes[0] + len(indexes))
        ):
            raise Refused("upstream put something between them")
        return self.target.rows(spots[0].node)[0], self.target.rows(spots[-1].node)[1]

    def _replace(self, edit: Edit) -> tuple[str, str]:
        if edit.statement is not None:
            spot = self._statement(edit)
            if not isinstance(edit.old[0], type(edit.new[0])) or edit.old[0] is edit.statement:
                raise Refused("its form changed")
            node = self._inside(edit, edit.old[0], spot, lambda text, each: text.key(each))
            return self.target.replaced([(*self.target.span(node), self.ours.code(edit.new[0]))]), "same text, edited"
        there = {self.target.key(body[index]) for body, index in below(self.host(edit.where.host))}
        known = {self.base.key(body[index]) for body, index in below(self.base.hosts[edit.where.host])}
        if all(self.ours.key(node) in there and self.ours.key(node) not in known for node in edit.new):
            raise Adopted("upstream has the same statements")
        self._superset(edit)
        spots = [self.locate(node, edit.where.host) for node in edit.old]  # type: ignore[arg-type]
        if any(not spot.same for spot in spots):
            raise Refused("both sides rewrote it")
        rows, lines = self._run_rows(spots), self._own_lines(edit)
        lines = reindent(lines, self.ours.indent(edit.new[0]), self.target.indent(spots[0].node))  # type: ignore[arg-type]
        return self.target.with_lines(*rows, lines), "the statement it replaces is unchanged"

    def _superset(self, edit: Edit) -> None:
        """Adopted if upstream's statement passes all that ours passes, under no other condition."""
        if len(edit.new) != 1 or not isinstance(edit.new[0], ast.stmt) or len(edit.old) != 1:
            return
        try:
            spot = self.locate(edit.old[0], edit.where.host)  # type: ignore[arg-type]
        except Refused:
            return
        self._adopted_call(spot, edit.new[0])

    def _adopted_call(self, spot: Spot, partner: ast.stmt) -> None:
        """Raise Adopted if upstream's edited statement passes all that ours passes, under no other condition."""
        if spot.same or not passes_all(spot.node, partner, self.target, self.ours):
            return
        if _conditions(self.target, spot.node) <= _conditions(self.ours, partner):
            raise Adopted("upstream's call passes every argument that ours passes")

    def _wrap(self, edit: Edit) -> tuple[str, str]:
        spots = [self._wrapped(node, edit) for node in edit.old]
        if spots[0].body is not self.body_of(edit.where):
            raise Refused(
                "upstream put a condition of its own around what ours wraps: which one is outside is a decision"
            )
        rows = self._run_rows(spots)
        first, last = edit.rows
        if not all(spot.same for spot in spots):
            self._refuse_lazy(spots, edit)
        self._refuse_grown(spots)
        hole_indent = self.ours.lines[edit.hole[0]]
        hole_indent = hole_indent[: len(hole_indent) - len(hole_indent.lstrip())]
        outer, here = self.ours.indent(edit.new[0]), self.target.indent(spots[0].node)  # type: ignore[arg-type]
        inner = "".join(self.target.lines[slice(*rows)])
        inner = reindent(inner, here, here + hole_indent[len(outer) :])
        head = reindent("".join(self.ours.lines[first : edit.hole[0]]), outer, here)
        tail = reindent("".join(self.ours.lines[edit.hole[1] : last]), outer, here)
        return self.target.with_lines(
            *rows, head + inner + tail
        ), "ours wraps the one statement, upstream's text inside"

    def _wrapped(self, node: ast.AST, edit: Edit) -> Spot:
        return self.locate(node, edit.where.host)  # type: ignore[arg-type]

    def _refuse_lazy(self, spots: Sequence[Spot], edit: Edit) -> None:
        """A try around an import whose module changed may never fire."""
        if any(isinstance(spot.node, IMPORTS) for spot in spots) or any(isinstance(node, IMPORTS) for node in edit.old):
            raise Refused(
                "the import that ours wraps changed: its new module may import lazily, and the except never fire"
            )

    def _refuse_grown(self, spots: Sequence[Spot]) -> None:
        """What upstream put right after and that uses what is wrapped would stand outside."""
        rest = spots[-1].body[spots[-1].index + 1 :]
        known = {self.base.key(body[index]) for host in self.base.hosts.values() for body, index in below(host)}
        bound = names_of([spot.node for spot in spots])[1]
        new = [node for node in rest if self.target.key(node) not in known]
        if bound & names_of(new)[0]:
            raise Refused(
                "what ours wraps grew: upstream's new statements use it, and how far the wrapper reaches is a decision"
            )

    # Branches.

    def _branch(self, edit: Edit) -> tuple[str, str]:
        assert isinstance(edit.statement, ast.If)
        top = self.chain(edit.statement, edit.where.host)
        chain = branches(top)
        tests = [self.target.key(each.test) for each in chain]
        if not edit.new:
            return self._drop_branch(edit, chain, tests)
        branch: ast.If = edit.new[0]  # type: ignore[assignment]
        if self.ours.key(branch.test) in tests:
            there = chain[tests.index(self.ours.key(branch.test))]
            if [self.target.key(e) for e in there.body] == [self.ours.key(e) for e in branch.body]:
                raise Adopted("upstream has the same branch")
            raise Refused("upstream has a branch with the same test and another body")
        if not _is_elif(branch, self.ours):
            raise Refused("ours put its branch first: the order of tests is a decision")
        previous, following = (self.base.key(each) if each is not None else "" for each in edit.near)
        if following in tests:
            at = tests.index(following)
        elif following and previous not in tests:
            raise Refused("the branches next to it are gone")
        else:
            at = len(chain) if not following else tests.index(previous) + 1
        if not at:
            raise Refused("upstream made another branch the first: the order of tests is a decision")
        lines = reindent(
            "".join(self.ours.lines[slice(*edit.rows)]), _indent_of(self.ours, branch), self.target.indent(chain[0])
        )
        row = self.target.rows(chain[at - 1].body[-1])[1]
        return self.target.with_lines(row, row, lines), "branch union, before the same next branch"

    def _drop_branch(self, edit: Edit, chain: list[ast.If], tests: list[str]) -> tuple[str, str]:
        branch: ast.If = edit.old[0]  # type: ignore[assignment]
        key = self.base.key(branch.test)
        if key not in tests:
            raise Refused("upstream edited the test of the branch that ours removes")
        found = chain[tests.index(key)]
        if [self.target.key(e) for e in found.body] != [self.base.key(e) for e in branch.body] or found is chain[0]:
            raise Refused("upstream edited the branch that ours removes")
        return self.target.with_lines(found.lineno - 1, self.target.rows(found.body[-1])[1], ""), "removed"

    def _else(self, edit: Edit) -> tuple[str, str]:
        assert isinstance(edit.statement, ast.If)
        last = branches(self.chain(edit.statement, edit.where.host))[-1]
        if not edit.new or last.orelse:
            raise Refused("both sides edited the else")
        first, stop = edit.rows
        row = first
        while not self.ours.lines[row].lstrip().startswith("else"):
            row -= 1
        mine = self.ours.lines[row][: len(self.ours.lines[row]) - len(self.ours.lines[row].lstrip())]
        lines = reindent("".join(self.ours.lines[row:stop]), mine, _indent_of(self.target, last))
        at = self.target.rows(last.body[-1])[1]
        return self.target.with_lines(at, at, lines), "else added"

    # Inside a statement.

    def _within(self, edit: Edit) -> Spot | tuple[str, str]:
        """The statement of an edit inside one; the new text at once if upstream did not touch it."""
        spot = self._statement(edit)
        partner = self.partners.get(id(edit.statement))
        if partner is not None and not list(bodies(partner)):
            if self.target.key(spot.node) == self.ours.key(partner):
                same = self.ours.key(partner) in {
                    self.target.key(b[i])
                    for b, i in below(self.upstream.hosts.get(edit.where.host, self.upstream.tree))
                }
                if same and self.target is self.upstream:
                    raise Adopted("upstream has the same statement")
                return self.target.text, "the same statement, ours"
            if spot.same:
                span = self.target.span(spot.node)
                code = reindent(self.ours.code(partner), self.ours.indent(partner), self.target.indent(spot.node))
                return self.target.replaced([(*span, code)]), "the statement is unchanged upstream"
            self._adopted_call(spot, partner)
        return spot

    def _expression(self, edit: Edit) -> tuple[str, str]:
        spot = self._within(edit)
        if isinstance(spot, tuple):
            return spot
        old, new = edit.old[0], edit.new[0]
        try:
            node = self._inside(edit, old, spot, lambda text, each: text.key(each))
        except Refused:
            if edit.name == "wrap" and (hole := self._role(edit, spot)) is not None:
                return self._fill(new, old, hole), "ours wraps the one expression, upstream's inside"
            raise
        return self.target.replaced([(*self.target.span(node), self.ours.code(new))]), "expression-level merge"

    def _role(self, edit: Edit, spot: Spot) -> ast.AST | None:
        """Upstream's expression in the same role, where the base's is the whole of it."""
        for field in ("value",):
            mine, yours = getattr(edit.statement, field, None), getattr(spot.node, field, None)
            if mine is edit.old[0] and yours is not None:
                return yours
        return None

    def _fill(self, new: ast.AST, old: ast.AST, hole: ast.AST) -> str:
        """Upstream's expression replaced by ours, with upstream's own in the place of the base's."""
        key = self.base.key(old)
        inner = next(each for each in ast.walk(new) if each is not new and self.ours.key(each) == key)
        start, end = self.ours.span(new)
        first, last = self.ours.span(inner)
        code = self.ours.text[start:first] + self.target.code(hole) + self.ours.text[last:end]
        return self.target.replaced([(*self.target.span(hole), code)])

    def _keyword(self, edit: Edit) -> tuple[str, str]:
        spot = self._within(edit)
        if isinstance(spot, tuple):
            return spot
        call = self._inside(edit, edit.old[0], spot, call_key)
        assert isinstance(call, ast.Call)
        there = next((each for each in call.keywords if each.arg == edit.name), None)
        had = edit.old[1] if len(edit.old) > 1 else None
        if there is not None and edit.new and self.target.key(there.value) == self.ours.key(edit.new[0].value):
            raise Adopted(f"upstream passes the same {edit.name}=")
        if (there is None) != (had is None) or (there and self.target.key(there.value) != self.base.key(had.value)):  # type: ignore[union-attr]
            raise Refused(
                f"both sides decide {edit.name}=: ours `{short(self.ours.code(edit.new[0])) if edit.new else 'removes it'}`"
            )
        if there is None:
            items = [*call.args, *call.keywords]
            return self._add(
                items, len(items), self.ours.code(edit.new[0]), self.target.span(call)[1] - 1
            ), "keyword added"
        if not edit.new:
            raise Refused(f"ours removes {edit.name}=, and upstream edited the call")
        return self.target.replaced(
            [(*self.target.span(there), self.ours.code(edit.new[0]))]
        ), "keyword set, its base value is unchanged"

    def _listed(self, edit: Edit) -> tuple[str, str]:
        spot = self._within(edit)
        if isinstance(spot, tuple):
            return spot
        owner = self._owner(edit, spot)
        items = _items(owner)
        keys = [self.target.key(each) for each in items]
        gone, come = edit.old[1:], edit.new
        if any(self.base.key(each) not in keys for each in gone):
            raise Refused("both sides edited the same one")
        fresh = [each for each in come if self.ours.key(each) not in keys]
        if come and not fresh and not gone:
            raise Adopted("upstream has it too")
        if gone and not come and self.target.key(owner) == self.base.key(edit.old[0]):
            return self._take_out(items, keys, gone), "taken out, upstream has the list unchanged"
        if gone:
            return self._swap(owner, items, keys, gone, fresh)
        if edit.kind == "positional":
            raise Refused("both sides edited the arguments of the call")
        return self._add_run(edit, items, keys, fresh, owner), f"{edit.kind} union"

    def _swap(
        self, owner: ast.AST, items: list[ast.AST], keys: list[str], gone: Sequence[ast.AST], come: Sequence[ast.AST]
    ) -> tuple[str, str]:
        if len(gone) != 1 or len(come) != 1:
            raise Refused("ours takes one out of a list that upstream edited too")
        node = items[keys.index(self.base.key(gone[0]))]
        return self.target.replaced([(*self.target.span(node), self.ours.code(come[0]))]), "exchanged"

    def _take_out(self, items: list[ast.AST], keys: list[str], gone: Sequence[ast.AST]) -> str:
        """The text without some items of a list, each with the comma or operator that joins it to the rest."""
        lost = {keys.index(self.base.key(each)) for each in gone}
        kept = [index for index in range(len(items)) if index not in lost]
        if not kept:
            raise Refused("nothing would be left of the list")
        spans = []
        for index in sorted(lost):
            if index > kept[0]:
                spans.append((self._close(items[index - 1]), self._close(items[index]), ""))
            else:
                spans.append((self.target.span(items[index])[0], self.target.span(items[index + 1])[0], ""))
        return self.target.replaced(spans)

    def _owner(self, edit: Edit, spot: Spot) -> ast.AST:
        """The list, call or operation of upstream's statement that is the base's."""
        owner = edit.old[0]
        if isinstance(owner, ast.ClassDef):
            return spot.node
        try:
            return self._inside(edit, owner, spot, lambda text, each: text.key(each))
        except Refused:
            pass
        if isinstance(owner, ast.Call):
            return self._inside(edit, owner, spot, call_key)
        mine = {self.base.key(each) for each in _items(owner)}
        found = [
            node for node in _header_nodes(spot.node)
            if type(node) is type(owner) and _same_operator(node, owner) and mine & {self.target.key(each) for each in _items(node)}
        ]  # fmt: skip
        if not found and isinstance(owner, ast.BoolOp):
            found = self._edited_one_to_one(owner, edit, spot)
        if len(found) != 1:
            raise Refused(f"{len(found)} candidates for the {type(owner).__name__.lower()} that ours edits")
        return found[0]

    def _edited_one_to_one(self, owner: ast.BoolOp, edit: Edit, spot: Spot) -> list[ast.AST]:
        """The only operation of its kind and size on both sides: upstream edited each of its operands."""
        assert edit.statement is not None
        old, new = (
            [
                each
                for each in _header_nodes(node)
                if isinstance(each, ast.BoolOp)
                and _same_operator(each, owner)
                and len(each.values) == len(owner.values)
            ]
            for node in (edit.statement, spot.node)
        )
        return new if len(old) == 1 else []

    def _add_run(
        self, edit: Edit, items: list[ast.AST], keys: list[str], fresh: Sequence[ast.AST], owner: ast.AST
    ) -> str:
        """Several items put after their base neighbour and after upstream's own insert, before the next one."""
        before, after = (self.base.key(each) if each is not None else None for each in edit.near)
        if edit.kind == "operand":
            at = keys.index(before) + 1 if before in keys else keys.index(after) if after in keys else len(items)
        else:
            at = (
                keys.index(after)
                if after in keys
                else len(items)
                if after is None
                else keys.index(before) + 1
                if before in keys
                else len(items)
            )
        if edit.kind == "operand":
            word = "and" if isinstance(owner.op, ast.And) else "or"
            code = "".join(f" {word} {self._operand(each)}" for each in fresh)
            if at:
                end = self._close(items[at - 1])
                return self.target.replaced([(end, end, code)])
            start = self.target.span(items[0])[0]
            return self.target.replaced([(start, start, "".join(f"{self._operand(each)} {word} " for each in fresh))])
        code = self._separated(fresh, items)
        return self._add(items, at, code, self.target.span(owner)[1] - 1)

    def _operand(self, node: ast.AST) -> str:
        code = self.ours.code(node)
        return f"({code})" if isinstance(node, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr)) else code

    def _close(self, node: ast.AST) -> int:
        """The end of a node with the parentheses around it."""
        start, end = self.target.span(node)
        text = self.target.text
        while True:
            right = end + len(text[end:]) - len(text[end:].lstrip())
            left = len(text[:start].rstrip()) - 1
            if (
                text[right : right + 1] != ")"
                or text[left : left + 1] != "("
                or (text[left - 1 : left].isalnum() or text[left - 1 : left] in "_)]")
            ):
                return end
            start, end = left, right + 1

    def _separated(self, nodes: Sequence[ast.AST], items: list[ast.AST]) -> str:
        """Items as they stand in our text, each with the comments right above it."""
        if not items or items[0].lineno == items[-1].lineno:
            return ", ".join(self.ours.code(node) for node in nodes)
        indent = self._column(items[-1])
        parts = []
        for node in nodes:
            row = node.lineno - 1
            first = row
            while first and self.ours.lines[first - 1].lstrip().startswith("#"):
                first -= 1
            notes = [line.strip() for line in self.ours.lines[first:row]]
            parts.append(f"\n{indent}".join([*notes, self.ours.code(node)]))
        return f",\n{indent}".join(parts)

    def _column(self, node: ast.AST) -> str:
        line = self.target.lines[node.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def _add(self, items: list[ast.AST], at: int, code: str, close: int) -> str:
        """The text with `code` as item number `at` of a list that ends at `close`."""
        text = self.target.text
        if not items:
            return self.target.replaced([(close, close, code)])
        spread = items[0].lineno != items[-1].end_lineno or text[: self.target.span(items[0])[0]].rstrip(
            " \t"
        ).endswith("\n")
        gap = f"\n{self._column(items[-1])}" if spread else " "
        if not at:
            start = self.target.span(items[0])[0]
            return self.target.replaced([(start, start, f"{code},{gap}")])
        end = self._close(items[at - 1])
        rest = text[end:close]
        comma = rest.find(",") if at < len(items) or rest.strip().startswith(",") else -1
        if comma < 0:
            return self.target.replaced(
                [(end, end, f",{gap}{code}{',' if spread and rest.strip(' ').startswith(chr(10)) else ''}")]
            )
        place = end + comma + 1
        if spread and (note := rest[comma + 1 :].split("\n")[0]).strip().startswith("#"):
            place += len(note)
        return self.target.replaced([(place, place, f"{gap}{code},")])

    def _item(self, edit: Edit) -> tuple[str, str]:
        spot = self._within(edit)
        if isinstance(spot, tuple):
            return spot
        owner = self._owner(edit, spot)
        assert isinstance(owner, ast.Dict)
        keys = [self.target.key(each) if each else "**" for each in owner.keys]
        if edit.name in keys:
            if self.target.key(owner.values[keys.index(edit.name)]) == self.ours.key(edit.new[-1]):
                raise Adopted("upstream has the same item")
            raise Refused("both sides give one key a value")
        code = ": ".join(self.ours.code(each) for each in edit.new)
        starts: list[ast.AST] = list(owner.values)
        return self._add(starts, len(starts), code, self.target.span(owner)[1] - 1), "item union"

    def _decorator(self, edit: Edit) -> tuple[str, str]:
        spot = self._statement(edit)
        callees = [self.target.key(n.func if isinstance(n, ast.Call) else n) for n in spot.node.decorator_list]
        if not edit.new:
            raise Refused("ours removes a decorator of a definition that upstream edited")
        if edit.name in callees:
            raise Refused("upstream put the same decorator there")
        first = self.target.rows(spot.node)[0]
        indent = self.target.indent(spot.node)
        return self.target.with_lines(
            first, first, f"{indent}@{self.ours.code(edit.new[0])}{self.target.source.newline}"
        ), "decorator added"

    def _parameter(self, edit: Edit) -> tuple[str, str]:
        spot = self._statement(edit)
        near, follows, name = edit.name.split("|")
        here = parameters(spot.node.args)
        if not edit.new:
            raise Refused(f"ours removes the parameter {name} of a signature that upstream edited")
        if name in here:
            raise Refused(f"upstream has a parameter {name} too: one name, two meanings")
        if len(edit.new) < 2:
            raise Refused(f"the parameter {name} has no default, and upstream edited the signature")
        code = self.ours.text[self.ours.span(edit.new[0])[0] : self.ours.span(edit.new[1])[1]]
        names = list(here)
        at = names.index(follows) if follows in here else len(names)
        if at and names[at - 1].startswith("**"):
            at -= 1
        if at == 0 or near not in here:
            raise Refused("the parameters next to it are gone")
        node, default = here[names[at - 1]]
        items = [default or node]
        end = self.target.span(items[0])[1]
        spread = self.target.rows(spot.node)[0] + 1 != node.lineno and node.lineno != spot.node.lineno
        gap = f"\n{self._column(node)}" if spread else " "
        return self.target.replaced([(end, end, f",{gap}{code}")]), "parameter added after upstream's"

    # Imports.

    def _import(self, edit: Edit) -> tuple[str, str]:
        body = self.body_of(edit.where)
        there = {line: node for node in body if isinstance(node, IMPORTS) for line in import_lines(node)}
        if edit.new:
            if edit.name in there:
                raise Adopted("upstream imports the same name")
            bound = edit.name.split()[-1].split(".")[0]
            if rival := next(
                (line for line in there if line.split()[-1].split(".")[0] == bound and not line.startswith("import ")),
                None,
            ):
                raise Refused(f"upstream binds {bound} here too: {rival}")
            return self.add_import(edit.name, body), "import added, by name"
        node = there.get(edit.name)
        if node is None:
            raise Adopted("upstream no longer imports it either")
        bound = edit.name.split()[-1].split(".")[0]
        uses = sum(isinstance(each, ast.Name) and each.id == bound for each in ast.walk(self.target.tree))
        if uses:
            raise Adopted(f"upstream still uses {bound}: its import stands")
        return self._drop_import(node, edit.name), "import removed, by name"

    def add_import(self, line: str, body: list[ast.stmt] | None = None) -> str:
        """The text with one more name imported: in a statement that is there, else in one of its own."""
        body = self.target.tree.body if body is None else body
        head, _, name = line.partition(" import ") if line.startswith("from ") else ("", "", "")
        imports = [node for node in body if isinstance(node, IMPORTS)]
        for node in imports:
            if (
                head
                and isinstance(node, ast.ImportFrom)
                and import_lines(node)[0].partition(" import ")[0] == head
                and node.names[0].name != "*"
            ):
                return self._join_import(node, name)
        after = imports[-1] if imports else None
        if after is None:
            return self._own_import(line, body)
        row = self.target.rows(after)[1]
        return self.target.with_lines(row, row, f"{self.target.indent(after)}{line}{self.target.source.newline}")

    def _own_import(self, line: str, body: list[ast.stmt]) -> str:
        text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        row = self.target.rows(body[0])[1 if text else 0]
        return self.target.with_lines(row, row, f"{self.target.indent(body[0])}{line}{self.target.source.newline}")

    def _join_import(self, node: ast.ImportFrom, name: str) -> str:
        code = self.target.code(node)
        if "(" in code:
            names: list[ast.AST] = list(node.names)
            bound = name.split()[0].lower()
            at = next((k for k, each in enumerate(node.names) if each.name.lower() > bound), len(names))
            ordered = [each.name.lower() for each in node.names]
            at = at if ordered == sorted(ordered) else len(names)
            return self._add(names, at, name, self.target.span(node)[1] - 1)
        if len(code) + len(name) + 2 + node.col_offset <= _WIDTH or "\\" in code:
            end = self.target.span(node)[1]
            return self.target.replaced([(end, end, f", {name}")])
        indent = self.target.indent(node)
        head = code.partition(" import ")[0]
        rows = "".join(f"{indent}    {self.target.code(each)},\n" for each in node.names)
        return self.target.replaced(
            [(*self.target.span(node), f"{head} import (\n{rows}{indent}    {name},\n{indent})")]
        )

    def _drop_import(self, node: ast.stmt, line: str) -> str:
        kept = [each for each in import_lines(node) if each != line]
        rows = self.target.rows(node)
        if not kept:
            return self.target.with_lines(*rows, "")
        alias = node.names[import_lines(node).index(line)]
        start, end = self.target.span(alias)
        rest = self.target.text[end:]
        if rest.lstrip().startswith(","):
            end += rest.index(",") + 1
            end += len(self.target.text[end:]) - len(self.target.text[end:].lstrip(" "))
            row = self.target.lines[alias.lineno - 1]
            if row.strip().rstrip(",") == line.partition("import ")[2]:
                return self.target.with_lines(alias.lineno - 1, alias.lineno, "")
        else:
            start = len(self.target.text[:start].rstrip().rstrip(","))
        return self.target.replaced([(start, end, "")])


_MAKERS: dict[str, Callable[[Placer, Edit], tuple[str, str]]] = {
    "insert": Placer._insert, "delete": Placer._delete, "replace": Placer._replace, "wrap": Placer._wrap,
    "branch": Placer._branch, "else": Placer._else, "expression": Placer._expression, "keyword": Placer._keyword,
    "element": Placer._listed, "operand": Placer._listed, "positional": Placer._listed, "base": Placer._listed,
    "item": Placer._item, "decorator": Placer._decorator, "parameter": Placer._parameter, "import": Placer._import,
}  # fmt: skip


def passes_all(theirs: ast.stmt, ours: ast.stmt, target: Text, mine: Text) -> bool:
    """Whether a statement is a call of the same callee that passes all that ours passes, with equal values."""
    if type(theirs) is not type(ours) or identity(theirs) != identity(ours):
        return False
    one, two = getattr(theirs, "value", None), getattr(ours, "value", None)
    if not isinstance(one, ast.Call) or not isinstance(two, ast.Call) or target.key(one.func) != mine.key(two.func):
        return False
    given = {each.arg: target.key(each.value) for each in one.keywords}
    first = len(one.args)
    if [target.key(each) for each in one.args] != [mine.key(each) for each in two.args[:first]]:
        return False
    # `f(config)` and `f(config=config)`: a name passed to the parameter of its own name.
    named = [(each.id if isinstance(each, ast.Name) else None, each) for each in two.args[first:]]
    named += [(each.arg, each.value) for each in two.keywords]
    return all(name is not None and given.get(name) == mine.key(value) for name, value in named)


def _conditions(text: Text, node: ast.stmt) -> set[str]:
    """The headers of the branches that a statement stands under."""
    found: set[str] = set()

    def walk(owner: ast.AST, headers: tuple[str, ...]) -> bool:
        for child in ast.iter_child_nodes(owner):
            header = (
                f"{type(owner).__name__} {text.key(owner.test)}"
                if isinstance(owner, (ast.If, ast.While))
                else type(owner).__name__
            )
            inner = headers if isinstance(owner, (ast.Module, *DEFINITIONS)) else (*headers, header)
            if child is node:
                found.update(inner)
                return True
            if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)) and walk(child, inner):
                return True
        return False

    walk(text.tree, ())
    return found


def _is_elif(node: ast.If, text: Text) -> bool:
    return text.text.startswith("elif", text.span(node)[0])


def _indent_of(text: Text, node: ast.AST) -> str:
    line = text.lines[node.lineno - 1]
    return line[: len(line) - len(line.lstrip())]


def _header_nodes(node: ast.stmt) -> Iterator[ast.AST]:
    """Every expression of a statement's own header; of an if, those of its elifs too."""
    roots = [each.test for each in branches(node)] if isinstance(node, ast.If) else list(own_expressions(node))
    for root in roots:
        yield from ast.walk(root)


def call_key(text: Text, node: ast.AST) -> str | None:
    """What a call is known by: its callee."""
    return text.key(node.func) if isinstance(node, ast.Call) else None


def _items(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.Call):
        return list(node.args)
    if isinstance(node, ast.ClassDef):
        return [*node.bases, *node.keywords]
    return list(getattr(node, "elts", None) or getattr(node, "values", []))


def _same_operator(one: ast.AST, two: ast.AST) -> bool:
    return type(getattr(one, "op", None)) is type(getattr(two, "op", None))


def _is_free(edit: Edit, host: ast.AST) -> bool:
    """Whether order among siblings says nothing: definitions, and plain values of a class or module."""
    if not isinstance(host, (ast.Module, ast.ClassDef)) or edit.where.owner is not None:
        return False
    return all(isinstance(node, (*DEFINITIONS, ast.Assign, ast.AnnAssign)) for node in edit.new)


def _exits(nodes: Sequence[ast.AST]) -> bool:
    """Whether some statements can leave the block, those of definitions inside aside."""
    return any(
        isinstance(each, _EXITS) for node in nodes if not isinstance(node, DEFINITIONS) for each in ast.walk(node)
    )


def binds(node: ast.AST) -> set[str]:
    """The names that a statement binds where it stands, whatever branch takes."""
    if isinstance(node, DEFINITIONS):
        return {node.name}
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {ast.unparse(each) for each in targets}
    return set()


def imported(node: ast.AST) -> set[str]:
    """The names that an import binds."""
    return {(each.asname or each.name).split(".")[0] for each in node.names} if isinstance(node, IMPORTS) else set()


def _bound_at(host: ast.AST) -> set[str]:
    return {name for body, index in below(host) for name in binds(body[index])}


def short(code: str) -> str:
    """Code on one line, cut."""
    return " ".join(code.split())[:60]
