"""Compose one file of base, ours and theirs: exact first, then by structure, every half accounted for.

What git's three-way merge takes cleanly is taken. Each of our edits that stands in a conflict is then made
in upstream's text by `placing`. What cannot be made safely is left out with all that hangs on it (who reads
what it defines, and what only it reads), and upstream's text stands there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from stackctl.carry.edits import Difference, Edit, branches, import_lines, parameters
from stackctl.carry.placing import BUILTINS, Adopted, Placer, Refused
from stackctl.carry.renames import learnt, renamed
from stackctl.carry.texts import DEFINITIONS, IMPORTS, Hunk, Text, below, line_hunks, only_comments, reindent, tokens
from stackctl.carry.venturing import Venturer
from stackctl.carry.world import World
from stackctl.model.stack import digest
from stackctl.trees.source import SourceError

CARRIED, ADOPTED, PROPOSAL, LEFT_OUT, COMMENT, DROPPED = (
    "carried",
    "adopted",
    "proposal",
    "left out",
    "comment lost",
    "dropped",
)
LOOK = "look"  # carried, and something about it that a person should look at
AGREED = "as a person agreed: "  # how a half was made where that was a person's decision
PROVEN = "nothing there reads "  # in the evidence of what would be dead code in the new release
_ROUNDS = 8
_DEFINED = frozenset(DEFINITIONS)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TWIN = (
    "one name, two meanings",
    "upstream now binds",
    "both sides decide",
    "both sides put",
    "both sides give",
    "upstream has a branch",
)


@dataclass(frozen=True)
class Half:
    """One half of ours: its lines in ours and in the base (from 0, half open), and what became of it."""

    state: str
    rows: tuple[int, int]
    base_rows: tuple[int, int]
    host: str = ""
    text: str = ""
    how: str = ""
    evidence: str = ""
    path: str = ""
    exact: bool = False
    unit: int = 0

    @property
    def settled(self) -> bool:
        """Whether no person is needed for it."""
        return self.state in (CARRIED, ADOPTED, DROPPED, LOOK)

    @property
    def name(self) -> str:
        """What it is known by from one run to the next."""
        return digest([self.path, self.host, self.text])[:12]

    @property
    def pair(self) -> tuple[str, str]:
        """What it is known by within its file: its host and its first line."""
        return self.host, self.text


@dataclass(frozen=True)
class Composed:
    """The composed text and one row for each half."""

    text: str
    halves: tuple[Half, ...] = ()


@dataclass(frozen=True)
class _Piece:
    """A half while it is worked on: a hunk that Git takes, or an edit that is placed."""

    rows: tuple[int, int]
    base_rows: tuple[int, int]
    host: str
    state: str
    how: str = ""
    evidence: str = ""
    exact: bool = False

    @property
    def key(self) -> tuple[int, int, int, int]:
        return (*self.rows, *self.base_rows)


def compose(
    base: str, ours: str, theirs: str, world: World | None = None, hosts: dict[str, str] | None = None,
    ventured: frozenset[tuple[str, str]] = frozenset(),
) -> Composed:  # fmt: skip
    """Ours on theirs. `world` answers for the other files of upstream's tree; `hosts` follows moved definitions.

    `ventured` are the halves, by `Half.pair`, that are made by the bolder rules of `venturing`: what a person
    agreed to, or is to be asked about.
    """
    try:
        old, yours, mine = _parsed(base), _parsed(theirs), Text(ours)
        composer = _Composer(old, mine, yours, world or World(), hosts or {}, ventured)
        made = composer.run()
        # Where upstream replaced an expression throughout, base and ours are read as if they had it already.
        if all(half.settled for half in made.halves) or not (names := _learnt(base, theirs)):
            return made
        texts = renamed(old, names), renamed(mine, names), Text(theirs)
        return _Composer(*texts, world or World(), hosts or {}, ventured).run()
    except SourceError:
        return by_lines(base, ours, theirs)


@lru_cache(maxsize=24)
def _parsed(text: str) -> Text:
    """A text of upstream's: the same for every patch that touches the file."""
    return Text(text)


@lru_cache(maxsize=24)
def _learnt(base: str, theirs: str) -> Mapping[str, str]:
    return learnt(_parsed(base), _parsed(theirs))


def by_lines(base: str, ours: str, theirs: str) -> Composed:
    """The merge of files that are not Python: hunks in conflict are left out."""
    old, mine, yours = (text.splitlines(keepends=True) for text in (base, ours, theirs))
    left, right = line_hunks(old, mine), line_hunks(old, yours)
    clean = [hunk for hunk in left if not any(hunk.touches(other) for other in right)]
    halves = []
    for hunk in left:
        same = any((hunk.start, hunk.end, hunk.lines) == (o.start, o.end, o.lines) for o in right)
        state = CARRIED if hunk in clean else ADOPTED if same else LEFT_OUT
        why = "" if state is CARRIED else "upstream has the same lines" if same else "both sides edited these lines"
        halves.append(
            Half(
                state,
                (hunk.first, hunk.last),
                (hunk.start, hunk.end),
                "",
                _shown(hunk.lines),
                "three-way merge",
                why,
                exact=True,
            )
        )
    return Composed("".join(_laid(old, clean, yours, right)), tuple(halves))


def _laid(old: Sequence[str], hunks: Sequence[Hunk], target: Sequence[str], theirs: Sequence[Hunk]) -> list[str]:
    """Target's lines with clean hunks of ours made in them."""
    lines = list(target)
    for hunk in sorted(hunks, key=lambda each: each.start, reverse=True):
        shift = sum(len(other.lines) - (other.end - other.start) for other in theirs if other.end <= hunk.start)
        if hunk.lines and lines and hunk.start + shift == len(lines) and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        lines[hunk.start + shift : hunk.end + shift] = hunk.lines
    return lines


def _shown(lines: Sequence[str]) -> str:
    return next(
        (" ".join(line.split())[:100] for line in lines if line.strip() and not line.lstrip().startswith("#")), ""
    )


class _Composer:
    """One file."""

    def __init__(
        self, base: Text, ours: Text, theirs: Text, world: World, hosts: dict[str, str],
        ventured: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:  # fmt: skip
        self.base, self.ours, self.theirs = base, ours, theirs
        self.world, self.hosts, self.ventured = world, hosts, ventured
        self.left = line_hunks(base.lines, ours.lines)
        known = theirs.__dict__.setdefault("_hunks", {})  # by base: the same for every patch that touches the file
        self.right = known[base.text] = known.get(base.text) or line_hunks(base.lines, theirs.lines)
        self.result: Text = theirs
        self.out: dict[tuple[int, int], str] = {}  # rows of ours that are left out, and why
        self.out_base: dict[tuple[int, int], str] = {}  # hunks of ours without lines of their own, by the base's rows
        self.brought: dict[str, str] = {}  # imports that upstream took out and that our lines need, and how they are known
        self.bringing: dict[_Piece, list[str]] = {}  # the pieces that need them

    def run(self) -> Composed:
        """Compose, and again without what hangs on what was left out, until nothing more does."""
        pieces, text = self._round()
        for _ in range(_ROUNDS):
            known = len(self.brought)
            found = self._dependents(pieces, text)
            if not found and len(self.brought) == known:
                break
            for piece, why in found:
                self._leave(piece, why)
            pieces, text = self._round()
        else:
            self._leave_all(pieces)
            pieces, text = self._round()
        needed = {line for piece in pieces if piece.state is CARRIED for line in self.bringing.get(piece, ())}
        if needed != self.brought.keys():  # what needed it was left out after all
            self.brought = {line: how for line, how in self.brought.items() if line in needed}
            pieces, text = self._round()
        more = [*self._unread(pieces, text), *self._odd(pieces)]
        return Composed(text, tuple(self._halves([*map(self._with_import, pieces), *more])))

    def _odd(self, pieces: Sequence[_Piece]) -> Iterator[_Piece]:
        """What is carried faithfully and may yet be wrong: a branch whose siblings upstream changed, an operand that went along."""
        lines = [line for hunk in self.left for line in (*hunk.lines, *self.base.lines[hunk.start : hunk.end])]
        if not any("elif " in line or " or " in line or " and " in line for line in lines):
            return
        stands = [piece for piece in pieces if piece.state == CARRIED]
        edits = self._edits
        for edit in edits:
            rows, old = edit.rows, _edit_rows(edit)
            if not any(_overlap(p.rows, rows) if edit.new else _overlap(p.base_rows, old) for p in stands):
                continue
            if why := self._changed_siblings(edit) or self._also_gone(edit, edits):
                yield _Piece(rows, old, edit.where.host, LOOK, "", why)

    def _changed_siblings(self, edit: Edit) -> str:
        """Words for a branch of ours in a chain of which upstream edited other branches."""
        if edit.kind != "branch" or not edit.new or not isinstance(edit.statement, ast.If):
            return ""
        try:
            chain = Placer(self.base, self.ours, self.theirs, {}, self.hosts).chain(edit.statement, edit.where.host)
        except Refused:
            return ""
        theirs = {self.theirs.key(each.test): "".join(map(self.theirs.key, each.body)) for each in branches(chain)}
        edited = [
            each for each in branches(edit.statement)
            if theirs.get(self.base.key(each.test), own := "".join(map(self.base.key, each.body))) != own
        ]  # fmt: skip
        new = self._new_parameters(edit) - {name for name, _ in _read_on(self.ours, *edit.rows)}
        if len(edited) < 2 and not (edited and new):
            return ""
        words = f" and gave {edit.where.host} the parameter {', '.join(sorted(new))}" if new else ""
        return f"upstream edited {len(edited)} of the branches beside this one{words}: ours may need the same"

    def _new_parameters(self, edit: Edit) -> set[str]:
        old, new = self.base.hosts.get(edit.where.host), self.theirs.hosts.get(edit.where.host)
        if not isinstance(old, _FUNCTIONS) or not isinstance(new, _FUNCTIONS):
            return set()
        return set(parameters(new.args)) - set(parameters(old.args))

    def _also_gone(self, edit: Edit, edits: Sequence[Edit]) -> str:
        """Words for an edit that takes an operand out, beside others or alone: a stale patch does that unmeant."""
        if edit.kind != "operand" or edit is not next(
            each for each in edits if each.kind == "operand" and each.old[0] is edit.old[0]
        ):
            return ""
        gone = [
            node for each in edits if each.kind == "operand" and each.old[0] is edit.old[0] for node in each.old[1:]
        ]
        return f"ours also takes `{'`, `'.join(map(self.base.code, gone))}` out: was that meant?" if gone else ""

    def _unread(self, pieces: Sequence[_Piece], text: str) -> Iterator[_Piece]:
        """What no piece speaks of: a hunk of which no edit was found, a comment that did not come along."""
        known = {line.strip() for line in text.splitlines()}
        exact = {piece.rows for piece in pieces if piece.exact or piece.state in (COMMENT, LEFT_OUT)}
        for hunk in self.left:
            if not any(
                _overlap(piece.rows, (hunk.first, hunk.last)) or _overlap(piece.base_rows, (hunk.start, hunk.end))
                for piece in pieces
            ):
                yield self._piece(hunk, PROPOSAL, "", "no edit that could be placed was found in these lines")
            elif (hunk.first, hunk.last) not in exact and all(
                piece.state == CARRIED for piece in pieces if _overlap(piece.rows, (hunk.first, hunk.last))
            ):
                for row in range(hunk.first, hunk.last):
                    line = self.ours.lines[row].strip()
                    if (
                        line.startswith("#")
                        and line not in known
                        and line not in {each.strip() for each in self.base.lines}
                    ):
                        yield _Piece(
                            (row, row + 1),
                            (hunk.start, hunk.start),
                            host_at(self.ours, row),
                            COMMENT,
                            "",
                            f"our comment did not come along: {line[:80]}",
                        )
                        break

    def _leave(self, piece: _Piece, why: str) -> None:
        if piece.rows[0] < piece.rows[1]:
            self.out.setdefault(piece.rows, why)
        else:
            self.out_base.setdefault(piece.base_rows, why)

    def _leave_all(self, pieces: Sequence[_Piece]) -> None:
        """No order was found in which all of it stands: nothing of the file is carried."""
        for piece in pieces:
            self._leave(piece, piece.evidence or "left out with the rest of the file: its halves hang on each other")
        for hunk in self.left:
            if hunk.first < hunk.last:
                self.out.setdefault((hunk.first, hunk.last), "left out with the rest of the file")
            self.out_base.setdefault((hunk.start, hunk.end), "left out with the rest of the file")

    # One round.

    def _round(self) -> tuple[list[_Piece], str]:
        same = [h for h in self.left if any((h.start, h.end, h.lines) == (o.start, o.end, o.lines) for o in self.right)]
        pieces = [self._piece(h, ADOPTED, "upstream has the same lines") for h in same]
        quiet = self._quiet()
        right = [other for other in self.right if other not in quiet]
        todo = [h for h in self.left if h not in same]
        mute = [h for h in todo if any(h.touches(o) for o in right) and self._is_comment(h)]
        pieces += [
            self._piece(h, CARRIED, "only comments taken out on our side: upstream's text stands")
            for h in mute
            if not self._says(h)
        ]
        rest = [h for h in todo if h not in mute]
        dropped = [h for h in rest if self._why_out((h.first, h.last), (h.start, h.end))]
        exact = [h for h in rest if h not in dropped and not any(h.touches(o) for o in right)]
        exact, before, after = self._parsed(exact, same, right)
        pieces += [self._piece(h, CARRIED, "three-way merge", exact=True) for h in exact]
        made, text = self._place(before, after)
        text, noted = self._comments([h for h in mute if self._says(h)], text)
        pieces += noted
        text = self._importing(text)
        whole = {row for piece in made for row in range(*piece.rows)}
        pieces += made
        pieces += [
            self._piece(h, LEFT_OUT, "", self._why_out((h.first, h.last), (h.start, h.end)))
            for h in dropped
            if not whole & set(range(h.first, h.last))
        ]
        return pieces, text

    def _quiet(self) -> list[Hunk]:
        """Upstream's hunks without code that stand in our way: ours is taken there."""
        return [
            other for other in self.right
            if any(other.touches(h) for h in self.left) and tokens(self.base.lines[other.start : other.end]) == tokens(other.lines)
            and only_comments(self.base.lines[other.start : other.end]) and only_comments(other.lines)
        ]  # fmt: skip

    def _is_comment(self, hunk: Hunk) -> bool:
        """Whether our hunk changes comments and blank lines alone."""
        return only_comments(self.base.lines[hunk.start : hunk.end]) and only_comments(hunk.lines)

    def _says(self, hunk: Hunk) -> bool:
        """Whether our hunk brings a comment of its own."""
        return any(line.strip() for line in hunk.lines)

    def _why_out(self, rows: tuple[int, int], base_rows: tuple[int, int]) -> str:
        """Why some rows of ours are left out, if they are."""
        for (first, last), why in self.out.items():
            if rows[0] < last and first < rows[1]:
                return why
        return self.out_base.get(base_rows, "") if rows[0] == rows[1] else ""

    def _parsed(self, exact: list[Hunk], same: list[Hunk], right: list[Hunk]) -> tuple[list[Hunk], Text, Text]:
        """The clean hunks that leave both the base and upstream's text parsable, and both texts."""
        kept = exact
        for attempt in range(3):
            old = "".join(_laid(self.base.lines, [*kept, *same], self.base.lines, []))
            new = "".join(_laid(self.base.lines, kept, self._target_lines(right), right))
            try:
                return (
                    kept,
                    self.ours if old == self.ours.text else self.base if old == self.base.text else Text(old),
                    Text(new),
                )
            except SourceError:
                kept = self._apart(kept, right) if not attempt else []
        return [], self.base, Text("".join(self._target_lines(right)))

    def _target_lines(self, right: Sequence[Hunk]) -> list[str]:
        """Upstream's text without its quiet hunks."""
        return _laid(self.base.lines, right, self.base.lines, [])

    def _apart(self, exact: Sequence[Hunk], right: Sequence[Hunk]) -> list[Hunk]:
        """The clean hunks that share no top-level statement with one in conflict."""
        spans = [self.base.rows(node) for node in self.base.tree.body]
        rough = [h for h in self.left if any(h.touches(o) for o in right)]
        busy = [span for span in spans if any(h.start <= span[1] and span[0] <= h.end for h in rough)]
        return [h for h in exact if not any(h.start <= span[1] and span[0] <= h.end for span in busy)]

    def _comments(self, hunks: Sequence[Hunk], text: str) -> tuple[str, list[_Piece]]:
        """Our comments put above the line that they stood above, where that line is the only one like it."""
        lines, pieces = text.splitlines(keepends=True), []
        for hunk in hunks:
            following = next((line for line in self.ours.lines[hunk.last :] if not only_comments([line])), "")
            found = [row for row, line in enumerate(lines) if line.strip() == following.strip()]
            alike = sum(line.strip() == following.strip() for line in self.ours.lines)
            if following.strip() and len(found) == alike == 1:
                depths = [line[: len(line) - len(line.lstrip())] for line in (following, lines[found[0]])]
                lines[found[0] : found[0]] = [reindent(line, *depths) for line in hunk.lines if line.strip()]
                pieces.append(self._piece(hunk, CARRIED, "the comment follows the line it preceded"))
            else:
                pieces.append(self._piece(hunk, COMMENT, "", "upstream rewrote what the comment speaks of"))
        return "".join(lines), pieces

    def _place(self, before: Text, after: Text) -> tuple[list[_Piece], str]:
        """Make every edit that is not in the text yet."""
        if before is self.ours:
            self.result = after
            return [], after.text
        difference = Difference(before, self.ours)
        edits = difference.edits()
        placer = Venturer(before, self.ours, after.text, difference.partners, self.hosts)
        pieces = []
        for edit in sorted(edits, key=lambda each: each.kind != "import"):
            base_rows = self._base_rows(edit, before)
            why = self._why_out(edit.rows, base_rows)
            if why:
                pieces.append(self._edited(edit, LEFT_OUT, "", why, base_rows))
                continue
            try:
                how = placer.make(edit)
                pieces.append(self._edited(edit, CARRIED, how, "", base_rows))
            except Adopted as adopted:
                pieces.append(self._edited(edit, ADOPTED, "", adopted.reason, base_rows))
            except Refused as refused:
                pieces.append(self._refused(edit, placer, refused, base_rows))
        self.result = placer.target
        return pieces, placer.target.text

    def _refused(self, edit: Edit, placer: Venturer, refused: Refused, base_rows: tuple[int, int]) -> _Piece:
        """A refused edit as a piece: made by a bolder rule where it is to be, else a proposal."""
        piece = self._edited(edit, PROPOSAL, "", refused.reason + self._dead(edit, placer), base_rows)
        if self._pair(piece) not in self.ventured:
            return piece
        try:
            return replace(piece, state=CARRIED, how=AGREED + placer.venture(edit, refused), evidence="")
        except Refused as error:
            return replace(piece, evidence=error.reason)

    def _pair(self, piece: _Piece) -> tuple[str, str]:
        return piece.host, self._text_of(piece)

    def _text_of(self, piece: _Piece) -> str:
        return _shown(self.ours.lines[slice(*piece.rows)]) or _shown(self.base.lines[slice(*piece.base_rows)])

    def _dead(self, edit: Edit, placer: Placer) -> str:
        """Words for an edit of an assignment whose name upstream's host no longer has at all: it would be dead."""
        statement = edit.statement or (edit.old[0] if edit.old else None)
        host = placer.target.hosts.get(self.hosts.get(edit.where.host, edit.where.host))
        if not isinstance(statement, ast.Assign) or host is None or not edit.where.host:
            return ""
        names = {each.id for each in statement.targets if isinstance(each, ast.Name)}
        there = {each.id for each in ast.walk(host) if isinstance(each, ast.Name)}
        return f"; {PROVEN}{', '.join(sorted(names))} any more" if names and not names & there else ""

    def _base_rows(self, edit: Edit, before: Text) -> tuple[int, int]:
        """The base's lines that an edit is about, as near as they are known."""
        first, last = _edit_rows(edit)
        return self._back(first, before), self._back(last, before)

    def _back(self, row: int, before: Text) -> int:
        """A row of the base with clean hunks in it, as a row of the base."""
        if before is self.base or before.text == self.base.text:
            return row
        for hunk in line_hunks(self.base.lines, before.lines)[::-1]:
            if row >= hunk.last:
                return row - hunk.last + hunk.end
            if row >= hunk.first:
                return hunk.start
        return row

    def _piece(self, hunk: Hunk, state: str, how: str, evidence: str = "", exact: bool = False) -> _Piece:
        return _Piece(
            (hunk.first, hunk.last),
            (hunk.start, hunk.end),
            host_at(self.ours, hunk.first),
            state,
            how,
            evidence or (how if state is ADOPTED else ""),
            exact,
        )

    def _edited(self, edit: Edit, state: str, how: str, evidence: str, base_rows: tuple[int, int]) -> _Piece:
        return _Piece(edit.rows, base_rows, edit.where.host, state, how, evidence)

    # What hangs together.

    def _dependents(self, pieces: Sequence[_Piece], text: str) -> list[tuple[_Piece, str]]:
        """What must be left out because something else is, or because upstream has it in another sense."""
        found = self._rivals(pieces)
        failed = [piece for piece in pieces if piece.state in (PROPOSAL, LEFT_OUT)]
        if failed:
            found += (
                self._readers(pieces, failed)
                + self._orphans(pieces, failed)
                + self._feature(pieces, failed)
                + self._removals(pieces, failed)
                + self._guards(pieces, failed)
                + self._together(pieces, failed)
            )
        return found or self._unresolved(pieces, text)

    def _rivals(self, pieces: Sequence[_Piece]) -> list[tuple[_Piece, str]]:
        """Clean hunks that bind a name which upstream newly binds in the same host."""
        found = []
        for piece in pieces:
            if piece.state is not CARRIED or not piece.exact:
                continue
            for name, host in self._introduced(piece):
                if name.startswith("="):
                    continue
                there = self.theirs.hosts.get(self.hosts.get(host, host))
                if (
                    there is not None
                    and host in self.base.hosts
                    and name in _own_names(there)
                    and name not in _own_names(self.base.hosts[host])
                ):
                    found.append((piece, f"upstream now binds {name} in {host or 'this module'} too"))
                    break
        return found

    def _introduced(self, piece: _Piece) -> set[tuple[str, str]]:
        """(name, host) that our rows bind and the base's host does not; "=k@f" is the parameter k of f."""
        found = set()
        for name, host in _bound_on(self.ours, *piece.rows):
            old = self.base.hosts.get(host)
            known = (
                name in _parameters_of(self.base)
                if name.startswith("=")
                else old is not None and name in _own_names(old)
            )
            if not known:
                found.add((name, host))
        return found

    def _feature(self, pieces: Sequence[_Piece], failed: Sequence[_Piece]) -> list[tuple[_Piece, str]]:
        """All of ours in the file that shares a name of its own with something that upstream made too.

        Half of such a feature beside upstream's own works by accident at best: it is decided whole.
        """
        seeds = [piece for piece in failed if any(word in piece.evidence for word in _TWIN)]
        old = {name.partition("@")[0].lstrip("=") for _, name, _, _ in _named(self.base)}
        words = {piece.key: self._own_words(piece, old) for piece in pieces}
        reached, names = list(seeds), set().union(*(words[piece.key] for piece in seeds))
        found: list[tuple[_Piece, str]] = []
        grown = True
        while grown:
            grown = False
            for piece in pieces:
                if piece not in reached and words[piece.key] & names:
                    reached.append(piece)
                    names |= words[piece.key]
                    grown = True
                    if piece.state is CARRIED:
                        found.append(
                            (
                                piece,
                                f"upstream made this too ({seeds[0].evidence}), and {', '.join(sorted(words[piece.key] & names)[:3])} is part of ours",
                            )
                        )
        return found

    def _own_words(self, piece: _Piece, old: set[str]) -> set[str]:
        """The names on a half's lines that the base's file does not have at all."""
        rows = _bound_on(self.ours, *piece.rows) | _read_on(self.ours, *piece.rows)
        return {name.partition("@")[0].lstrip("=") for name, _ in rows} - old - BUILTINS

    def _removals(self, pieces: Sequence[_Piece], failed: Sequence[_Piece]) -> list[tuple[_Piece, str]]:
        """Removals of ours in a function of which something is left out: what they made room for is not there."""
        hosts = {piece.host for piece in failed if piece.host and not piece.exact}
        return [
            (piece, "something else that ours changed in the same function is left out")
            for piece in pieces
            if piece.state is CARRIED and not piece.exact and piece.rows[0] == piece.rows[1] and piece.host in hosts
        ]

    def _readers(self, pieces: Sequence[_Piece], failed: Sequence[_Piece]) -> list[tuple[_Piece, str]]:
        """Carried halves that read a name which only a failed half would bind."""
        kept = {pair for piece in pieces if piece.state is CARRIED for pair in self._introduced(piece)}
        gone = {pair: piece for piece in failed for pair in self._introduced(piece) if pair not in kept}
        found = []
        for piece in pieces:
            if piece.state is not CARRIED:
                continue
            for name, host in _read_on(self.ours, *piece.rows):
                cause = next((gone[pair] for pair in gone if pair[0] == name and _sees(host, pair[1], name)), None)
                if cause is not None:
                    why = f"it reads {name}, which line {cause.rows[0] + 1} of ours would bind and which is left out"
                    found.append((piece, cause.evidence if _overlap(cause.rows, piece.rows) else why))
                    break
        return found

    @cached_property
    def _edits(self) -> list[Edit]:
        """What ours changed in the base, by structure."""
        return Difference(self.base, self.ours).edits()

    @cached_property
    def _wholes(self) -> list[list[Edit]]:
        """Edits that mean something only together: one alone, or the new branches of an if chain with its else."""
        alone, chains = [], {}
        for edit in self._edits:
            chain = edit.statement if edit.kind in ("branch", "else") else edit.where.owner if edit.where.part == "else" else None
            if chain is None:
                alone.append([edit])
            else:
                chains.setdefault(id(chain), []).append(edit)
        return [*alone, *chains.values()]

    def _together(self, pieces: Sequence[_Piece], failed: Sequence[_Piece]) -> list[tuple[_Piece, str]]:
        """Carried halves of an edit of which another part is left out: Git cuts one edit into several hunks."""
        found = []
        for whole in self._wholes:
            lost = next((piece for piece in failed if any(_is_part(piece, edit) for edit in whole)), None)
            if lost is not None:
                why = f"line {lost.rows[0] + 1} of ours, a part of the same edit, is left out"
                parts = [p for p in pieces if p.state is CARRIED and any(_is_part(p, edit) for edit in whole)]
                found += [(piece, why) for piece in parts]
        return found

    def _guards(self, pieces: Sequence[_Piece], failed: Sequence[_Piece]) -> list[tuple[_Piece, str]]:
        """Carried halves that ask whether a name is None, where only a failed half would make it None.

        Without it the test always says the same, and what ours does then is dead code (trap T1).
        """
        gone = {name: piece for piece in failed for name in self._made_none(piece)}
        found = []
        for piece in pieces:
            name = next(iter(sorted(self._asked(piece) & gone.keys())), "") if piece.state is CARRIED else ""
            if name:
                where = f"line {gone[name].rows[0] + 1} of ours, which is left out"
                found.append((piece, f"it asks whether {name} is None, which only {where}, would make it"))
        return found

    def _flags(self, piece: _Piece) -> set[str]:
        """The names that a half makes None or asks about, so that both are one unit."""
        return {f"None {name}" for name in self._made_none(piece) | self._asked(piece)}

    def _made_none(self, piece: _Piece) -> set[str]:
        """The module's names that our rows set to None and the base never does."""
        return {name for row, name in _set_to_none(self.ours) if piece.rows[0] <= row < piece.rows[1]} - {
            name for _, name in _set_to_none(self.base)
        }

    def _asked(self, piece: _Piece) -> set[str]:
        """The names that our rows compare with None and the base's rows do not."""
        mine = {name for row, name in _compared_with_none(self.ours) if piece.rows[0] <= row < piece.rows[1]}
        old = piece.base_rows
        return mine - {name for row, name in _compared_with_none(self.base) if old[0] <= row < old[1]}

    def _orphans(self, pieces: Sequence[_Piece], failed: Sequence[_Piece]) -> list[tuple[_Piece, str]]:
        """Carried halves whose names only failed halves read."""
        lost = {row for piece in failed for row in range(*piece.rows)}
        found = []
        for piece in pieces:
            pairs = self._introduced(piece) if piece.state is CARRIED else set()
            pairs = {pair for pair in pairs if not pair[0].startswith("=")}
            if not pairs or any(isinstance(node, DEFINITIONS) for node in _starting_on(self.ours, *piece.rows)):
                continue
            rows = [
                row
                for name, host in pairs
                for row in _reading_rows(self.ours, name, host)
                if not piece.rows[0] <= row < piece.rows[1]
            ]
            if rows and all(row in lost for row in rows):
                found.append((piece, f"only what is left out reads {', '.join(sorted(name for name, _ in pairs))}"))
        return found

    def _unresolved(self, pieces: Sequence[_Piece], text: str) -> list[tuple[_Piece, str]]:
        """Carried halves that read a name which ours had and the result has not."""
        try:
            result = self.result if self.result.text == text else Text(text)
        except SourceError:
            return [(piece, "the result would not parse") for piece in pieces if piece.state is CARRIED]
        found = []
        known, had = module_names(result), module_names(self.ours)
        for piece in pieces:
            if piece.state is not CARRIED:
                continue
            if why := self._missing_import(piece) or self._still_read(piece, result):
                found.append((piece, why))
                continue
            had_before = {name for name, _ in _read_on(self.base, *piece.base_rows)}
            for name, host in _read_on(self.ours, *piece.rows):
                if name.startswith(("self.", "=")) or name in known or name in BUILTINS or name not in had:
                    continue
                node = result.hosts.get(self.hosts.get(host, host))
                if node is not None and name in visible(result, self.hosts.get(host, host)):
                    continue
                if not self._bring(name, piece) and name not in had_before:
                    found.append((piece, f"it reads {name}, which upstream's module no longer has"))
                    break
        return found

    def _still_read(self, piece: _Piece, result: Text) -> str:
        """A binding that ours takes out and that the result still reads."""
        bound = _bound_on(self.base, *piece.base_rows) - _bound_on(self.ours, *piece.rows)
        for name, host in bound:
            node = (
                result.hosts.get(self.hosts.get(host, host)) if host and not name.startswith(("=", "self.")) else None
            )
            if node is None or name in _own_names(node) or name in module_names(result):
                continue
            if any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node)):
                return f"ours takes {name} out, and what stands there reads it"
        return ""

    def _missing_import(self, piece: _Piece) -> str:
        """An import of ours that the new release cannot satisfy."""
        for node in _starting_on(self.ours, *piece.rows):
            for each in ast.walk(node):
                if isinstance(each, IMPORTS) and piece.rows[0] <= each.lineno - 1 < piece.rows[1]:
                    for line in import_lines(each):
                        if self.world.lacks(line):
                            return f"the new release has no {line.removeprefix('from ').replace(' import ', '.')}"
        return ""

    # Imports that upstream took out, and that our lines need.

    def _importing(self, text: str) -> str:
        """The text with the imports that our lines need, below those that stand at the module's head."""
        for line in self.brought:
            placer = Placer(self.base, self.ours, text, {}, self.hosts)
            text = placer.add_import(line, head_of(placer.target))
            self.result = Text(text)
        return text

    def _bring(self, name: str, piece: _Piece) -> bool:
        """Bring the import of a name along, where the new release provably has it; or, for a bolder text, at all."""
        line = import_of(name, self.ours, self.base)
        how = self.world.still_has(line := self.world.rewritten(line)) if line else ""
        if not how and self._pair(piece) in self.ventured and line and not self.world.lacks(line):
            how = f"{AGREED}whether it can still be imported is not known"
        if not how:
            return False
        self.brought[line] = how
        lines = self.bringing.setdefault(piece, [])
        lines += [line] if line not in lines else []
        return True

    def _with_import(self, piece: _Piece) -> _Piece:
        """A piece that says which import it brings along."""
        lines = [line for line in self.bringing.get(piece, ()) if line in self.brought]
        if not lines or piece.state is not CARRIED:
            return piece
        words = [f"`{line}`, which upstream took out of this file, comes along: {self.brought[line].removeprefix(AGREED)}" for line in lines]
        agreed = AGREED if any(self.brought[line].startswith(AGREED) for line in lines) and not piece.how.startswith(AGREED) else ""
        return replace(piece, how=agreed + "; ".join([piece.how, *words]), exact=False)

    # Rows of the ledger.

    def _halves(self, pieces: Sequence[_Piece]) -> Iterator[Half]:
        units = self._units(pieces)
        for piece in sorted(pieces, key=lambda each: (each.rows, each.base_rows)):
            yield Half(
                piece.state,
                piece.rows,
                piece.base_rows,
                piece.host,
                self._text_of(piece),
                piece.how,
                piece.evidence,
                exact=piece.exact,
                unit=units.get(piece, 0),
            )

    def _units(self, pieces: Sequence[_Piece]) -> dict[_Piece, int]:
        """Numbers, from 1, for what is decided together: what waits in one function, or shares a name of ours."""
        waiting = [piece for piece in pieces if piece.state in (PROPOSAL, LEFT_OUT)]
        waiting.sort(key=lambda each: (each.rows, each.base_rows))
        old = {name.partition("@")[0].lstrip("=") for _, name, _, _ in _named(self.base)} if waiting else set()
        groups: list[tuple[set[str], list[_Piece]]] = []
        for piece in waiting:
            words = {f"={self._function(piece)}"} - {"="} | self._own_words(piece, old) | self._flags(piece)
            joined = [group for group in groups if group[0] & words]
            groups = [group for group in groups if not group[0] & words]
            groups.append((words.union(*(g[0] for g in joined)), [*(p for g in joined for p in g[1]), piece]))
        groups.sort(key=lambda group: min((piece.rows, piece.base_rows) for piece in group[1]))
        return {piece: number for number, group in enumerate(groups, 1) for piece in group[1]}

    def _function(self, piece: _Piece) -> str:
        """The outermost function that a piece is in, "" at module or class level."""
        parts = (host_at(self.ours, piece.rows[0]) if piece.rows[0] < piece.rows[1] else piece.host).split(".")
        names = [".".join(parts[: depth + 1]) for depth in range(len(parts))]
        found = (name for name in names if isinstance(self.ours.hosts.get(name), _FUNCTIONS))
        return next(found, "") or next((n for n in names if isinstance(self.base.hosts.get(n), _FUNCTIONS)), "")


def host_at(text: Text, row: int) -> str:
    """The innermost definition that holds a row."""
    best, name = -1, ""
    for host, node in text.hosts.items():
        if host and text.rows(node)[0] <= row < text.rows(node)[1] and text.rows(node)[0] > best:  # type: ignore[arg-type]
            best, name = text.rows(node)[0], host  # type: ignore[arg-type]
    return name


def _overlap(one: tuple[int, int], two: tuple[int, int]) -> bool:
    """Whether two ranges of rows share one, or stand at the same place."""
    return one == two or (one[0] < two[1] and two[0] < one[1]) or (two[0] == two[1] and one[0] <= two[0] <= one[1])


def _starting_on(text: Text, first: int, last: int) -> list[ast.stmt]:
    """The outermost statements that start on some rows."""
    found: list[ast.stmt] = []

    def walk(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt) and first <= text.rows(child)[0] < last:
                found.append(child)
            elif isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
                walk(child)

    walk(text.tree)
    return found


def _named(text: Text) -> list[tuple[int, str, str, bool]]:
    """(row, name, host, bound) of every use of a name in a module; kept with the text."""
    kept = text.__dict__.get("_named")
    if kept is None:
        kept = text.__dict__["_named"] = list(_walk_names(text.tree, ""))
    return kept


def _walk_names(node: ast.AST, host: str) -> Iterator[tuple[int, str, str, bool]]:
    """Depth first, without recursion: a module has a hundred thousand nodes."""
    todo: list[tuple[ast.AST, str]] = [(child, host) for child in ast.iter_child_nodes(node)]
    while todo:
        child, host = todo.pop()
        kind = type(child)
        if kind is ast.Constant:
            continue
        if kind is ast.Name:
            yield child.lineno - 1, child.id, host, type(child.ctx) is ast.Store
            continue
        if kind in _DEFINED:
            yield child.lineno - 1, child.name, host, True
            inner = f"{host}.{child.name}" if host else child.name
            todo += [(each, host) for each in child.decorator_list]
            todo += [(each, inner) for each in ast.iter_child_nodes(child) if each not in child.decorator_list]
            continue
        if kind is ast.Attribute:
            if type(child.value) is ast.Name and child.value.id == "self":
                yield child.lineno - 1, f"self.{child.attr}", host, type(child.ctx) is ast.Store
            todo.append((child.value, host))
            continue
        yield from _other_names(child, host)
        todo += [(each, host) for each in ast.iter_child_nodes(child)]


def _other_names(child: ast.AST, host: str) -> Iterator[tuple[int, str, str, bool]]:
    if isinstance(child, ast.alias):
        yield child.lineno - 1, (child.asname or child.name).split(".")[0], host, True
    elif isinstance(child, ast.arg):
        yield child.lineno - 1, child.arg, host, True
        yield child.lineno - 1, f"={child.arg}@{host.rpartition('.')[2]}", "", True
    elif isinstance(child, ast.Call) and child.keywords:
        callee = (
            child.func.attr
            if isinstance(child.func, ast.Attribute)
            else child.func.id
            if isinstance(child.func, ast.Name)
            else ""
        )
        for keyword in child.keywords:
            yield keyword.value.lineno - 1, f"={keyword.arg}@{callee}", "", False
    elif isinstance(child, ast.ExceptHandler) and child.name:
        yield child.lineno - 1, child.name, host, True


def _set_to_none(text: Text) -> list[tuple[int, str]]:
    """(row, name) of every `name = None` at module level, in branches and handlers too."""
    kept = text.__dict__.get("_set_to_none")
    if kept is None:
        kept = text.__dict__["_set_to_none"] = [
            (node.lineno - 1, target.id)
            for body, index in below(text.tree)
            if isinstance(node := body[index], ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None
            for target in node.targets
            if isinstance(target, ast.Name)
        ]  # fmt: skip
    return kept


def _compared_with_none(text: Text) -> list[tuple[int, str]]:
    """(row, name) of every comparison of a plain name with None."""
    kept = text.__dict__.get("_compared_with_none")
    if kept is None:
        kept = text.__dict__["_compared_with_none"] = [
            (node.lineno - 1, node.left.id)
            for node in ast.walk(text.tree)
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name)
            and any(isinstance(each, ast.Constant) and each.value is None for each in node.comparators)
        ]  # fmt: skip
    return kept


def _bound_on(text: Text, first: int, last: int) -> set[tuple[str, str]]:
    return {(name, host) for row, name, host, bound in _named(text) if bound and first <= row < last}


def _read_on(text: Text, first: int, last: int) -> set[tuple[str, str]]:
    return {(name, host) for row, name, host, bound in _named(text) if not bound and first <= row < last}


def reads_on(text: Text, first: int, last: int) -> set[str]:
    """The names that some rows read, attributes of self as "self.x"."""
    return {name for name, _ in _read_on(text, first, last) if not name.startswith("=")}


def _reading_rows(text: Text, name: str, host: str) -> list[int]:
    return [row for row, each, there, bound in _named(text) if each == name and not bound and _sees(there, host, name)]


def _parameters_of(text: Text) -> set[str]:
    """Every parameter of a module's functions as "=name@function"."""
    kept = text.__dict__.get("_parameters_of")
    if kept is None:
        kept = text.__dict__["_parameters_of"] = {
            name for _, name, _, bound in _named(text) if bound and name.startswith("=")
        }
    return kept


def _sees(reader: str, binder: str, name: str) -> bool:
    """Whether code in one host can mean a name that another binds."""
    if name.startswith("self."):
        return reader.partition(".")[0] == binder.partition(".")[0]
    return not binder or reader == binder or reader.startswith(f"{binder}.")


def _own_names(node: ast.AST) -> set[str]:
    """The names that a host binds itself, as locals, parameters, or self's attributes."""
    kept = node.__dict__.get("_own_names")
    if kept is None:
        kept = node.__dict__["_own_names"] = {
            name for _, name, host, bound in _walk_names(node, "") if bound and not host and not name.startswith("=")
        }
    return kept


def module_names(text: Text) -> set[str]:
    """The names that a module binds at its top level."""
    return {name for _, name, host, bound in _named(text) if bound and not host}


def visible(text: Text, host: str) -> set[str]:
    """The names that the hosts around a place bind, the module's aside."""
    parts = host.split(".") if host else []
    names: set[str] = set()
    for depth in range(1, len(parts) + 1):
        node = text.hosts.get(".".join(parts[:depth]))
        names |= _own_names(node) if node is not None else set()
    return names


def import_of(name: str, *texts: Text) -> str:
    """The import line at the top level of the first text that binds a name by one; "" if none does."""
    for text in texts:
        for node in text.tree.body:
            for line in import_lines(node) if isinstance(node, IMPORTS) else ():
                if line.split()[-1].split(".")[0] == name and not line.startswith("from ."):
                    return line
    return ""


def head_of(text: Text) -> list[ast.stmt]:
    """The statements of a module above its first definition; all of them if there are none."""
    body = text.tree.body
    first = next((index for index, node in enumerate(body) if isinstance(node, DEFINITIONS)), len(body))
    return body[:first] or body


def follow(
    base: str, ours: str, target: str, hosts: dict[str, str], rows: Sequence[tuple[tuple[int, int], tuple[int, int]]],
    world: World | None = None,
) -> tuple[str, tuple[Half, ...]]:  # fmt: skip
    """Our edits of one moved definition (or module-level value) made where it stands now, all or none.

    `hosts` maps its old name to the new one; `rows` are the (ours, base) rows of the halves to make.
    Raises Refused with the reason.
    """
    old, mine = Text(base), Text(ours)
    difference = Difference(old, mine)
    placer = Placer(old, mine, target, difference.partners, hosts)
    made = []
    for edit in difference.edits():
        base_rows = _edit_rows(edit)
        if (edit.rows, base_rows) not in rows:
            continue
        try:
            how = placer.make(edit)
        except Adopted as adopted:
            how = adopted.reason
        shown = _shown(mine.lines[slice(*edit.rows)]) or _shown(old.lines[slice(*base_rows)])
        made.append(Half(CARRIED, edit.rows, base_rows, edit.where.host, shown, how))
        known = module_names(placer.target) | BUILTINS
        new = {name for name, _ in _read_on(mine, *edit.rows)} - {name for name, _ in _read_on(old, *base_rows)}
        bound = {name for name, *_ in _bound_on(mine, *edit.rows)}
        local = {n for host in hosts.values() for n in visible(placer.target, host)}
        missing = sorted(name for name in new - known - bound - local if not name.startswith(("self.", "=")))
        for line in provable(missing, (mine, old), world or World()):
            placer.target = Text(placer.add_import(line, head_of(placer.target)))
            made[-1] = replace(made[-1], how=f"{made[-1].how}; `{line}` comes along")
    if len(made) < len(set(rows)):
        raise Refused("only a part of it could be followed")
    return placer.target.text, tuple(made)


def provable(names: Sequence[str], texts: Sequence[Text], world: World) -> list[str]:
    """The import lines that bind some names, each known to work. Raises Refused if one is not."""
    lines = {name: world.rewritten(import_of(name, *texts)) for name in names}
    if unknown := [name for name, line in lines.items() if not world.still_has(line)]:
        raise Refused(f"its new module has no {', '.join(unknown)}")
    return list(lines.values())


def _is_part(piece: _Piece, edit: Edit) -> bool:
    """Whether a half has a line of an edit, of ours or, where there is none, of the base."""
    rows, old = edit.rows, _edit_rows(edit)
    if rows[0] < rows[1]:
        return piece.rows[0] < rows[1] and rows[0] < piece.rows[1]
    return piece.base_rows[0] < old[1] and old[0] < piece.base_rows[1] and not edit.new


def _edit_rows(edit: Edit) -> tuple[int, int]:
    """The base's rows of an edit, as `_Composer` reports them where no clean hunk stands before it."""
    nodes = [n for n in (*edit.old, edit.statement) if n is not None and hasattr(n, "lineno")]
    if not nodes and edit.body:
        nodes = [edit.body[min(edit.at, len(edit.body) - 1)]]
    return (nodes[0].lineno - 1, nodes[0].end_lineno) if nodes else (0, 0)


def text_halves(base: str, ours: str, state: str, evidence: str, how: str = "three-way merge") -> tuple[Half, ...]:
    """Every line hunk of ours as a half in one state."""
    old, mine = base.splitlines(keepends=True), ours.splitlines(keepends=True)
    return tuple(
        Half(
            state,
            (h.first, h.last),
            (h.start, h.end),
            "",
            _shown(h.lines) or _shown(old[h.start : h.end]),
            how,
            evidence,
            exact=True,
        )
        for h in line_hunks(old, mine)
    )
