"""The board of a stack, entries by verdict, and its matrix, entries by upstream releases: what every view of them shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from stackctl.reports.text import printable

if TYPE_CHECKING:
    from stackctl.model.report import Report
    from stackctl.model.stack import Entry, Stack
    from stackctl.reports.matrix import Matrix

# The columns of a board, what needs a person first.
ORDER = ("absent", "half", "not-judged", "inert", "whole", "adopted", "not-due")
# How a verdict looks: good, info, warn, bad or calm, which a page and a terminal have colours for.
TONES = {
    "absent": "bad", "half": "bad", "not-judged": "warn", "inert": "warn", "whole": "good", "adopted": "info", "not-due": "calm",
}  # fmt: skip


class Sign(NamedTuple):
    """A cell of the matrix: what is printed, its tone, and what it says."""

    mark: str
    tone: str
    says: str


SIGNS = {
    "ours": Sign("O", "good", "ours: to be planted"),
    "adopted": Sign("A", "info", "adopted: upstream has it"),
    "in part": Sign("P", "warn", "adopted in part"),
    "re-anchor": Sign("!", "bad", "its host is not there: re-anchor"),
    "not due": Sign("·", "", "not due"),
    "watched": Sign("–", "", "watched for absence"),
}


class Judged(Protocol):
    """Whatever has a verdict."""

    @property
    def verdict(self) -> str: ...


J = TypeVar("J", bound=Judged)


@dataclass(frozen=True)
class Card:
    """One entry as declared; `verdict`, `missing` and `note` are empty where no tree was judged."""

    number: int
    title: str
    disposition: str
    default: str
    switch: str
    halves: int
    verdict: str = ""
    missing: tuple[str, ...] = ()
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """The card as a row of `entries`, in the words of every other command's."""
        return {
            "entry": str(self.number), "title": self.title, "kind": self.verdict, "disposition": self.disposition,
            "missing": list(self.missing), "note": self.note, "default": self.default, "switch": self.switch, "plants": self.halves,
        }  # fmt: skip


@dataclass(frozen=True)
class Board:
    """A stack's entries; `tree` and `release` are of the tree that was judged, empty if none was."""

    stack: str
    cards: tuple[Card, ...]
    tree: str = ""
    release: str = ""
    matrix: Matrix | None = None

    @property
    def summary(self) -> dict[str, Any]:
        """What the board stands on."""
        return {
            "stack": self.stack, "tree": self.tree or None, "release": self.release,
            "entries": {word: len(cards) for word, cards in columns(self.cards) if word},
            "matrix": asdict(self.matrix) if self.matrix else None,
        }  # fmt: skip


def board_of(stack: Stack, entries: Sequence[Entry], report: Report | None = None, matrix: Matrix | None = None) -> Board:
    """The board of some entries, with the verdicts of a census of them if there was one."""
    rows = {row.number: row for row in report.entries} if report else {}
    cards = []
    for entry in entries:
        row = rows.get(str(entry.number))
        said = (str(row.verdict), row.missing, row.note) if row else ("", (), "")
        cards.append(
            Card(entry.number, entry.title, str(entry.disposition), entry.default, entry.switch, len(entry.plants), *said)
        )
    summary = report.summary if report else {}
    return Board(stack.name, tuple(cards), str(summary.get("tree", "")), str(summary.get("release", "")), matrix)


def columns(rows: Iterable[J]) -> list[tuple[str, list[J]]]:
    """The rows by verdict, in the order of the board; what has no verdict last."""
    found: dict[str, list[J]] = {}
    for row in rows:
        found.setdefault(str(row.verdict), []).append(row)
    return [(word, found[word]) for word in (*ORDER, "") if word in found]


def halves(count: int) -> str:
    """A number of halves in words."""
    return f"{count} {'half' if count == 1 else 'halves'}"


def shared_prefix(releases: Sequence[str]) -> str:
    """What all names of releases begin with, whole parts of the number only: "0.5." of 0.5.22 and 0.5.23."""
    parts = [release.split(".")[:-1] for release in releases]
    same = 0
    while parts and all(len(each) > same and each[same] == parts[0][same] for each in parts):
        same += 1
    return "".join(f"{part}." for part in parts[0][:same]) if parts else ""


def render_board(board: Board) -> str:
    """The board as plain text, for a pipe or a log."""
    lines: list[str] = []
    widths = [max((len(word) for word in words), default=0) for words in _columns_of(board)]
    for word, cards in columns(board.cards):
        lines += [f"{word} {len(cards)}"] if word else []
        lines += [line for card in cards for line in _card(card, widths)]
    if board.matrix:
        lines += ["", *matrix_lines(board.matrix), legend(board.matrix.rows)]
    return "\n".join(lines)


def _columns_of(board: Board) -> tuple[list[str], ...]:
    return [str(card.number) for card in board.cards], [card.disposition for card in board.cards], [halves(card.halves) for card in board.cards]


def _card(card: Card, widths: Sequence[int]) -> Iterator[str]:
    number, disposition, count = widths
    default = f" (default {card.default})" if card.default else ""
    title = f"{printable(card.title)}{printable(default)}"
    yield f"{card.number:>{max(number, 4)}}  {card.disposition:<{disposition}}  {halves(card.halves):>{count}}  {title}"
    if said := remark(card):
        yield f"{'':>{max(number, 4)}}  {printable(said)}"


def remark(card: Card) -> str:
    """What a verdict alone does not say: the halves that are missing, why an entry is inert."""
    missing = f"missing: {', '.join(card.missing[:6])}{f' and {len(card.missing) - 6} more' if len(card.missing) > 6 else ''}"
    return "; ".join(filter(None, (missing if card.missing else "", card.note)))


def matrix_lines(matrix: Matrix) -> Iterator[str]:
    """A line for the releases and one for each entry."""
    wide = [max(len(release), 1) for release in matrix.releases]
    first = max((len(number) for number in matrix.rows), default=0)
    yield "  ".join([f"{'':>{max(first, 4)}}", *matrix.releases])
    for number, words in matrix.rows.items():
        cells = (SIGNS[word].mark.center(width) for word, width in zip(words, wide, strict=True))
        yield "  ".join([f"{number:>{max(first, 4)}}", *cells]).rstrip()


def legend(rows: Mapping[str, Sequence[str]]) -> str:
    """What the signs that are in a matrix say."""
    used = {word for words in rows.values() for word in words}
    return "; ".join(f"{sign.mark} {sign.says}" for word, sign in SIGNS.items() if word in used)
