"""The board, the matrix and one entry, for the person at a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stackctl.reports.board import SIGNS, TONES, Board, Card, columns, halves, legend, remark, shared_prefix
from stackctl.reports.text import printable

if TYPE_CHECKING:
    from stackctl.reports.matrix import Matrix
    from stackctl.reports.shown import Half, Shown

_COLOURS = {"good": "green", "info": "cyan", "warn": "yellow", "bad": "red", "calm": "dim", "": "dim"}
_LABEL = 28  # columns of a terminal that the entries' titles have at least beside a matrix
_GAP = 2
_HEADS = ("entry", "disposition", "halves", "default")
_RIGHT = (0, 2)  # numbers


def render_board_terminal(board: Board) -> None:
    """Entries by verdict, then the matrix; without verdicts a plain table of entries."""
    console = Console(highlight=False)
    console.print(_entries(console, board), soft_wrap=True, end="")
    _matrix(console, board)


def _entries(console: Console, board: Board) -> Text:
    """One text with aligned columns: a table of rich's takes four times as long for 300 entries, which would be felt."""
    cells = [_HEADS, *map(_plain_cells, board.cards)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    indent = sum(widths) + _GAP * len(widths)
    beside = console.width - indent >= _LABEL  # else a title stands below its row
    indent = indent if beside else widths[0] + _GAP
    room = max(console.width - indent, 10)
    text = Text()
    _row(text, (*_HEADS, "title" if beside else ""), widths, ("bold",) * 5)
    for word, cards in columns(board.cards):
        if word:
            text.append(f"\n{len(cards):>{widths[0]}}", "bold").append(f"{'':{_GAP}}{word}\n", f"bold {_colour(word)}")
        for card in cards:
            title, *more = [*([] if beside else [""]), *_wrapped(console, printable(card.title), room)]
            styles = ("bold", "dim", "", "green" if card.default == "on" else "", "")
            _row(text, (*_plain_cells(card), title), widths, styles)
            text.append("".join(f"{'':{indent}}{line}\n" for line in more))
            said = printable(remark(card))
            text.append("".join(f"{'':{indent}}{line}\n" for line in _wrapped(console, said, room) if said), "dim")
    return text


def _plain_cells(card: Card) -> tuple[str, ...]:
    return str(card.number), printable(card.disposition), str(card.halves), printable(card.default)


def _row(text: Text, cells: Sequence[str], widths: Sequence[int], styles: Sequence[str]) -> None:
    for index, (cell, style) in enumerate(zip(cells, styles, strict=True)):
        if index == len(widths):
            text.append(f"{cell}\n", style)
        else:
            pad = " " * (widths[index] - cell_len(cell))
            text.append(f"{pad}{cell}  " if index in _RIGHT else f"{cell}{pad}  ", style)


def _wrapped(console: Console, text: str, room: int) -> list[str]:
    """A text in lines of at most `room` columns, at least one."""
    if text.isascii():
        return textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    return [line.plain.rstrip() for line in Text(text).wrap(console, room)] or [""]


def _matrix(console: Console, board: Board) -> None:
    if board.matrix:
        titles = {str(card.number): card.title for card in board.cards}
        for line in (Text(), *_fitting(console.width, board.matrix, titles), Text(legend(board.matrix.rows), "dim")):
            console.print(line)


def _fitting(width: int, matrix: Matrix, titles: Mapping[str, str]) -> Iterator[Table | Text]:
    """The newest releases that fit beside each other; how many older ones do not is said."""
    prefix = shared_prefix(matrix.releases)
    names = [printable(release.removeprefix(prefix)) for release in matrix.releases]
    label, first = width, len(names)
    while first and label - (wide := cell_len(names[first - 1]) + _GAP) >= _LABEL:
        label, first = label - wide, first - 1
    table = Table(box=None, pad_edge=False, header_style="bold")
    longest = max((cell_len(f"{number:>4} {titles.get(number, '')}") for number in matrix.rows), default=0)
    table.add_column(f"SGLang {printable(prefix)}", no_wrap=True, overflow="ellipsis", width=min(label, max(longest, _LABEL)))
    for name in names[first:]:
        table.add_column(name, justify="center", no_wrap=True)
    for number, words in matrix.rows.items():
        cells = (Text(SIGNS[word].mark, _COLOURS[SIGNS[word].tone]) for word in words[first:])
        table.add_row(Text(printable(f"{number:>4} {titles.get(number, '')}")), *cells)
    yield table
    if first:
        yield Text(f"{first} older releases do not fit here: a wider terminal or --format json has them", "dim")


def render_shown_terminal(shown: Shown) -> None:
    """One entry: what was decided, its notes, its halves with their verdicts, and its row of the matrix."""
    console = Console(highlight=False)
    console.print(_title(shown))
    console.print(_facts(shown.facts))
    if shown.notes:
        from rich.markdown import Markdown
        from rich.padding import Padding

        notes = Markdown("\n".join(map(printable, shown.notes)), hyperlinks=False)
        console.print(Padding(notes, (1, 2, 0, 2)), style="dim")
    console.print()
    console.print(_halves(shown.halves))
    _matrix(console, shown.board)


def _title(shown: Shown) -> Text:
    title = Text.assemble((f"{shown.card.number} ", "bold"), (printable(shown.card.title), "bold"))
    if shown.card.verdict:
        title.append(f"  {shown.card.verdict}", f"bold {_colour(shown.card.verdict)}")
    return title


def _facts(facts: Mapping[str, Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column()
    for key, values in facts.items():
        table.add_row(printable(key), Text("\n".join(map(printable, values))))
    return table


def _halves(rows: Sequence[Half]) -> Table:
    judged = any(row.verdict for row in rows)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in (*(["verdict"] if judged else []), "half", "kind"):
        table.add_column(name, no_wrap=True)
    table.add_column(f"where ({halves(len(rows))})", overflow="fold")
    for row in rows:
        cells = [Text(printable(row.id), "bold"), Text(row.kind, "dim"), Text(printable(row.says))]
        table.add_row(*([Text(row.verdict, _COLOURS[row.tone])] if judged else []), *cells)
    return table


def _colour(verdict: str) -> str:
    return _COLOURS[TONES.get(verdict, "")]
