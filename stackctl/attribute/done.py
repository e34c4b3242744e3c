"""The definition of done for a merge: checks/done.toml, each item a command with its figure before and after."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stackctl.attribute.runs import Runner, split_command
from stackctl.model.errors import StackctlError
from stackctl.model.report import Finding
from stackctl.model.verdict import Verdict

_KEYS = ("id", "title", "command", "figure", "must")
_MUST: Mapping[str, Callable[[int, int], bool]] = {
    "no-more": lambda before, after: after <= before,
    "no-less": lambda before, after: after >= before,
    "same": lambda before, after: after == before,
    "zero": lambda before, after: after == 0,
}


@dataclass(frozen=True)
class Item:
    """One thing to hold. `figure`: exit (the exit code), lines (of output), lint (what ruff says the merge added), or a
    regular expression whose first group is a number (nothing found: 0; found more than once: the sum)."""

    id: str
    title: str
    command: str = ""
    figure: str = "exit"
    must: str = "no-more"


@dataclass(frozen=True)
class Held:
    """One item's figures. `result`: held, broken or not judged, with the problem."""

    item: Item
    before: int | None
    after: int | None
    problem: str = ""

    @property
    def result(self) -> str:
        """The result in a word."""
        if self.problem or self.before is None or self.after is None:
            return "not judged"
        return "held" if _MUST[self.item.must](self.before, self.after) else "broken"

    def to_json(self) -> dict[str, Any]:
        """The item with its figures."""
        return {
            **asdict(self.item),
            "before": self.before,
            "after": self.after,
            "result": self.result,
            "problem": self.problem,
        }

    def finding(self) -> Finding | None:
        """What is to be said of it, if it is not held."""
        if self.result == "held":
            return None
        kind = Verdict.NOT_JUDGED if self.result == "not judged" else Verdict.UNDECIDED
        return Finding(
            kind,
            f"done: {self.item.title} is {self.result}",
            evidence=self.problem or f"{self.before} before, {self.after} after, must be {self.item.must}",
        )


def load_done(root: Path) -> list[Item]:
    """The items of checks/done.toml, if there is one. Raises StackctlError with every problem together."""
    path = root / "checks" / "done.toml"
    if not path.is_file():
        return []
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8")).get("item", [])
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise StackctlError(f"is not TOML: {error}", str(path)) from None
    if not isinstance(rows, list) or (
        problems := [problem for index, row in enumerate(rows) for problem in _check(row, index)]
    ):
        raise StackctlError(
            "\n".join(problems) if isinstance(rows, list) else "item must be written [[item]]", str(path)
        )
    return [Item(**{"title": row["id"], **row}) for row in rows]


def _check(row: Any, index: int) -> Iterator[str]:
    where = f"item {index + 1}"
    if not isinstance(row, dict):
        yield f"{where} is not a table"
        return
    for key, value in row.items():
        if key not in _KEYS or not isinstance(value, str):
            close = difflib.get_close_matches(key, _KEYS, 1)
            yield (
                f"{where}: {key} must be text"
                if key in _KEYS
                else f"{where}: no key {key!r}" + (f"; did you mean {close[0]!r}?" if close else "")
            )
    if not row.get("id"):
        yield f"{where} needs an id"
    if not row.get("command") and row.get("figure") != "lint":
        yield f"{where} needs a command"
    if row.get("must", "same") not in _MUST:
        yield f"{where}: must is one of {', '.join(_MUST)}"
    if row.get("figure", "exit") not in ("exit", "lines", "lint"):
        try:
            if re.compile(str(row["figure"])).groups != 1:
                yield f"{where}: figure needs one group, the number"
        except re.error as error:
            yield f"{where}: figure is no regular expression: {error}"


def hold(
    items: Sequence[Item], base: Path, merged: Path, runner: Runner, linted: Callable[[], tuple[int, str]]
) -> list[Held]:
    """Run every item on both trees. `linted` gives how much lint the merge added, and why it cannot be told."""
    return [_hold(item, base, merged, runner, linted) for item in items]


def _hold(item: Item, base: Path, merged: Path, runner: Runner, linted: Callable[[], tuple[int, str]]) -> Held:
    if item.figure == "lint":
        added, problem = linted()
        return Held(item, 0, added, problem)
    before, after = (_figure(item, folder, runner) for folder in (base, merged))
    problem = "; ".join(each for each in (before, after) if isinstance(each, str))
    return Held(item, before if isinstance(before, int) else None, after if isinstance(after, int) else None, problem)


def _figure(item: Item, folder: Path, runner: Runner) -> int | str:
    """The figure on one tree; a text says why there is none."""
    words = split_command(item.command, runner)
    done = runner.run(words, folder)
    if isinstance(done, str):
        return done
    if done.returncode < 0 or done.returncode == 127:
        return f"{words[0]} ended with {done.returncode}"
    if item.figure == "exit":
        return done.returncode
    output = done.stdout.decode(errors="replace")
    if item.figure == "lines":
        return len(output.splitlines())
    found = re.findall(item.figure, output + done.stderr.decode(errors="replace"))
    return (
        sum(map(int, found))
        if all(each.isdecimal() for each in found)
        else f"{item.figure} found {found[0]!r}, which is no number"
    )
