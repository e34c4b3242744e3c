"""Whose half is it: the entry named by a trailer, by a commit's subject, or the commit that brought it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stackctl.census.merges import Merge
from stackctl.census.survival import Judged
from stackctl.facts.cache import FactsCache
from stackctl.facts.statements import Fact
from stackctl.model.errors import StackctlError
from stackctl.model.report import EntryRow, LedgerRow
from stackctl.model.verdict import EntryVerdict, Level, Verdict
from stackctl.trees.git import Repository
from stackctl.trees.tree import GitTree

_TRAILER = re.compile(r"^Stack-Entry:\s*(\S+)", re.MULTILINE | re.IGNORECASE)
# `patch 065: ...`, `[201] ...`, `0007-...`, `201: ...`: how numbered series name their commits.
_SUBJECT = r"^(?:\[(\d+)\]|(?:patch|entry|port)\s+#?(\d+)\b|(\d{2,4})[-:]\s)"
_SHORT = 12


@dataclass
class Attribution:
    """Names the entry of each half of ours."""

    repository: Repository | None = None
    base: str = ""
    ours: str = ""
    cache: FactsCache | None = None
    pattern: re.Pattern[str] = field(default_factory=lambda: re.compile(_SUBJECT, re.IGNORECASE))
    titles: dict[str, str] = field(default_factory=dict)
    _commits: dict[str, tuple[str, str]] | None = None
    _lines: dict[str, dict[int, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, repository: Repository | None, merge: Merge, cache: FactsCache, pattern: str | None) -> Attribution:
        """The attribution of one merge; without Git trees on both sides nothing is attributed."""
        base, ours = merge.base, merge.ours
        if repository is None or not isinstance(ours, GitTree):
            return cls()
        made = cls(repository, base.commit if isinstance(base, GitTree) else "", ours.commit, cache)
        if not made.base and merge.bases:
            made.base = merge.bases[0]
        if pattern:
            made.pattern = re.compile(pattern)
        return made if made.base else cls()

    def entry_of(self, item: Judged, facts: Iterable[Fact]) -> str:
        """The entry of one half: of the commit that wrote its first line, if it still has one."""
        if self.repository is None or item.side != "ours":
            return ""
        commits = self.commits
        if len(commits) == 1:
            return next(iter(commits.values()))[0]
        if item.key.kind == "file":
            return self._entry_of_file(item.key.path)
        for fact in facts:
            if found := self._blame(item.key.path).get(fact.line):
                return commits[found][0] if found in commits else ""
        return ""

    def _entry_of_file(self, path: str) -> str:
        """The entry that wrote most of a file."""
        written = Counter(commit for commit in self._blame(path).values() if commit in self.commits)
        return self.commits[written.most_common(1)[0][0]][0] if written else ""

    @property
    def commits(self) -> dict[str, tuple[str, str]]:
        """Commit id to (entry, subject) of every commit of ours after base."""
        if self._commits is None:
            self._commits = dict(self._read_commits())
        return self._commits

    def _read_commits(self) -> Iterable[tuple[str, tuple[str, str]]]:
        if self.repository is None:
            return
        try:
            text = self.repository.text("log", "--format=%H%x00%B%x00%x01", f"{self.base}..{self.ours}")
        except StackctlError:
            return
        for record in text.split("\x01"):
            commit, _, message = record.strip().partition("\0")
            if commit:
                message = message.strip("\0\n")
                name = self._name(commit, message)
                self.titles.setdefault(name, message.partition("\n")[0])
                yield commit, (name, message)

    def _name(self, commit: str, message: str) -> str:
        if found := _TRAILER.search(message):
            return found[1]
        if found := self.pattern.search(message.partition("\n")[0]):
            return next((group for group in found.groups() if group), found[0])
        return commit[:_SHORT]

    def _blame(self, path: str) -> dict[int, str]:
        """Line of ours to the commit after base that wrote it."""
        if path not in self._lines:
            key = f"{self.base}..{self.ours}:{path}"
            stored = self.cache.get("blame", key) if self.cache else None
            if stored is None:
                stored = self._read_blame(path)
                if self.cache:
                    self.cache.put("blame", key, stored)
            self._lines[path] = stored
        return self._lines[path]

    def _read_blame(self, path: str) -> dict[int, str]:
        if self.repository is None:
            return {}
        try:
            words = ["blame", "-s", "-l", "--no-progress", f"{self.base}..{self.ours}", "--", path]
            text = self.repository.run(*words)
        except StackctlError:
            return {}
        found = {}
        for number, line in enumerate(text.split(b"\n"), 1):
            commit = line.partition(b" ")[0].decode(errors="replace")
            if commit and not commit.startswith("^"):
                found[number] = commit
        return found

    def rows(self, ledger: Iterable[LedgerRow]) -> tuple[EntryRow, ...]:
        """One row per entry: whole, half (with what is missing), absent or adopted."""
        return entry_rows(ledger, self.titles)



def entry_rows(ledger: Iterable[LedgerRow], titles: Mapping[str, str]) -> tuple[EntryRow, ...]:
    """One row per entry that an audit's ledger names: whole, half (with what is missing), absent or adopted."""
    by_entry: dict[str, list[LedgerRow]] = defaultdict(list)
    for row in ledger:
        if row.entry:
            by_entry[row.entry].append(row)
    return tuple(_entry_row(name, rows, titles.get(name, "")) for name, rows in sorted(by_entry.items()))


def _entry_row(name: str, rows: list[LedgerRow], title: str) -> EntryRow:
    missing = tuple(f"{row.path}:{row.symbol} {row.plant}" for row in rows if row.verdict.level is Level.ERROR)
    if not missing:
        adopted = all(row.verdict is Verdict.ADOPTED for row in rows)
        verdict = EntryVerdict.ADOPTED if adopted else EntryVerdict.WHOLE
    else:
        verdict = EntryVerdict.ABSENT if len(missing) == len(rows) else EntryVerdict.HALF
    return EntryRow(name, title, verdict, "", missing)
