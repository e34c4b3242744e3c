"""Make an edit where `placing` stops, and say what was assumed: the text of a proposal, never of a result.

Each rule keeps what ours does and the least of upstream that it must overrule. What ours reads must be bound
in upstream's new text, and equal candidates are a stop here as well: nothing is guessed between twins.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from stackctl.carry.edits import Edit, branches, identity
from stackctl.carry.placing import BUILTINS, Placer, Refused, Spot, binds, call_key, imported, short
from stackctl.carry.texts import IMPORTS, Text, below, bodies, names_of, reindent
from stackctl.trees.source import SourceError

Path = tuple[tuple[str, object], ...]
Rule = Callable[["Venturer", Edit], tuple[str, str]]


class Venturer(Placer):
    """A placer with bolder rules for the edits that a person is asked about. What it says is what it assumed."""

    def venture(self, edit: Edit, refused: Refused) -> str:
        """Make an edit that was refused; raises Refused with every rule's reason if none fits."""
        reasons = [refused.reason]
        for rule in _RULES.get(edit.kind, ()):
            try:
                text, how = rule(self, edit)
                self.target = Text(text)
            except (Refused, SourceError) as error:
                reasons.append(error.reason)
                continue
            return how
        raise Refused("; ".join(dict.fromkeys(reasons)), refused.gone)

    def _spot(self, edit: Edit) -> Spot:
        """The statement that an edit inside a statement is about: the only one like it in the host, or in its branch."""
        assert edit.statement is not None
        try:
            return self._statement(edit)
        except Refused as error:
            body = self.body_of(edit.where)
            found = [k for k, each in enumerate(body) if identity(each) == identity(edit.statement)]  # type: ignore[arg-type]
            if error.gone or len(found) != 1:
                raise
            return Spot(body, found[0], False)

    # One value that both sides decide.

    def _over(self, edit: Edit) -> tuple[str, str]:
        """Ours where upstream has another expression in the same role of the same statement."""
        if not edit.old or not edit.new:
            raise Refused("there is no value of ours to put there")
        statement, node = edit.statement, edit.old[0] if edit.kind == "expression" else edit.old[-1].value  # type: ignore[attr-defined]
        assert statement is not None
        spot = self._spot(edit)
        there = self._in_role(statement, spot.node, node)
        new = edit.new[0] if edit.kind == "expression" else edit.new[0].value  # type: ignore[attr-defined]
        if self.target.key(there) == self.ours.key(new):
            return self.target.text, "upstream has the same value by now"
        if edit.name == "wrap" and self.base.key(node) != self.target.key(there):
            return self._fill(new, node, there), f"ours around upstream's `{short(self.target.code(there))}`"
        words = f"ours `{short(self.ours.code(new))}` over upstream's `{short(self.target.code(there))}`"
        was = f" (it was `{short(self.base.code(node))}`)"
        return self.target.replaced([(*self.target.span(there), self.ours.code(new))]), words + was

    def _keyword_over(self, edit: Edit) -> tuple[str, str]:
        """Our keyword where upstream gives it another value."""
        if not edit.new:
            raise Refused("ours removes it")
        call = self._inside(edit, edit.old[0], self._spot(edit), call_key)
        assert isinstance(call, ast.Call)
        mine = edit.new[0].value  # type: ignore[attr-defined]
        there = next((each.value for each in call.keywords if each.arg == edit.name), None)
        if there is None:
            raise Refused("upstream no longer passes it")
        words = f"{edit.name}=: ours `{short(self.ours.code(mine))}` over upstream's `{short(self.target.code(there))}`"
        return self.target.replaced([(*self.target.span(there), self.ours.code(mine))]), words

    def _in_role(self, old: ast.stmt, new: ast.stmt, node: ast.AST) -> ast.AST:
        """The expression of upstream's statement that stands where `node` stands in the base's."""
        roots = [(old, new)]
        if isinstance(old, ast.If) and isinstance(new, ast.If):
            roots = list(zip([each.test for each in branches(old)], self._tests_of(old, new), strict=False))
        for root, there in roots:
            if (path := _path(root, node)) is not None:
                found = _at(there, path)
                if found is None:
                    raise Refused("upstream's statement has another form")
                return found
        raise Refused("it is not in the statement's header")

    def _tests_of(self, old: ast.If, new: ast.If) -> list[ast.expr]:
        """The tests of upstream's chain in the order of the base's, by what the branches hold."""
        chain = branches(new)
        found = []
        for branch in branches(old):
            held = {self.base.key(each) for each in branch.body}
            alike = [each for each in chain if held & {self.target.key(one) for one in each.body}]
            if len(alike) != 1:
                raise Refused(f"{len(alike)} branches like it")
            found.append(alike[0].test)
        return found

    # Statements whose neighbours are gone.

    def _insert_near(self, edit: Edit) -> tuple[str, str]:
        """Our statements beside the nearest of the base's neighbours that upstream still has."""
        self._refuse_twins(edit)
        self._refuse_rivals(edit)
        self._refuse_unbound(edit)
        before, after = self._nearest(edit, -1), self._nearest(edit, 1)
        body, index, how = self._between(before, after)
        return self._put(body, index, edit, self._own_lines(edit)), how

    def _nearest(self, edit: Edit, step: int) -> Spot | None:
        """The next statement of the base on one side of an edit that upstream still has in the host."""
        index = edit.at - 1 if step < 0 else edit.at
        while 0 <= index < len(edit.body):
            found = self._neighbour(edit, index)
            if isinstance(found, Spot):
                return found
            index += step
        return None

    def _between(self, before: Spot | None, after: Spot | None) -> tuple[list[ast.stmt], int, str]:
        if before is not None and after is not None:
            return self._common(before, after)
        if after is not None:
            return after.body, after.index, f"before line {after.node.lineno}, the next statement that is still there"
        if before is not None:
            words = f"after line {before.node.lineno}, the last statement before it that is still there"
            return before.body, before.index + 1, words
        raise Refused("nothing beside it is left")

    def _common(self, before: Spot, after: Spot) -> tuple[list[ast.stmt], int, str]:
        """Right before `after`, in the innermost list that holds both, the blocks around them included."""
        for body, index in reversed(_way_to(self.target.tree, after.node)):
            holder = next((k for k, each in enumerate(body) if each is before.node or _holds(each, before.node)), None)
            if holder is not None and holder < index:
                edge = " in upstream's new block" if body[holder] is not before.node else ""
                words = f"after line {before.node.lineno}{edge} and before line {body[index].lineno}"
                return body, index, words
        raise Refused("upstream changed the order of its neighbours")

    def _refuse_rivals(self, edit: Edit) -> None:
        """Two meanings of one name in one host: what stands later overwrites the other (trap T5)."""
        name = edit.where.host
        mine = names_of(edit.new)[1] - names_of([self.base.hosts[name]])[1]
        there = names_of([self.host(name)])[1] - names_of([self.base.hosts[name]])[1]
        made = names_of([self.upstream.hosts.get(self.hosts.get(name, name), self.upstream.tree)])[1]
        if both := sorted(mine & there & made):
            raise Refused(f"upstream now binds {', '.join(both)} in {name or 'the module'} too")

    def _refuse_unbound(self, edit: Edit) -> None:
        """What ours reads of the base's own must still be there: a guard on a flag that is gone guards nothing."""
        read, bound = names_of(edit.new)
        was, there = all_names(self.base), all_names(self.target)
        lost = sorted(name for name in read - bound - BUILTINS if name in was and name not in there)
        if lost:
            raise Refused(f"it reads {', '.join(lost)}, which upstream's file no longer has")

    # Wrappers.

    def _wrap_inside(self, edit: Edit) -> tuple[str, str]:
        """Ours innermost around the one place where upstream still has what it wraps."""
        spots = [self.locate(node, edit.where.host) for node in edit.old]  # type: ignore[arg-type]
        how = f"ours innermost, around line {spots[0].node.lineno} and inside upstream's own condition"
        return self._around(edit, self._run_rows(spots), spots[0].node), how

    def _wrap_import(self, edit: Edit) -> tuple[str, str]:
        """Ours around the one import of the same block that binds the names that ours wrapped the import of."""
        body, names = self.body_of(edit.where), set().union(*map(imported, edit.old))
        if not names or not all(isinstance(node, IMPORTS) for node in edit.old):
            raise Refused("ours wraps more than imports")
        spots = [Spot(body, k, False) for k, each in enumerate(body) if names & imported(each)]
        if len(spots) != len(edit.old):
            raise Refused(f"{len(spots)} imports bind {', '.join(sorted(names))} in the same block, {len(edit.old)} expected")
        code = short(self.target.code(spots[0].node))
        how = (
            f"the except may never fire: `{code}` is another module than ours guarded, and one that loads its kernel "
            f"when it is called raises only then; what asks whether {', '.join(sorted(names))} is None needs a test of its own"
        )
        return self._around(edit, self._run_rows(spots), spots[0].node), how

    def _wrap_grown(self, edit: Edit) -> tuple[str, str]:
        """Ours around the whole block, where it held the whole block in the base."""
        old = self.base_body(edit)
        if [id(node) for node in old] != [id(node) for node in edit.old]:
            raise Refused("ours wraps a part of the block, and upstream rewrote it")
        body = self.body_of(edit.where)
        rows = self.target.rows(body[0])[0], self.target.rows(body[-1])[1]
        how = f"ours around all of upstream's block, lines {rows[0] + 1} to {rows[1]}, which grew from {len(old)} statements to {len(body)}"
        return self._around(edit, rows, body[0]), how

    def base_body(self, edit: Edit) -> Sequence[ast.stmt]:
        """The base's list of statements that an edit is in."""
        if edit.where.owner is None:
            raise Refused("ours wraps a part of the module or of a function")
        return edit.body

    def _around(self, edit: Edit, rows: tuple[int, int], first: ast.stmt) -> str:
        """Upstream's lines inside our wrapper."""
        start, stop = edit.rows
        hole = self.ours.lines[edit.hole[0]]
        outer, here = self.ours.indent(edit.new[0]), self.target.indent(first)  # type: ignore[arg-type]
        inner = hole[: len(hole) - len(hole.lstrip())][len(outer) :]
        text = reindent("".join(self.target.lines[slice(*rows)]), here, here + inner)
        while not self.ours.lines[start].strip():
            start += 1
        head = reindent("".join(self.ours.lines[start : edit.hole[0]]), outer, here)
        tail = reindent("".join(self.ours.lines[edit.hole[1] : stop]), outer, here)
        return self.target.with_lines(*rows, head + text + tail)

    # The same branch, rewritten by both.

    def _replace_in_branch(self, edit: Edit) -> tuple[str, str]:
        """Ours over what upstream has left of it in the same branch: the statements of the same kind, in a row."""
        if edit.statement is not None or not all(isinstance(node, ast.stmt) for node in (*edit.old, *edit.new)):
            raise Refused("its form changed")
        self._refuse_unbound(edit)
        body = self.body_of(edit.where)
        kinds = {type(node) for node in edit.old}
        known = {self.base.key(body[index]) for host in self.base.hosts.values() for body, index in below(host)}
        spots = [index for index, each in enumerate(body) if type(each) in kinds and binds(each) <= _bound(edit.old)]
        if not spots or len(spots) > len(edit.old) or spots != list(range(spots[0], spots[-1] + 1)):
            raise Refused("upstream has more than one place for it in the same branch")
        if len(body) > len(spots) and any(self.target.key(each) not in known for each in body):
            raise Refused("upstream put something of its own into the same branch")
        rows = self.target.rows(body[spots[0]])[0], self.target.rows(body[spots[-1]])[1]
        indents = self.ours.indent(edit.new[0]), self.target.indent(body[spots[0]])  # type: ignore[arg-type]
        said = " ".join(self.target.code(body[index]) for index in spots)
        return self.target.with_lines(*rows, reindent(self._own_lines(edit), *indents)), f"ours over upstream's `{short(said)}`"

    def _replace_gone(self, edit: Edit) -> tuple[str, str]:
        """Ours where upstream took out what ours replaces: between the neighbours that it had in the same branch."""
        if edit.statement is not None or not edit.body or not all(isinstance(node, ast.stmt) for node in edit.new):
            raise Refused("its form changed")
        self._refuse_unbound(edit)
        body, stop = self.body_of(edit.where), edit.at + len(edit.old)
        if {self.base.key(node) for node in edit.old} & {self.target.key(each) for each in body}:
            raise Refused("upstream still has a part of it in the same branch")
        keys = [self.target.key(each) for each in body]
        if stop < len(edit.body) and keys.count(key := self.base.key(edit.body[stop])) == 1:
            index = keys.index(key)
        elif edit.at and keys.count(key := self.base.key(edit.body[edit.at - 1])) == 1:
            index = keys.index(key) + 1
        else:
            raise Refused("its neighbours in the same branch are gone")
        return self._put(body, index, edit, self._own_lines(edit)), "ours where upstream took out what ours replaces"

    def _branch_over(self, edit: Edit) -> tuple[str, str]:
        """Our statement where upstream put an if with the same test: ours over upstream's."""
        if len(edit.new) != 1 or not isinstance(edit.new[0], ast.If):
            raise Refused("it is not one branch")
        test = self.ours.key(edit.new[0].test)
        old = {id(node) for node in ast.walk(self.base.hosts[edit.where.host])}
        found = [
            body[index] for body, index in below(self.host(edit.where.host))
            if isinstance(body[index], ast.If) and self.target.key(body[index].test) == test and id(body[index]) not in old  # type: ignore[attr-defined]
        ]  # fmt: skip
        if len(found) != 1 or found[0].orelse:  # type: ignore[attr-defined]
            raise Refused(f"{len(found)} branches with this test")
        self._refuse_unbound(edit)
        there = found[0]
        indents = self.ours.indent(edit.new[0]), self.target.indent(there)
        words = f"one test, two bodies: ours over upstream's `{short(self.target.code(there.body[0]))}`"  # type: ignore[attr-defined]
        return self.target.with_lines(*self.target.rows(there), reindent(self._own_lines(edit), *indents)), words

    def _gone_already(self, edit: Edit) -> tuple[str, str]:
        """A removal of ours where upstream removed it from the same branch too, and has it elsewhere."""
        body = self.body_of(edit.where)
        wanted = {self.base.key(node) for node in edit.old}
        if wanted & {self.target.key(each) for each in body}:
            raise Refused("it is still there")
        return self.target.text, "upstream removed it from the same branch too"


def _way_to(root: ast.AST, node: ast.stmt) -> list[tuple[list[ast.stmt], int]]:
    """Every list of statements on the way down to one, outermost first, with the index there."""
    for body in bodies(root):
        for index, child in enumerate(body):
            if child is node:
                return [(body, index)]
            if found := _way_to(child, node):
                return [(body, index), *found]
    return []


def _holds(owner: ast.AST, node: ast.AST) -> bool:
    return any(each is node for each in ast.walk(owner))


def _bound(nodes: Sequence[ast.AST]) -> set[str]:
    return {name for node in nodes for name in binds(node)}


def all_names(text: Text) -> set[str]:
    """Every name that a module binds anywhere, attributes of self included."""
    kept = text.__dict__.get("_all_names")
    if kept is None:
        kept = text.__dict__["_all_names"] = names_of([text.tree])[1]
    return kept


def _path(root: ast.AST, node: ast.AST) -> Path | None:
    """The way from one node down to another: (field, index, or the name of a keyword or key)."""
    if root is node:
        return ()
    for name, value in ast.iter_fields(root):
        for step, child in _children(root, name, value):
            if (rest := _path(child, node)) is not None:
                return ((name, step), *rest)
    return None


def _children(owner: ast.AST, name: str, value: object) -> list[tuple[object, ast.AST]]:
    if isinstance(value, ast.AST):
        return [(None, value)]
    if not isinstance(value, list):
        return []
    if isinstance(owner, ast.Dict) and name == "values":
        return [(ast.dump(key) if key else None, each) for key, each in zip(owner.keys, value, strict=True)]
    return [(each.arg if isinstance(each, ast.keyword) else k, each) for k, each in enumerate(value) if isinstance(each, ast.AST)]


def _at(root: ast.AST, path: Path) -> ast.AST | None:
    """What stands at the end of the same way in another tree, None where it leads nowhere."""
    node = root
    for name, step in path:
        found = [child for there, child in _children(node, name, getattr(node, name, None)) if there == step]
        if len(found) != 1:
            return None
        node = found[0]
    return node if isinstance(node, ast.expr) else None


_RULES: dict[str, tuple[Rule, ...]] = {
    "keyword": (Venturer._keyword_over,),
    "expression": (Venturer._over,),
    "insert": (Venturer._branch_over, Venturer._insert_near),
    "wrap": (Venturer._wrap_inside, Venturer._wrap_import, Venturer._wrap_grown),
    "replace": (Venturer._replace_gone, Venturer._replace_in_branch),
    "delete": (Venturer._gone_already,),
}
