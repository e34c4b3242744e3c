"""What a person is asked about one file: for each unit that waits, a whole text to agree to, or what upstream has now.

A proposal is complete: agreeing to it settles every half of its unit, and it says what was assumed and shows
the code it overrules. Leaving ours out is proposed where structure says so: ours would be dead code, upstream
binds the same name in a sense of its own, or what ours edits is gone and nothing like it is left. Code that is
merely alike says nothing of what it does: it is shown, and the unit is undecided.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from stackctl.carry.merge3 import AGREED, PROVEN, Composed, Half, compose, reads_on
from stackctl.carry.placing import BUILTINS, binds, imported
from stackctl.carry.texts import DEFINITIONS, Text, below, tokens
from stackctl.carry.venturing import all_names
from stackctl.carry.world import World
from stackctl.model.stack import digest
from stackctl.trees.source import SourceError

PLANT, DROP = "plant", "drop"
UNDECIDED = "undecided"  # nothing to agree to: evidence, and the code most like what ours edits
# Refusals that mean that upstream made the feature too: ours beside it is never proposed.
_MADE_TOO = ("one name, two meanings", "upstream now binds")
_UNBOUND = "which upstream's file no longer has"
_ALIKE = 0.5
_MOST_LINES = 40


@dataclass(frozen=True)
class Proposal:
    """One unit's proposal. `text`: for a plant what changes in the file, else upstream's own code."""

    unit: int
    kind: str
    evidence: str
    text: str
    proven: bool = False
    path: str = ""  # the file and the definition in it that ours is ported to, where that is another one
    host: str = ""

    @property
    def digest(self) -> str:
        """What a person agreed to: with another text it is asked again."""
        return digest([self.kind, self.text, *filter(None, [self.path])])[:8]


@dataclass(frozen=True)
class Similar:
    """Upstream's code that is most like some code of the base: where it stands, its text, how much is alike."""

    line: int
    code: str
    share: float
    host: str
    path: str = ""

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.path else f"line {self.line}"
        first = " ".join(self.code.split())[:80]
        return f"{where}{f' in {self.host}' if self.host else ''}: `{first}` ({self.share:.0%} alike)"


@dataclass(frozen=True)
class Elsewhere:
    """What is known beyond one file: upstream's code most like some text, and since when a host is not there."""

    similar: Callable[[str], Similar | None] = lambda code: None
    gone: Callable[[str], str] = lambda host: ""
    port: Callable[[Half, Similar], Proposal | None] = lambda half, similar: None


def proposals(
    base: str, ours: str, theirs: str, made: Composed, world: World | None = None, elsewhere: Elsewhere | None = None
) -> tuple[Proposal, ...]:
    """A proposal for each unit of a composed file for which there is one."""
    try:
        asker = _Asker(Text(base), Text(ours), Text(theirs), made, world or World(), elsewhere or Elsewhere())
    except SourceError:
        return ()
    numbers = sorted({half.unit for half in made.halves if half.unit})
    return tuple(found for number in numbers if (found := asker.ask(number)))


@dataclass
class _Asker:
    base: Text
    ours: Text
    theirs: Text
    made: Composed
    world: World
    elsewhere: Elsewhere

    def ask(self, unit: int) -> Proposal | None:
        """The proposal for one unit."""
        halves = [half for half in self.made.halves if half.unit == unit]
        if all(PROVEN in half.evidence for half in halves):
            return Proposal(unit, DROP, f"ours would be dead code: {halves[0].evidence}", self._host_text(halves), True)
        if any(word in half.evidence for half in halves for word in _MADE_TOO):
            return self._made_too(unit, halves)
        made = self._ventured(halves)
        return self._planted(unit, halves, made) or self._dropped(unit, halves, made)

    # A text of ours.

    def _ventured(self, halves: Sequence[Half]) -> Composed:
        """The file composed anew, some halves by bolder rules."""
        ventured = frozenset(half.pair for half in halves)
        return compose(self.base.text, self.ours.text, self.theirs.text, self.world, ventured=ventured)

    def _planted(self, unit: int, halves: Sequence[Half], made: Composed) -> Proposal | None:
        """Ours in upstream's text, if every half of the unit could be made and no other one is lost."""
        if not self._is_whole(made, halves):
            return None
        lines = difflib.unified_diff(
            self.made.text.splitlines(), made.text.splitlines(), "upstream's", "proposed", lineterm="", n=3
        )
        assumed = dict.fromkeys(half.how.removeprefix(AGREED) for half in made.halves if half.how.startswith(AGREED))
        text = "\n".join(list(lines)[2:])
        return Proposal(unit, PLANT, "; ".join(assumed), text) if assumed and text else None

    def _is_whole(self, made: Composed, halves: Sequence[Half]) -> bool:
        """Whether a composition settles some halves and loses none that was settled."""
        waits = [half for half in made.halves if not half.settled]
        known = {half.pair for half in self.made.halves if not half.settled} - {half.pair for half in halves}
        if any(half.pair not in known for half in waits):
            return False
        rows = {row for half in halves for row in range(*half.rows)}
        return not any(rows & set(range(*half.rows)) for half in waits)

    # Upstream's own.

    def _made_too(self, unit: int, halves: Sequence[Half]) -> Proposal | None:
        """Upstream made the same feature: the names that both bind, with upstream's lines."""
        names = self._both_bind(halves)
        rows = [(row, name) for row, name in self._bindings(self.theirs) if name in names]
        if not rows:
            return None
        shown = [f"{row + 1}: {self.theirs.lines[row].rstrip()}" for row, _ in rows[:_MOST_LINES]]
        reason = next(half.evidence for half in halves if any(word in half.evidence for word in _MADE_TOO))
        real = {name for _, name in self._bindings(self.theirs, imports=False)} & set(re.findall(r"\w+", reason)) & names
        if not real:  # that both import a name says nothing of what they do with it
            return Proposal(unit, UNDECIDED, f"{reason}; upstream's lines that bind {', '.join(sorted(names)[:4])} are shown", "\n".join(shown))
        words = f"upstream has a form of its own ({reason}); ours and upstream's {', '.join(sorted(names)[:4])} cannot both stand"
        return Proposal(unit, DROP, words, "\n".join(shown))

    def _both_bind(self, halves: Sequence[Half]) -> set[str]:
        """The names that our halves bind, and that upstream binds more often than the base."""
        rows = {row for half in halves for row in range(*half.rows)}
        mine = {name for row, name in self._bindings(self.ours) if row in rows}
        old, new = ([name for _, name in self._bindings(text)] for text in (self.base, self.theirs))
        return {name for name in mine if new.count(name) > old.count(name)}

    def _bindings(self, text: Text, imports: bool = True) -> list[tuple[int, str]]:
        """(row, name) of what a module assigns, defines, takes as a parameter, or imports."""
        found = []
        for node in ast.walk(text.tree):
            if isinstance(node, ast.arg):
                found.append((node.lineno - 1, node.arg))
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.append((node.lineno - 1, node.id))
            elif isinstance(node, DEFINITIONS):
                found.append((node.lineno - 1, node.name))
            elif isinstance(node, ast.alias) and imports:
                found.append((node.lineno - 1, (node.asname or node.name).split(".")[0]))
        return sorted(found)

    def _dropped(self, unit: int, halves: Sequence[Half], made: Composed) -> Proposal | None:
        """Upstream's most similar code, where what ours edits is gone or is written anew.

        Leaving ours out is proposed only where its host is gone, and nothing is like it or what ours reads went too.
        """
        mine = {half.pair for half in halves}
        said = [half.evidence for half in made.halves if half.pair in mine and not half.settled]
        reasons = dict.fromkeys([*filter(None, said), *(half.evidence for half in halves)])
        gone = dict.fromkeys(half.host for half in halves if self._is_gone(half.host))
        found = [each for half in halves for each in self._similar(half)]
        if gone or not found:
            found += self._beyond(halves)
        since = dict.fromkeys(filter(None, map(self.elsewhere.gone, gone)))
        if not found and not since and not any(_UNBOUND in reason for reason in reasons):
            return None
        best = max(found, key=lambda each: each.share, default=None)
        words = f"{'; '.join([*list(reasons)[:3], *since])}; " + (
            f"the most similar code now: {best}" if best else "nothing like it is in the new release"
        )
        left = best is None or (best.code in self.theirs.text and self._reads_what_is_gone(halves))
        if best is not None and best.path and len(halves) == 1 and (ported := self.elsewhere.port(halves[0], best)):
            return replace(ported, evidence=f"{'; '.join(list(reasons)[:1])}; {ported.evidence}")
        kind = DROP if left and all(self._is_gone(half.host) for half in halves) else UNDECIDED
        return Proposal(unit, kind, words, "\n".join(dict.fromkeys(each.code for each in found)))

    def _reads_what_is_gone(self, halves: Sequence[Half]) -> bool:
        """Whether our lines read a name of the base's that upstream's file binds nowhere any more."""
        read = {name for half in halves for name in reads_on(self.ours, *half.rows)}
        return bool(read & all_names(self.base) - all_names(self.theirs) - BUILTINS)

    def _is_gone(self, host: str) -> bool:
        return bool(host) and host in self.base.hosts and host not in self.theirs.hosts

    def _beyond(self, halves: Sequence[Half]) -> list[Similar]:
        """Upstream's code in another file that is most like what the halves are about."""
        hosts = {half.host for half in halves if self._is_gone(half.host)}
        nodes = [self.base.hosts[host] for host in sorted(hosts)]
        if not nodes:
            nodes = [node for half in halves for node in self._edited(half)[0]]
        code = "\n".join([self.base.code(node) for node in nodes] + ["".join(self.ours.lines[slice(*h.rows)]) for h in halves])
        found = self.elsewhere.similar(code)
        return [found] if found else []

    def _similar(self, half: Half) -> list[Similar]:
        """Upstream's statement, or definition where the host is gone, that is most like what a half edits.

        Where some bind the same names, it is these: they are its form now.
        """
        wanted, code = self._edited(half)
        if not code:
            return []
        mine = tokens(code.splitlines(keepends=True))
        bound = set().union(*(binds(node) | imported(node) for node in wanted))
        alike, same = [], []
        for host, node in self._candidates(half):
            found = Similar(node.lineno, self.theirs.code(node), self._share(mine, node), host)
            alike += [found] if found.share >= _ALIKE else []
            same += [found] if bound & (binds(node) | imported(node)) else []
        return same[:3] or sorted(alike, key=lambda each: -each.share)[:1]

    def _share(self, mine: list[str], node: ast.stmt) -> float:
        lines = self.theirs.lines[slice(*self.theirs.rows(node))]
        if len(lines) > 8 * _MOST_LINES:
            return 0.0
        matcher = difflib.SequenceMatcher(None, mine, tokens(lines), autojunk=False)
        return matcher.ratio() if matcher.quick_ratio() >= _ALIKE else 0.0

    def _edited(self, half: Half) -> tuple[list[ast.stmt], str]:
        """The base's statements that a half is about (its host's definition where that is gone), and their text.

        For an insert it is what ours puts in: what stood beside it says nothing.
        """
        node = self.base.hosts.get(half.host)
        if self._is_gone(half.host) and isinstance(node, ast.stmt):
            return [node], self.base.code(node)
        first, last = half.base_rows
        rows = [(each, self.base.rows(each)) for each in self._statements(self.base, half.host)]
        found = [each for each, (start, stop) in rows if first <= start < last or (start <= first and last <= stop and start < stop)]
        inner = [each for each in found if first <= each.lineno - 1] or found[-1:]
        mine = "".join(self.ours.lines[slice(*half.rows)])
        if half.evidence.startswith("a neighbour is gone") or not inner:
            return [], mine
        return inner, "".join(self.base.code(each) + "\n" for each in inner[:3])

    def _candidates(self, half: Half) -> Iterator[tuple[str, ast.stmt]]:
        """(host, statement) of upstream's text among which to look."""
        if half.host in self.theirs.hosts:
            yield from ((half.host, node) for node in self._statements(self.theirs, half.host))
        else:
            yield from ((name, node) for name, node in self._definitions)

    @cached_property
    def _definitions(self) -> list[tuple[str, ast.stmt]]:
        return [(name, node) for name, node in self.theirs.hosts.items() if isinstance(node, ast.stmt)]

    def _statements(self, text: Text, host: str) -> list[ast.stmt]:
        node = text.hosts.get(host)
        found = [body[index] for body, index in below(node)] if node is not None else []
        return [each for each in found if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]

    def _host_text(self, halves: Sequence[Half]) -> str:
        """Upstream's text of the host that some halves are in."""
        node = self.theirs.hosts.get(halves[0].host)
        return self.theirs.code(node) if isinstance(node, ast.stmt) else ""
