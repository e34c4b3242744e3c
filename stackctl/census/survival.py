"""What became of every half: survived, moved, reconciled, or lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from stackctl.census.delta import Census, Count, Key, is_trivial, may_repeat
from stackctl.census.tokens import explained, kept_edit, likeness, replaced_by, same_but_pins, words
from stackctl.facts.statements import Fact
from stackctl.model.verdict import Verdict

OTHER = {"ours": "theirs", "theirs": "ours"}
_ALIKE = 0.5
_PAIR = 0.4
_FEWEST = 3


@dataclass(frozen=True)
class Judged:
    """The verdict on one half: whose it is, whether the side added (+1) or removed (-1) it."""

    key: Key
    side: str
    sign: int
    verdict: Verdict
    evidence: str = ""
    fact: Fact | None = None
    elsewhere: tuple[str, str] | None = None
    instead: str = ""
    before: str = ""


@dataclass
class _Edits:
    """One side's edits in one host: what replaced what."""

    before: dict[Key, Key] = field(default_factory=dict)
    after: dict[Key, Key] = field(default_factory=dict)


class Survival:
    """Judges every half of one census."""

    def __init__(self, census: Census, followed: Callable[[str, str], bool] = lambda before, after: False) -> None:
        self.census = census
        # Whether one import is another rewritten to where upstream moved the module or the name.
        self._import_followed = followed
        self.counts = {key: census.count(key) for key in census.facts}
        self.judged: list[Judged] = []
        self._edits: dict[tuple[str, tuple[str, str]], _Edits] = {}
        self._missing: dict[str, dict[Key, int]] = {"ours": {}, "theirs": {}, "base": {}}
        self._back: dict[str, dict[Key, int]] = {"ours": {}, "theirs": {}}
        self._extra: dict[Key, int] = {}
        self._twice: dict[Key, int] = {}
        self._shared: set[Key] = set()
        self._vocabulary: dict[tuple[str, str], tuple[Counter[str], Counter[str]]] = {}

    def judge(self) -> list[Judged]:
        """The verdicts, one per half of ours and per trouble of theirs or of nobody."""
        for key, count in self.counts.items():
            self._weigh(key, count)
        self._extra_by_text = _by_text(self._extra)
        for side in ("ours", "theirs"):
            for key in list(self._missing[side]):
                self._settle(key, side)
        for key in list(self._missing["base"]):
            self._settle_kept(key)
        self._settle_back()
        self._settle_extra()
        self._settle_whole()
        return self.judged

    def _weigh(self, key: Key, count: Count) -> None:
        """Sort what is missing or too many by whose it is."""
        if (missing := count.lowest - count.merged) > 0:
            for side in ("ours", "theirs"):
                own = min(missing, max(0, getattr(count, side) - count.base))
                if own:
                    self._missing[side][key] = own
                    missing -= own
            if missing > 0:
                self._missing["base"][key] = missing
        elif (extra := count.merged - count.highest) > 0:
            self._weigh_extra(key, count, extra)

    def _weigh_extra(self, key: Key, count: Count, extra: int) -> None:
        for side in ("ours", "theirs"):
            if getattr(count, side) < count.base:
                self._back[side][key] = extra
                return
        if count.ours > count.base and count.theirs > count.base:
            if not may_repeat(self.census, key, count):
                self._twice[key] = extra
        elif count.ours > count.base and not is_trivial(key.text):
            self._twice[key] = extra
        else:
            self._extra[key] = extra

    # Missing halves of one side.

    def _settle(self, key: Key, side: str) -> None:
        verdict = self._settle_edit(key, side) or self._settle_elsewhere(key, side) or self._settle_far(key, side)
        if verdict is None:
            verdict = self._settle_gone(key, side)
        self.judged.append(verdict)

    def _settle_edit(self, key: Key, side: str) -> Judged | None:
        """The half as an edit of one statement, looked for in what merged has in its place."""
        home, other = (key.path, key.host), OTHER[side]
        before = self._edits_of(side, home).before.get(key)
        yours = self._edits_of(other, home).after.get(before) if before else self._rival(key, other)
        old, new = (before.text if before else ""), (yours.text if yours else "")
        found = self._counterpart(key, [key.text, new] if yours else [key.text])
        if found is not None:
            return self._compare(key, side, old, new or old, found)
        if yours and self.counts[yours].merged >= getattr(self.counts[yours], other):
            return self._superseded(key, side, old, new)
        if before and self.counts[before].merged and side == "ours":
            return self._judge(key, side, Verdict.LOST, "merged has the text of base again", before=old, instead=old)
        if before and yours is None and side == "theirs" and self._removed_by(before, "ours"):
            return self._decided(key, side, "ours removed the statement that upstream edited", old)
        return None

    def _compare(self, key: Key, side: str, old: str, yours: str, found: Key) -> Judged:
        """Judge the half against the one new text that merged has for it."""
        gone, new = self._words_of(OTHER[side], key.path)
        if kept_edit(old, key.text, yours, found.text):
            evidence = "both sides' changes are in one statement" if yours != old else "its tokens are all there"
            if yours == old and words(found.text) - words(key.text) and not explained(key.text, found.text, gone, new):
                self._note_unowned(found, key)
            return self._judge(key, side, Verdict.RECONCILED, evidence, instead=found.text, before=old)
        if explained(key.text, found.text, gone, new):
            return self._judge(key, side, Verdict.RECONCILED, "follows the other side's renames", instead=found.text)
        if key.kind == "import" and self._import_followed(key.text, found.text):
            return self._judge(key, side, Verdict.RECONCILED, "follows the module that moved", instead=found.text)
        if side == "theirs":
            if old and replaced_by(old, found.text, key.text) and self._edits_of("ours", (key.path, key.host)).after:
                return self._decided(key, side, "ours replaced the same expression", old)
            return self._judge(key, side, Verdict.UPSTREAM_LOST, f"merged has `{found.text}`", instead=found.text)
        absent = (words(key.text) - words(old)) - words(found.text)
        if absent:
            evidence = f"merged has `{found.text}` without {_listing(absent)}"
            return self._judge(key, side, Verdict.LOST, evidence, before=old, instead=found.text)
        return self._judge(key, side, Verdict.ALTERED, f"merged has `{found.text}`", before=old, instead=found.text)

    def _note_unowned(self, found: Key, key: Key) -> None:
        """Say that a line of ours survived, and that somebody added to it while merging."""
        if found in self._shared:
            return  # the rest of it is another half's
        more = _listing(words(found.text) - words(key.text))
        fact = self.census.of(found, "merged")[-1]
        self.judged.append(Judged(found, "merged", 1, Verdict.UNOWNED, f"{more} is on no side", fact))

    def _superseded(self, key: Key, side: str, old: str, yours: str) -> Judged:
        """Merged has the other side's text of the statement."""
        if kept_edit(old, key.text, yours, yours):
            verdict = Verdict.ADOPTED if side == "ours" else Verdict.RECONCILED
            return self._judge(key, side, verdict, f"`{yours}` holds every token of it", instead=yours)
        if key.kind == "line" and side == "ours" and same_but_pins(key.text, yours):
            return self._judge(key, side, Verdict.ADOPTED, f"upstream moved the same pin: `{yours}`", instead=yours)
        if side == "theirs":
            if old and replaced_by(old, yours, key.text):
                return self._decided(key, side, f"ours replaced the same expression by `{yours}`", old)
            return self._judge(key, side, Verdict.UPSTREAM_LOST, f"merged has ours' `{yours}`", instead=yours)
        return self._judge(key, side, Verdict.LOST, f"merged has upstream's `{yours}`", before=old, instead=yours)

    def _settle_elsewhere(self, key: Key, side: str) -> Judged | None:
        """The same text, one too many in another host: moved with its host, or misplaced."""
        places = [k for k in self._extra_by_text.get((key.kind, key.text), ()) if self._extra.get(k)]
        if not places or is_trivial(key.text):
            return None
        places.sort(key=lambda k: (k.path != key.path, k))
        found = places[0]
        verdict = Verdict.MOVED if self._followed(key, found, side) else Verdict.MISPLACED
        self._consume(found)
        where = self.census.place("merged", found.path, found.host)
        fact = self.census.of(found, "merged")[0]
        named = f"{where[0]}:{where[1]}".rstrip(":")
        return self._judge(key, side, verdict, f"stands in {named}", fact=fact, elsewhere=where)

    def _settle_far(self, key: Key, side: str) -> Judged | None:
        """An edit made again where the other side moved the statement, adapted to its new names."""
        before = self._edits_of(side, (key.path, key.host)).before.get(key)
        if before is None or not self._removed_by(before, OTHER[side]):
            return None
        brought = words(key.text) - words(before.text)
        if brought.total() < _FEWEST:
            return None
        for found, number in self._extra.items():
            if not number or found.kind != key.kind or brought - words(found.text):
                continue
            if likeness(key.text, found.text) >= _ALIKE:
                self._consume(found)
                where = self.census.place("merged", found.path, found.host)
                fact = self.census.of(found, "merged")[0]
                evidence = f"followed into {where[0]}:{where[1]} as `{found.text}`"
                return self._judge(key, side, Verdict.MOVED, evidence, fact=fact, elsewhere=where)
        return None

    def _followed(self, key: Key, found: Key, side: str) -> bool:
        """Whether the other side moved this half's neighbours, or the line it replaced, to where it is now."""
        other = OTHER[side]
        before = self._edits_of(side, (key.path, key.host)).before.get(key)
        near = [before] if before else self._neighbours(key, side)
        for neighbour in near:
            there = Key(found.path, found.host, neighbour.kind, neighbour.text)
            count = self.counts.get(there)
            if count and getattr(count, other) > count.base and self._removed_by(neighbour, other):
                return True
        return False

    def _neighbours(self, key: Key, side: str) -> list[Key]:
        """The base statements next to a half in its host."""
        line = self.census.of(key, side)[0].line
        keys = self.census.hosts[key.path, key.host]
        placed = [(abs(fact.line - line), k) for k in keys if self.counts[k].base for fact in self.census.of(k, side)]
        return [k for _, k in sorted(placed)[:4]]

    def _settle_gone(self, key: Key, side: str) -> Judged:
        other = OTHER[side]
        if reason := self._host_gone(key, side):
            if side == "theirs":
                return self._decided(key, side, f"ours removed {reason}", "")
            return self._judge(key, side, Verdict.HOST_GONE, f"upstream removed {reason}")
        if side == "theirs":
            return self._judge(key, side, Verdict.UPSTREAM_LOST, "theirs added it, merged lacks it")
        if self.counts[key].theirs > self.counts[key].base:
            return self._judge(key, side, Verdict.LOST, "both sides added it, merged lacks it")
        before = self._edits_of(side, (key.path, key.host)).before.get(key)
        if before and self._removed_by(before, other):
            return self._judge(key, side, Verdict.LOST, f"upstream removed the `{before.text}` it replaced")
        return self._judge(key, side, Verdict.LOST, "ours added it, merged lacks it")

    def _host_gone(self, key: Key, side: str) -> str:
        """What the other side removed that this half hangs on: its branch, or a definition around it."""
        other, fact = OTHER[side], self.census.of(key, side)[0]
        for header in fact.under:
            branch = Key(key.path, key.host, "branch", header.removeprefix("else of "))
            if branch in self.counts and self._removed_by(branch, other):
                return f"`{branch.text}`"
        parent, _, name = key.host.rpartition(".")
        while name:
            for word in ("def", "async def", "class"):
                definition = Key(key.path, parent, "definition", f"{word} {name}")
                if definition in self.counts and self._removed_by(definition, other):
                    return f"`{definition.text}`"
            parent, _, name = parent.rpartition(".")
        return ""

    def _removed_by(self, key: Key, side: str) -> bool:
        count = self.counts[key]
        return getattr(count, side) < count.base

    # Base lines that both sides kept.

    def _settle_kept(self, key: Key) -> None:
        found = self._counterpart(key, [key.text])
        if found is not None:
            gone, new = self._words_of("theirs", key.path)
            mine, ours = self._words_of("ours", key.path)
            if explained(key.text, found.text, gone + mine, new + ours):
                return
            self.judged.append(self._changed_by_nobody(key, found))
            return
        if self._settle_moved_kept(key):
            return
        self.judged.append(
            self._judge(key, "theirs", Verdict.UPSTREAM_LOST, "base, ours and theirs have it, merged lacks it")
        )

    def _changed_by_nobody(self, key: Key, found: Key) -> Judged:
        """A line that every side has, changed in merged: something taken from it is lost, something put to it unowned."""
        if not words(found.text) - words(key.text):
            evidence = f"merged has `{found.text}` without {_listing(words(key.text) - words(found.text))}"
            return self._judge(key, "theirs", Verdict.UPSTREAM_LOST, evidence, instead=found.text)
        return self._judge(key, "merged", Verdict.UNOWNED, f"no side has `{found.text}`", instead=found.text)

    def _settle_moved_kept(self, key: Key) -> bool:
        places = [k for k in self._extra_by_text.get((key.kind, key.text), ()) if self._extra.get(k)]
        if not places or is_trivial(key.text):
            return False
        self._consume(places[0])
        where = self.census.place("merged", places[0].path, places[0].host)
        fact = self.census.of(places[0], "merged")[0]
        self.judged.append(
            self._judge(key, "theirs", Verdict.MISPLACED, f"every side has it in {key.host or 'the module'}",
                        fact=fact, elsewhere=where)
        )  # fmt: skip
        return True

    # What is too many.

    def _settle_back(self) -> None:
        """Removals that did not hold, unless the edit they belong to was judged already."""
        told = {(item.key.path, item.key.host, item.before) for item in self.judged if item.before}
        for side in ("ours", "theirs"):
            for key in self._back[side]:
                if (key.path, key.host, key.text) in told:
                    continue
                edits = self._edits_of(side, (key.path, key.host))
                if (after := edits.after.get(key)) and after in self._missing[side]:
                    continue
                self._judge_back(key, side)

    def _judge_back(self, key: Key, side: str) -> None:
        if side == "ours":
            item = self._judge(key, "ours", Verdict.RESURRECTED, "ours removed it, merged has it again")
        else:
            item = self._judge(key, "theirs", Verdict.UPSTREAM_LOST, "upstream removed it, merged has it again")
        fact = self.census.of(key, "merged")[-1]
        self.judged.append(Judged(item.key, side, -1, item.verdict, item.evidence, fact))

    def _settle_extra(self) -> None:
        for key in self._twice:
            fact = self.census.of(key, "merged")[-1]
            evidence = f"{self.counts[key].merged} times in merged, {self.counts[key].ours} in ours"
            self.judged.append(Judged(key, "ours", 1, Verdict.DUPLICATED, evidence, fact))
        for key, number in self._extra.items():
            if number > 0:
                fact = self.census.of(key, "merged")[-1]
                self.judged.append(Judged(key, "merged", 1, Verdict.UNOWNED, "no side has it", fact))

    def _settle_whole(self) -> None:
        """Ours' halves that are all there, in the place they belong."""
        for key, count in self.counts.items():
            delta = count.ours - count.base
            if not delta or key in self._missing["ours"] or key in self._back["ours"] or key in self._twice:
                continue
            adopted = delta > 0 and count.theirs > count.base or delta < 0 and count.theirs < count.base
            verdict = Verdict.ADOPTED if adopted else Verdict.INTACT
            self.judged.append(self._judge(key, "ours", verdict, "both sides made this change" if adopted else "",
                                           sign=1 if delta > 0 else -1))  # fmt: skip

    # Pairing.

    def _edits_of(self, side: str, home: tuple[str, str]) -> _Edits:
        if (side, home) not in self._edits:
            self._edits[side, home] = self._pair(side, home)
        return self._edits[side, home]

    def _pair(self, side: str, home: tuple[str, str]) -> _Edits:
        """Match each statement a side added in a host with the one it replaced, best likeness first."""
        keys = self.census.hosts.get(home, ())
        gone = [key for key in keys if getattr(self.counts[key], side) < self.counts[key].base]
        new = [key for key in keys if getattr(self.counts[key], side) > self.counts[key].base]
        scores = [(_score(old, key), old, key) for old in gone for key in new if old.kind == key.kind]
        edits = _Edits()
        for score, old, key in sorted(scores, key=lambda item: -item[0]):
            if score >= _PAIR and old not in edits.after and key not in edits.before:
                edits.after[old] = key
                edits.before[key] = old
        return edits

    def _rival(self, key: Key, other: str) -> Key | None:
        """What the other side added about the same target, where this side's half replaced nothing."""
        for candidate in self.census.hosts[key.path, key.host]:
            count = self.counts[candidate]
            if candidate.kind == key.kind and getattr(count, other) > count.base and candidate != key:
                same = _target(candidate.text) == _target(key.text)
                if same and likeness(candidate.text, key.text) >= _ALIKE:
                    return candidate
        return None

    def _counterpart(self, key: Key, texts: Iterable[str]) -> Key | None:
        """The text of no side that stands in merged in this half's place."""
        best, score = None, _ALIKE
        for candidate in self.census.hosts[key.path, key.host]:
            if candidate.kind == key.kind and candidate in self._extra and candidate != key:
                value = max(_score(Key(*key[:3], text), candidate) for text in texts)
                if value >= score:
                    best, score = candidate, value
        if best is not None:
            if not self._extra[best]:
                self._shared.add(best)
            self._consume(best)
        return best

    def _consume(self, key: Key) -> None:
        # A statement in which both sides' edits meet answers for two halves, so it stays findable.
        self._extra[key] = 0

    def _words_of(self, side: str, path: str) -> tuple[Counter[str], Counter[str]]:
        """The tokens that one side took out of a file, and those that it brought."""
        if (side, path) not in self._vocabulary:
            gone: Counter[str] = Counter()
            new: Counter[str] = Counter()
            for key, count in self.counts.items():
                if key.path == path and (number := getattr(count, side) - count.base):
                    (new if number > 0 else gone).update(words(key.text))
            self._vocabulary[side, path] = gone, new
        return self._vocabulary[side, path]

    def _decided(self, key: Key, side: str, evidence: str, old: str) -> Judged:
        return self._judge(key, side, Verdict.RECONCILED, evidence, before=old)

    def _judge(
        self,
        key: Key,
        side: str,
        verdict: Verdict,
        evidence: str,
        *,
        sign: int = 1,
        fact: Fact | None = None,
        elsewhere: tuple[str, str] | None = None,
        instead: str = "",
        before: str = "",
    ) -> Judged:
        return Judged(key, side, sign, verdict, evidence, fact, elsewhere, instead, before)


def _score(one: Key, other: Key) -> float:
    """Likeness, with a bonus for the same target: an assignment keeps its name when its value changes."""
    same = _target(one.text) == _target(other.text) and bool(_target(one.text))
    return likeness(one.text, other.text) + (0.3 if same else 0.0)


def _target(text: str) -> str:
    """What a statement is about: the assigned target, the called function, the parameter."""
    for mark in (" = ", ": ", "=", "("):
        head, found, _ = text.partition(mark)
        if found:
            return head
    return ""


def _by_text(extra: dict[Key, int]) -> dict[tuple[str, str], list[Key]]:
    table: dict[tuple[str, str], list[Key]] = defaultdict(list)
    for key in extra:
        table[key.kind, key.text].append(key)
    return table


def _listing(found: Counter[str]) -> str:
    return ", ".join(f"`{token}`" for token in list(found)[:6])
