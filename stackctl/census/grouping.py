"""From verdicts on single halves to findings a person reads: one per thing, not one per token."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from stackctl.census.delta import Census, Key
from stackctl.census.sides import Sides, is_python
from stackctl.census.survival import Judged
from stackctl.model.report import Finding, LedgerRow
from stackctl.model.verdict import Level, Verdict

_MISSING = frozenset({Verdict.LOST, Verdict.HOST_GONE, Verdict.UPSTREAM_LOST})
_LINE_VERDICTS = _MISSING | {Verdict.RESURRECTED}
_SHOWN = 8
_WIDTH = 90
_WHO = {"ours": "our", "theirs": "upstream's", "merged": "nobody's"}
_SAYING = {
    Verdict.LOST: "{who} {what} {be} lost",
    Verdict.HOST_GONE: "the host of {who} {what} is gone",
    Verdict.UPSTREAM_LOST: "{who} {what} {be} not in the merge",
    Verdict.RESURRECTED: "{what} that we removed {be} back",
    Verdict.DUPLICATED: "{what} {be} there more often than it should be",
    Verdict.MISPLACED: "{who} {what} {be} in the wrong place",
    Verdict.ALTERED: "{who} {what} {be} rewritten into neither side's text",
    Verdict.UNOWNED: "{what} {be} from no side",
    Verdict.COMMENT_LOST: "{who} {what} {be} gone",
}

EntryOf = Callable[[Judged], str]


@dataclass
class Grouped:
    """Findings and ledger of one audit."""

    findings: list[Finding] = field(default_factory=list)
    ledger: list[LedgerRow] = field(default_factory=list)


def group(sides: Sides, census: Census, judged: Iterable[Judged], entry_of: EntryOf = lambda item: "") -> Grouped:
    """Fold what goes with a lost file or definition into it, then group the rest by host."""
    items = [item for item in (_soften(item) for item in _fold(list(judged))) if item is not None]
    grouped = Grouped()
    batches: dict[tuple, list[Judged]] = defaultdict(list)
    for item in items:
        path, line, symbol = _where(sides, census, item)
        entry = entry_of(item)
        if item.side == "ours" or item.verdict in _MISSING:
            row = LedgerRow(item.verdict, path, symbol, line, entry, _label(item.key), item.evidence)
            grouped.ledger.append(row)
        if item.verdict.level is not Level.NOTE:
            batches[item.verdict, item.side, path, symbol, entry].append(item)
    for (verdict, side, path, symbol, entry), batch in batches.items():
        line = min(_where(sides, census, item)[1] for item in batch)
        grouped.findings.append(_finding(verdict, side, path, line, symbol, entry, batch))
    grouped.findings.sort(key=lambda f: (f.path, f.line, f.symbol, f.kind))
    grouped.ledger.sort(key=lambda row: (row.path, row.line, row.symbol, row.plant))
    return grouped


def _soften(item: Judged) -> Judged | None:
    """Words about code are warnings; a text file is judged only by what it lacks or got back."""
    if item.key.kind == "docstring" and item.verdict.level is not Level.NOTE:
        if item.verdict in (Verdict.UNOWNED, Verdict.RESURRECTED, Verdict.DUPLICATED):
            return None
        return replace(item, verdict=Verdict.COMMENT_LOST)
    if item.key.kind == "line":
        if item.verdict.level is not Level.NOTE and item.verdict not in _LINE_VERDICTS:
            return None
        if sum(letter.isalnum() for letter in item.key.text) < 2 and not is_python(item.key.path):
            return None
    return item


def _fold(items: list[Judged]) -> list[Judged]:
    """Leave out what goes without saying once its file, definition or parameter is named."""
    files = {(item.side, item.key.path) for item in items if item.key.kind == "file"}
    heads = {(*fate, item.key.path, _symbol(item.key)) for item in items if item.key.kind == "definition" and (fate := _fate(item))}
    lost_parameters = {
        (item.key.path, item.key.host, item.key.text.lstrip("*"))
        for item in items
        if item.key.kind == "parameter" and item.verdict in _MISSING
    }
    kept = []
    for item in items:
        if item.key.kind != "file" and (item.side, item.key.path) in files and item.verdict.level is Level.ERROR:
            continue
        if _in_head(item, heads) or _of_parameter(item, lost_parameters):
            continue
        kept.append(item)
    return kept


_Fate = tuple[str, str]


def _fate(item: Judged) -> _Fate | None:
    """Whose half it is, and whether it is missing, whole or back; None for what is told by itself."""
    if item.sign < 0:
        return (item.side, "back") if item.verdict in (Verdict.UPSTREAM_LOST, Verdict.RESURRECTED) else None
    if item.verdict in _MISSING:
        return item.side, "missing"
    return (item.side, "whole") if item.verdict is Verdict.INTACT else None


def _in_head(item: Judged, heads: set[tuple[str, str, str, str]]) -> bool:
    """Whether a definition around this half has the same fate and speaks for it."""
    fate, host = _fate(item), item.key.host
    while fate and host:
        if (*fate, item.key.path, host) in heads:
            return True
        host = host.rpartition(".")[0]
    return False


def _of_parameter(item: Judged, lost: set[tuple[str, str, str]]) -> bool:
    if item.key.kind not in ("default", "annotation"):
        return False
    name = item.key.text.partition("=" if item.key.kind == "default" else ":")[0].lstrip("*")
    return item.verdict in _MISSING and (item.key.path, item.key.host, name) in lost


def _symbol(key: Key) -> str:
    """The symbol a half is reported at: a definition at itself, everything else at its host."""
    if key.kind != "definition":
        return key.host
    name = key.text.rpartition(" ")[2]
    return f"{key.host}.{name}" if key.host else name


def _where(sides: Sides, census: Census, item: Judged) -> tuple[str, int, str]:
    """(path, line, symbol) in merged, as near as it can be told."""
    key, symbol = item.key, _symbol(item.key)
    if item.elsewhere is not None:
        return item.elsewhere[0], item.fact.line if item.fact else 0, item.elsewhere[1]
    path, host = census.place("merged", key.path, symbol)
    if path not in sides.merged:
        path, host = census.place("merged", key.path, key.host)
        symbol = symbol if host == key.host else f"{host}{symbol[len(key.host):]}"
        return path, 0, symbol
    if item.fact is not None:
        return path, item.fact.line, host
    found = census.of(key, "merged")
    return path, found[-1].line if found else _host_line(census, key), host


def _host_line(census: Census, key: Key) -> int:
    """The line of the definition around a half in merged, 0 if that is not there either."""
    host = key.host
    while host:
        parent, _, name = host.rpartition(".")
        for word in ("def", "async def", "class"):
            if found := census.of(Key(key.path, parent, "definition", f"{word} {name}"), "merged"):
                return found[0].line
        host = parent
    return 0


def _label(key: Key) -> str:
    """A short name of one half."""
    return f"{key.kind} {_short(key.text)}" if key.kind != "file" else "file"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."


def _finding(
    verdict: Verdict, side: str, path: str, line: int, symbol: str, entry: str, batch: list[Judged]
) -> Finding:
    kinds = sorted({item.key.kind for item in batch})
    what = kinds[0] if len(batch) == 1 else f"{len(batch)} halves ({', '.join(kinds)})"
    saying = _SAYING[verdict].format(who=_WHO[side], what=what, be="is" if len(batch) == 1 else "are")
    texts = [f"`{_short(item.key.text)}`" for item in batch[:_SHOWN]]
    more = f" and {len(batch) - _SHOWN} more" if len(batch) > _SHOWN else ""
    evidence = "; ".join(dict.fromkeys(item.evidence for item in batch if item.evidence))
    message = f"{saying}: {', '.join(texts)}{more}"
    plant = _label(batch[0].key)
    return Finding(verdict, message, path, line, symbol, entry, plant, _short(evidence) if len(batch) > 1 else evidence)
