"""The gate: everything that CI asks of a merge or a pull request, as one report.

Each part is judged on its own: one that could not be is a `not-judged` finding, and the others still count.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from stackctl.census.baseline import Known, excuse, load_baseline
from stackctl.census.checks import check_rules, load_rules, try_rules
from stackctl.census.expected import declared_at, declared_in, shrunken
from stackctl.census.markers import LEDGER, conflicts, count, find_markers, leftovers, load_consumed, pattern_of
from stackctl.census.merges import Merge, merge_of, merges_since, virtual_base
from stackctl.census.settled import adopted_places, declared_names, without
from stackctl.model.errors import StackctlError
from stackctl.model.report import EntryRow, Finding, LedgerRow, Report
from stackctl.model.stack import Stack
from stackctl.model.verdict import EntryVerdict, Level, Verdict
from stackctl.plants.manifest import ManifestError
from stackctl.plants.stacks import STACK_FILE, open_stack
from stackctl.trees.git import Repository
from stackctl.trees.release import Release, release_of
from stackctl.trees.stock import stock_tree
from stackctl.trees.tree import GitTree

BASELINE = "checks/baseline.toml"
_SHORT = 12


@dataclass(frozen=True)
class Question:
    """What is asked of which commit. `frozen` is a commit of the stack's own repository, from before the merge."""

    root: Path
    repository: Repository
    at: str
    merge: str | None = None
    frozen: str | None = None
    baseline: Path | None = None
    release: str | None = None
    upstream: str | None = None
    pattern: str | None = None
    today: datetime.date = field(default_factory=datetime.date.today)


@dataclass
class Gate:
    """One run: the parts put their findings, rows and facts together here."""

    question: Question
    findings: list[Finding] = field(default_factory=list)
    ledger: list[LedgerRow] = field(default_factory=list)
    entries: list[EntryRow] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    stack: Stack | None = None

    def run(self) -> Report:
        """Ask every part, then let the baseline excuse what is known. Raises StackctlError for a commit not there."""
        asked = self.question
        self.summary = {"tree": asked.at, "commit": self.tree.commit, "stack_root": str(asked.root)}
        parts: tuple[tuple[str, Callable[[], None]], ...] = (
            ("the stack's declarations", self._load),
            ("the expected set", self._expected),
            ("the census", self._verify),
            ("the merge", self._audit),
            ("the markers", self._markers),
            ("the rules", self._rules),
        )
        for name, part in parts:
            self._try(name, part)
        self._try("the baseline", self._baseline)
        self.summary |= {level: sum(f.severity == level for f in self.findings) for level in Level}
        self.summary["scope"] = self._scope()
        return Report("gate", tuple(self.entries), tuple(self.ledger), tuple(self.findings), self.summary)

    def _scope(self) -> str:
        """What the run stood on, in words: a green run that looked at no merge should not pass for one that did."""
        said, release = self.summary, self._release_or_none()
        merges = [merge[:_SHORT] for merge in said.get("merges", ())]
        audited = f"merge{'s' if len(merges) > 1 else ''} {', '.join(merges)} audited" if merges else "no merge at hand, so none audited"
        frozen = f"expected set of {_short(said['frozen']['ref'])}" if "frozen" in said else "no expected set to compare with (--frozen)"
        left = said.get("markers", {}).get("left")
        parts = [f"commit {said['commit'][:_SHORT]}", f"SGLang {release}" if release else "", audited, frozen]
        counts = {"marker": left, "rule": said.get("rules"), "known finding": said.get("baseline")}
        parts += [f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items() if count is not None]
        return ", ".join(filter(None, parts))

    def _try(self, name: str, part: Callable[[], None]) -> None:
        try:
            part()
        except ManifestError as error:
            self.findings += [self._unjudged(name, p.message, self._shown(p.path), p.line) for p in error.problems]
        except StackctlError as error:
            where = f" ({error.where})" if error.where else ""
            self.findings.append(self._unjudged(name, f"{error.message}{where}", "", 0, error.hint or ""))

    def _unjudged(self, name: str, message: str, path: str, line: int, hint: str = "") -> Finding:
        path = path or self._shown(self.question.root / STACK_FILE)
        return Finding(Verdict.NOT_JUDGED, f"{name} could not be judged: {message}", path, line, action=hint)

    @cached_property
    def tree(self) -> GitTree:
        """The tree at hand."""
        return GitTree(self.question.repository, self.question.at)

    @cached_property
    def release(self) -> Release:
        """Its release. Raises StackctlError where that cannot be told."""
        return release_of(self.tree, self.question.release)

    @cached_property
    def stock(self) -> GitTree | None:
        """Stock upstream of that release, where the repository has it."""
        return stock_tree(self.question.repository, self.release, self.question.upstream)

    @cached_property
    def home(self) -> tuple[Repository, str] | None:
        """The repository that the stack itself is kept in, and its folder there; None for a stack outside of Git."""
        try:
            repository = Repository(self.question.root)
            folder = self.question.root.resolve().relative_to(repository.path.resolve()).as_posix()
        except (StackctlError, ValueError):
            return None
        return repository, "" if folder == "." else folder

    @property
    def together(self) -> bool:
        """Whether the stack is kept in the very repository that is judged."""
        return self.home is not None and self.home[0].git_dir.resolve() == self.question.repository.git_dir.resolve()

    def _shown(self, path: Path) -> str:
        """A file of the stack as a path of its repository, which is what an annotation needs."""
        base = self.home[0].path if self.home else self.question.root
        try:
            return path.resolve().relative_to(base.resolve()).as_posix()
        except ValueError:
            return path.name

    def _load(self) -> None:
        self.stack = open_stack(self.question.root)

    def _expected(self) -> None:
        ref, asked = self.question.frozen, self.question.frozen is not None
        if ref is None and self.together and (merge := self.merges):
            ref = self.question.repository.parents(merge[0])[0]
        if ref is None or self.home is None:
            if asked:
                raise StackctlError("the stack is not kept in Git", str(self.question.root))
            return
        repository, folder = self.home
        before = declared_at(repository, ref, folder)
        if before is None and asked:
            raise StackctlError(f"no {STACK_FILE} at {ref}", str(repository.path / folder))
        self.summary["frozen"] = {"ref": ref, "halves": sum(len(each.plants) for each in (before or {}).values())}
        found = shrunken(before or {}, declared_in(self.question.root), self._release_or_none(), _short(ref))
        self.findings += [self._at_home(finding) for finding in found]

    def _release_or_none(self) -> Release | None:
        try:
            return self.release
        except StackctlError:
            return None  # the census says so

    def _at_home(self, finding: Finding) -> Finding:
        """A finding whose path is below the stack, with the path in the repository."""
        return replace(finding, path=self._shown(self.question.root / finding.path))

    def _verify(self) -> None:
        from stackctl.census.helper import assisted
        from stackctl.census.memo import Memo
        from stackctl.census.verify import verify

        if self.stack is None:
            return  # said already
        chosen = list(self.stack.entries)
        with Memo() as memo, assisted(memo, self.stack, chosen, self.tree, self.stock, self.release) as judge:
            self._take(verify(self.stack, self.tree, self.release, self.stock, judge, chosen))

    @cached_property
    def merges(self) -> list[str]:
        """The merges at hand, oldest first: the one named, --at itself, else those since the frozen commit."""
        repository, asked = self.question.repository, self.question
        if asked.merge:
            return [repository.resolve(asked.merge)]
        if len(repository.parents(self.tree.commit)) > 1:
            return [self.tree.commit]
        if asked.frozen and self.together and repository.exists(asked.frozen):
            return merges_since(repository, asked.frozen, self.tree.commit)
        return []

    def _audit(self) -> None:
        from stackctl.census.run import audit_all

        self.summary["merges"] = self.merges
        if self.merges:
            merge = replace(self._merge(), merged=self.tree)
            report = audit_all([merge], False, self.question.repository, self.question.pattern)
            meant = self._edited_since(self.merges[-1])
            places = adopted_places(self.stack, self.entries, self.ledger)
            own = declared_names(report, self.stack)
            self._take(without(own, places, lambda item: item.path in meant and _kind(item) is not Verdict.MARKER))

    def _edited_since(self, merge: str) -> set[str]:
        """The stack's own files that a commit after the merge changed: that is work on the stack, no loss.

        What they must still declare is the expected set's to say.
        """
        if not self.together or self.home is None:
            return set()
        prefix = f"{self.home[1]}/" if self.home[1] else ""
        own = tuple(f"{prefix}{name}" for name in (STACK_FILE, "entries/", "patches/", "checks/"))
        then = GitTree(self.question.repository, merge)
        paths = {path for tree in (then, self.tree) for path in tree.paths() if path.startswith(own)}
        return {path for path in paths if _blob(then, path) != _blob(self.tree, path)}

    def _merge(self) -> Merge:
        """The merge at hand; of several, what they amount to: the fork before the first, upstream of the last."""
        repository = self.question.repository
        first, last = merge_of(repository, self.merges[0]), merge_of(repository, self.merges[-1])
        if first.commit == last.commit:
            return first
        ours, theirs = repository.parents(first.commit)[0], repository.parents(last.commit)[1]
        earlier = [repository.parents(merge)[1] for merge in self.merges[:-1]]
        apart = [commit for commit in earlier if repository.merge_bases(commit, theirs) != [commit]]
        if apart:
            raise StackctlError(
                f"{len(self.merges)} merges that do not follow one another", hint="judge them one by one: --merge COMMIT"
            )  # fmt: skip
        bases = repository.merge_bases(ours, theirs)
        return replace(last, base=virtual_base(repository, bases), ours=GitTree(repository, ours), bases=tuple(bases))

    def _take(self, report: Report) -> None:
        """Put a part's report to the others'. Of one entry the census' own row stands, not the audit's."""
        known = {row.number for row in self.entries}
        whole = (EntryVerdict.WHOLE, EntryVerdict.ADOPTED)  # of commits that no entry declares: nothing to say
        first = report.command == "verify"
        self.entries += [row for row in report.entries if first or (row.number not in known and row.verdict not in whole)]
        self.ledger += report.ledger
        # Leftover markers are told one by one below, in the stack's own syntax.
        fresh = [f for f in report.findings if f.kind is not Verdict.MARKER or f.severity is Level.ERROR]
        self.findings = joined(self.findings, fresh)
        self.summary[report.command] = report.summary
        if "plants" in report.summary:
            self.summary["plants"] = report.summary["plants"]

    def _markers(self) -> None:
        stock = self._stock_or_none()
        if not self.summary.get("merges"):  # else the audit has looked for them
            self.findings += conflicts(self.tree, stock)
        pattern = pattern_of(self.stack or Stack("", self.question.root, ()))
        now = find_markers(self.tree, stock, pattern)
        census = count(now, (), load_consumed(self.question.root / LEDGER))
        decided = {finding.line for finding in census.findings}
        self.findings += [*census.findings, *(f for f in leftovers(now) if f.line not in decided)]
        self.summary["markers"] = {"left": len(now), "batches": census.batches(), "entries": census.entries()}

    def _stock_or_none(self) -> GitTree | None:
        try:
            return self.stock
        except StackctlError:
            return None

    def _rules(self) -> None:
        rules = load_rules(self.question.root)
        self.summary["rules"] = len(rules)
        found = [*try_rules(rules), *(check_rules(rules, self.tree, self.release) if rules else ())]
        own = {rule.path for rule in rules}
        self.findings += [self._at_home(finding) if finding.path in own else finding for finding in found]

    def _baseline(self) -> None:
        path = self.question.baseline or self.question.root / BASELINE
        if self.question.baseline is None and not path.is_file():
            return
        lines: Sequence[Known] = load_baseline(path)
        self.summary["baseline"] = len(lines)
        self.findings = excuse(self.findings, lines, self._shown(path), self.question.today)


def _kind(item: Finding | LedgerRow) -> Verdict:
    return item.kind if isinstance(item, Finding) else item.verdict


def _short(ref: str) -> str:
    """A commit's id in short; a name as it is."""
    return ref[:_SHORT] if len(ref) == 40 and not set(ref) - set("0123456789abcdef") else ref


def _blob(tree: GitTree, path: str) -> str:
    return tree.blob(path) if path in tree else ""


def joined(known: Sequence[Finding], fresh: Sequence[Finding]) -> list[Finding]:
    """All findings, those that tell of one half as one: a declared half that is lost is lost to the audit as well.

    Only where each side has just one of its kind in a host; the audit's words are then evidence of the census' own.
    """
    counts = [Counter(_place(finding) for finding in findings) for findings in (known, fresh)]
    same = {place for place in counts[0] if counts[0][place] == counts[1][place] == 1}
    words = {_place(finding): finding for finding in fresh if _place(finding) in same}
    told = [_with(finding, words[_place(finding)]) if _place(finding) in words else finding for finding in known]
    return [*told, *(finding for finding in fresh if _place(finding) not in words)]


def _with(finding: Finding, other: Finding) -> Finding:
    said = f"in the merge: {other.message}{f' ({other.evidence})' if other.evidence else ''}"
    return replace(finding, evidence=f"{finding.evidence}; {said}" if finding.evidence else said)


def _place(finding: Finding) -> tuple[str, str, str]:
    return str(finding.kind), finding.path, finding.symbol
