"""Rules of the stack: what this fork learned to watch, one TOML file each in checks/rules/.

    title = "Nothing of preprocessing runs on the loop's default executor"
    why = "requests overtake each other there, and two threads on one tokenizer raise"
    code = "$LOOP.run_in_executor(None, $$$REST)"    # ast-grep's syntax; or pattern (a regular expression), or text
    paths = ["python/sglang/srt/entrypoints/**/*.py"]
    exclude = []
    expect = "absent"                                # or "present"; or count = 7, over all the files together
    severity = "error"                               # or "warning", "note"
    since = "0.5.22"                                 # the first release it is for
    until = "0.6.0"                                  # the first that it is no longer for

    [[good]]
    code = "await self._preprocess(self._convert, request)"

    [[bad]]
    code = "await loop.run_in_executor(None, self._convert, request)"
    times = 1                                        # the code that many times over, for a rule with a count

A rule is tried on its own examples: one without an example of each sort shows nothing, and is a finding itself.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from stackctl.census.tables import Table, read_table
from stackctl.facts.search import read_many
from stackctl.facts.text import is_binary
from stackctl.model.errors import StackctlError
from stackctl.model.report import Finding
from stackctl.model.verdict import Level, Verdict
from stackctl.plants.manifest import ManifestError, Problem
from stackctl.trees.release import Release, parse_release
from stackctl.trees.source import Source, SourceError
from stackctl.trees.tree import Tree

FOLDER = "checks/rules"
_KEYS: dict[str, type] = {
    "title": str, "why": str, "code": str, "pattern": str, "text": str, "paths": list, "exclude": list, "expect": str,
    "count": int, "severity": str, "since": str, "until": str, "good": list, "bad": list,
}  # fmt: skip
_EXAMPLE: dict[str, type] = {"code": str, "says": str, "times": int}
_WORD = re.compile(r"[$\w]+")
_SHOWN = 120  # characters of what was matched
_PLACES = 12  # how many of them a count names


@dataclass(frozen=True)
class Example:
    """A text that must not trip its rule (good), or must (bad)."""

    code: str
    good: bool
    line: int
    says: str = ""


@dataclass(frozen=True)
class Match:
    """One place: the path of the file, its line, what stands there."""

    path: str
    line: int
    text: str


@dataclass(frozen=True)
class Rule:
    """One rule. `path` is its own file, below the stack; `wanted` the count, None for "at least once"."""

    name: str
    path: str
    title: str
    why: str
    way: str
    what: str
    paths: tuple[str, ...]
    exclude: tuple[str, ...]
    wanted: int | None
    severity: Level
    since: str = ""
    until: str = ""
    examples: tuple[Example, ...] = ()

    def due(self, release: Release) -> bool:
        """Whether the rule is for that release."""
        from packaging.version import Version

        here = Version(release.version)
        return (not self.since or here >= Version(self.since)) and (not self.until or here < Version(self.until))

    def covers(self, path: str) -> bool:
        """Whether the rule looks at a file of that path."""
        return _listed(path, self.paths) and not _listed(path, self.exclude)

    def matches(self, path: str, text: str) -> list[Match]:
        """Every place in a text that the rule's pattern matches."""
        if self.way == "code":
            return [Match(path, line, found) for line, found in _code_matches(self.what, text)]
        found = re.finditer(re.escape(self.what) if self.way == "text" else self.what, text, re.MULTILINE)
        return [Match(path, text.count("\n", 0, each.start()) + 1, each[0]) for each in found]

    def holds(self, count: int) -> bool:
        """Whether that many matches are right."""
        return count > 0 if self.wanted is None else count == self.wanted


def load_rules(root: Path) -> list[Rule]:
    """The rules of a stack, by name. Raises ManifestError with every problem of all of them."""
    rules, problems = [], []
    for path in sorted((root / FOLDER).glob("*.toml")):
        try:
            table, text = read_table(path)
        except ManifestError as error:
            problems += error.problems
            continue
        found = list(_problems(table, text))
        problems += found
        if not found:
            rules.append(_rule(table, text, f"{FOLDER}/{path.name}"))
    if problems:
        raise ManifestError(problems)
    return rules


def _problems(table: Table, text: str) -> Iterator[Problem]:
    found = [*table.check(_KEYS, ("title", "paths")), *_example_problems(table, text)]
    yield from found
    if found:
        return
    ways = [key for key in ("code", "pattern", "text") if table.values.get(key)]
    if len(ways) != 1:
        yield table.problem("what to look for: one of code, pattern and text")
    if ("expect" in table.values) == ("count" in table.values) or table.text("expect") not in ("", "absent", "present"):
        yield table.problem('what to expect: expect = "absent" or "present", or count = N')
    if table.text("severity") not in ("", *Level):
        yield table.problem(f"severity is {', '.join(Level)}, not {table.text('severity')!r}")
    if bad := [each for key in ("paths", "exclude") for each in table.values.get(key, []) if not isinstance(each, str)]:
        yield table.problem(f"paths are texts, not {bad[0]!r}")
    yield from (table.problem(message) for message in (_bad_release(table, "since"), _bad_release(table, "until")) if message)
    yield from (table.problem(message) for message in (_bad_pattern(table, ways[0]) if len(ways) == 1 else "",) if message)


def _example_problems(table: Table, text: str) -> Iterator[Problem]:
    for sort in ("good", "bad"):
        for example in table.tables(sort, text):
            yield from example.check(_EXAMPLE, ("code",))


def _bad_release(table: Table, key: str) -> str:
    if not table.values.get(key):
        return ""
    try:
        parse_release(table.text(key))
    except StackctlError as error:
        return f"{key}: {error.message}"
    return ""


def _bad_pattern(table: Table, way: str) -> str:
    try:
        if way == "pattern":
            re.compile(table.text(way))
        elif way == "code":
            _code_matches(table.text(way), table.text(way))
    except (re.error, ValueError) as error:
        return f"{way} is no pattern: {error}"
    return ""


def _rule(table: Table, text: str, path: str) -> Rule:
    way = next(key for key in ("code", "pattern", "text") if table.values.get(key))
    wanted = table.values.get("count", 0 if table.text("expect") == "absent" else None)
    examples = [
        Example(_times(example), sort == "good", example.line, example.text("says"))
        for sort in ("good", "bad")
        for example in table.tables(sort, text)
    ]
    return Rule(
        Path(path).stem, path, table.text("title"), table.text("why"), way, table.text(way),
        tuple(table.values["paths"]), tuple(table.values.get("exclude", ())), wanted,
        Level(table.text("severity") or "error"), table.text("since"), table.text("until"), tuple(examples),
    )  # fmt: skip


def _times(example: Table) -> str:
    code = example.text("code")
    return (code if code.endswith("\n") else f"{code}\n") * int(example.values.get("times", 1))


def try_rules(rules: Iterable[Rule]) -> list[Finding]:
    """What the rules' own examples show: a good one that trips, a bad one that does not, none at all."""
    return [finding for rule in rules for finding in _try(rule)]


def _try(rule: Rule) -> Iterator[Finding]:
    for sort in (True, False):
        if not any(example.good is sort for example in rule.examples):
            says = "nothing shows that it lets anything pass" if sort else "nothing shows that it can match"
            yield _broken(rule, f"has no {'good' if sort else 'bad'} example: {says}", 1)
    for example in rule.examples:
        count = len(rule.matches("example", example.code))
        if rule.holds(count) is not example.good:
            does = "trips it" if example.good else "does not trip it"
            said = f" ({example.says})" if example.says else ""
            yield _broken(rule, f"{'good' if example.good else 'bad'} example{said} {does}: {count} matches", example.line)


def _broken(rule: Rule, message: str, line: int) -> Finding:
    return Finding(Verdict.RULE, f"rule {rule.name}: {message}", rule.path, line, action="mend the rule")


def check_rules(rules: Sequence[Rule], tree: Tree, release: Release) -> list[Finding]:
    """What the rules that are for this release say of a tree. Paths of rules are below the stack, others in the tree."""
    due = [rule for rule in rules if rule.due(release)]
    paths = [path for path in tree.paths() if tree.is_file(path)]
    covered = {rule.name: [path for path in paths if rule.covers(path)] for rule in due}
    texts = dict(_texts(tree, {path for found in covered.values() for path in found}))
    return [finding for rule in due for finding in _check(rule, covered[rule.name], texts)]


def _texts(tree: Tree, paths: set[str]) -> Iterator[tuple[str, str]]:
    for path, data in read_many(tree, sorted(paths)):
        if is_binary(data):
            continue
        try:
            yield path, Source.decode(data).text
        except SourceError:
            yield path, data.decode(errors="replace")


def _check(rule: Rule, paths: list[str], texts: dict[str, str]) -> Iterator[Finding]:
    if not paths:
        yield _broken(rule, f"no file is at {', '.join(rule.paths)}: it can match nothing here", 1)
        return
    found = [match for path in paths if path in texts for match in rule.matches(path, texts[path])]
    if rule.holds(len(found)):
        return
    evidence = ". ".join(filter(None, (rule.why, f"rule {rule.path}")))
    if rule.wanted == 0:
        for match in found:
            what = " ".join(match.text.split())[:_SHOWN]
            symbol = _symbol(texts[match.path], match.line) if match.path.endswith(".py") else ""
            yield Finding(
                Verdict.RULE, f"{rule.title}: `{what}`", match.path, match.line, symbol, evidence=evidence, level=rule.severity
            )  # fmt: skip
        return
    wanted = "at least 1" if rule.wanted is None else str(rule.wanted)
    places = [f"{match.path}:{match.line}" for match in found]
    more = f" and {len(places) - _PLACES} more" if len(places) > _PLACES else ""
    yield Finding(
        Verdict.RULE, f"{rule.title}: {len(found)} places match, {wanted} wanted", paths[0] if len(paths) == 1 else rule.path, 1,
        evidence=". ".join(filter(None, (evidence, f"found: {', '.join(places[:_PLACES])}{more}" if places else ""))),
        level=rule.severity,
    )  # fmt: skip


def _symbol(text: str, line: int) -> str:
    """The dotted name of the definition that a line is in."""
    try:
        body: ast.AST | None = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    names: list[str] = []
    while body is not None:
        inside = (each for each in ast.iter_child_nodes(body) if _first(each) <= line <= getattr(each, "end_lineno", 0))
        body = next(inside, None)
        if isinstance(body, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(body.name)
    return ".".join(names)


def _first(node: ast.AST) -> int:
    return getattr(node, "lineno", sys.maxsize)


def _listed(path: str, patterns: Iterable[str]) -> bool:
    return any(_glob(pattern).fullmatch(path) for pattern in patterns)


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression: `*` stays in its folder, `**/` is any folders or none."""
    spelt = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(spelt.get(part, re.escape(part)) for part in parts), re.DOTALL)


def _code_matches(pattern: str, text: str) -> list[tuple[int, str]]:
    """(line, text) of every node that ast-grep's pattern matches. Raises ValueError for what is no pattern."""
    words = [word for word in _WORD.findall(pattern) if not word.startswith("$")]
    if not all(word in text for word in words):
        return []
    try:
        from ast_grep_py import SgRoot
    except ImportError:
        raise StackctlError("rules with `code` need ast-grep", hint="pip install ast-grep-py") from None
    try:
        nodes = SgRoot(text, "python").root().find_all(pattern=pattern)
    except RuntimeError as error:  # it carries a Rust backtrace
        lines = [line.strip() for line in str(error).split("Stack backtrace")[0].splitlines() if line.strip()]
        raise ValueError(lines[-1].partition(": ")[2] if lines else "ast-grep cannot read it") from None
    return [(node.range().start.line + 1, node.text()) for node in nodes]
